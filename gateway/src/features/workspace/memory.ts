/**
 * Daily memory files: appends text once per key, also with concurrent writers (promises W17). Must not rewrite existing text.
 * A full or binary file gets a numbered neighbour, so that the text is always stored.
 */
import type { MemoryFiles } from "../../ports/memory.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { dailyPath } from "../../storage/keys.ts";
import { createQuarantine } from "../../storage/workspace/quarantine.ts";
import { createWorkspaceStore, type WorkspaceStore } from "../../storage/workspace/store.ts";

/** `memory/2026-03-01-2.md` and so on. */
const NEIGHBOURS = 9;

export function createMemoryFiles(bucket: Bucket, store: Pick<WorkspaceStore, "update"> = createWorkspaceStore(bucket)): MemoryFiles {
  const kept = createQuarantine(bucket);
  return {
    quarantine: ({ agentId, date, text, key, ...from }) =>
      kept.add(agentId, { ...from, path: dailyPath(date), change: { kind: "append", text: `\n${text.trim()}\n` }, callId: key }),
    async append(agentId, date, text, key) {
      const whole = text.trim();
      let last: Awaited<ReturnType<WorkspaceStore["update"]>> | undefined;
      for (let number = 1; number <= NEIGHBOURS; number++) {
        const path = dailyPath(number === 1 ? date : `${date}-${number}`);
        last = await store.update(
          agentId,
          path,
          // The file stores only its last few keys. After many other writes, look for the text itself.
          (current = "") => ({ ok: true, value: current.includes(whole) ? current : joined(current, whole) }),
          key,
        );
        if (last.ok) return { ok: true, value: { path: last.value.path } };
        if (last.error.reason !== "file.too_large" && last.error.reason !== "file.binary") return last;
      }
      return last?.ok === false ? last : { ok: false, error: { reason: "internal", message: "No daily memory file can take the text." } };
    },
  };
}
const joined = (current: string, text: string): string => `${current.trim() === "" ? "" : `${current.trimEnd()}\n\n`}${text}\n`;
