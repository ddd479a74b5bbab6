/** Brings the changes of an agent's long-term memories into its index. */
import type { MemoryChange } from "./index-store.ts";
import type { Doc } from "./text-store.ts";
import { MESSAGE_PIECE_CHARS, type Pass } from "./pass.ts";
import { dayWords, pieces } from "./text.ts";

const MEMORIES_PER_PAGE = 200;

/** True when every change of a memory is in the index. A superseded memory is not found any more. */
export async function pullMemories(pass: Pass): Promise<boolean> {
  const { store, memories } = pass.ports;
  if (memories === undefined) return true;
  for (;;) {
    const from = store.memoriesSeen();
    const page = await memories(from, MEMORIES_PER_PAGE);
    if (!page.ok) {
      pass.fail("memory", "The long-term memories could not be read now, so the last indexed state was searched. Search again.");
      return false;
    }
    const last = page.value.at(-1);
    if (last === undefined) return true;
    const changes = page.value.map(({ id, memory, vector }): MemoryChange => {
      if (memory === undefined || memory.supersededBy !== undefined) return { id, docs: undefined };
      const { content, createdAt } = memory;
      const docs = pieces(content, MESSAGE_PIECE_CHARS).map(
        ({ text }, position): Doc => ({ position, at: createdAt, text, day: dayWords(createdAt) }),
      );
      return { id, docs, ...(vector === undefined ? {} : { vector }) };
    });
    pass.took(changes.length);
    if (!store.memories(changes, { from, to: last.seq })) continue;
    if (page.value.length < MEMORIES_PER_PAGE) return true;
    if (pass.enough()) {
      pass.note("memory", "Some long-term memories are not indexed yet; search again.");
      return false;
    }
  }
}
