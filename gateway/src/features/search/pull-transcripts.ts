/** Brings the transcripts of an agent's archived conversations into its index. */
import { hasBody } from "../../storage/bucket.ts";
import { searchable } from "../../storage/searchable.ts";
import type { Listed, Source } from "./source-store.ts";
import type { Doc } from "./text-store.ts";
import { listObjects } from "./list-objects.ts";
import { MESSAGE_PIECE_CHARS, type Pass } from "./pass.ts";
import { dayWords, pieces } from "./text.ts";
import { transcriptLines } from "./transcript-lines.ts";

export const TRANSCRIPTS = "sessions/";
/** `sessions/{sessionId}.jsonl.gz` or `sessions/{sessionId}-part{time}.jsonl.gz`. */
const TRANSCRIPT = /^sessions\/([^/]+?)(?:-part\d+)?\.jsonl\.gz$/;
/** The names in the bucket that the wire accepts; other programs may write to the bucket. */
const MAX_ID_CHARS = 64;
const MAX_KEY_CHARS = 512;
/** Further transcripts are not searched, and a note says so. */
const MAX_TRANSCRIPTS = 20_000;

export async function listTranscripts(pass: Pass): Promise<boolean> {
  const found = new Map<string, Listed>();
  try {
    if (!(await listObjects(pass, TRANSCRIPTS, found, MAX_TRANSCRIPTS)))
      pass.note("archives", `There are more than ${MAX_TRANSCRIPTS} transcripts; the others are not searched.`);
  } catch {
    pass.fail("archives", "The transcripts could not be listed now, so the last indexed state was searched.");
    return false;
  }
  for (const name of found.keys()) if (!TRANSCRIPT.test(name)) found.delete(name);
  pass.ports.store.sources.listed("archives", found);
  return true;
}
export async function pullTranscript(pass: Pass, source: Source): Promise<void> {
  const { store, bucket } = pass.ports;
  const sessionId = TRANSCRIPT.exec(source.name)?.[1] ?? "";
  if (source.state === "new") while (!store.removeBelow(source.id, Number.MAX_SAFE_INTEGER)) if (pass.enough()) return;
  const unreadable = (): void => pass.fail("archives", "Some transcripts could not be read now, so they were not searched. Search again.");
  let object: Awaited<ReturnType<typeof bucket.get>>;
  try {
    object = await bucket.get(pass.folder + source.name);
  } catch {
    return unreadable();
  }
  if (!object || !hasBody(object)) return store.add(source.id, [], { state: "gone" });
  const meta = object.customMetadata ?? {};
  const about = {
    sessionId: (meta["sessionId"] ?? sessionId).slice(0, MAX_ID_CHARS),
    ...(meta["sessionKey"] === undefined ? {} : { sessionKey: meta["sessionKey"].slice(0, MAX_KEY_CHARS) }),
  };
  const from = source.state === "new" ? 0 : source.next;
  let position = 0;
  let broken = 0;
  const note = (what: string): string => `The transcript \`${source.name}\` ${what}`.slice(0, 512);
  const lines = transcriptLines(object.body);
  try {
    for await (const batch of lines) {
      if (batch.kind === "failed") return unreadable();
      if (batch.kind === "damaged")
        return store.add(source.id, [], {
          ...about,
          state: "damaged",
          note: note(`is damaged; its first ${position} messages are searched.`),
        });
      const docs: Doc[] = [];
      for (const line of batch.lines) {
        const message = parse(line);
        if (message === undefined) broken++;
        else if (position >= from)
          for (const piece of pieces(message.text, MESSAGE_PIECE_CHARS))
            docs.push({ position, role: message.role, at: message.at, text: piece.text, day: dayWords(message.at) });
        position++;
      }
      if (position <= from) continue;
      pass.took(docs.length);
      store.add(source.id, docs, { ...about, state: "partial", next: position });
      if (pass.enough()) return;
    }
  } finally {
    await lines.return();
  }
  store.add(source.id, [], {
    ...about,
    next: position,
    ...(broken === 0 ? { state: "done" } : { state: "damaged", note: note(`has ${broken} damaged lines, which are not searched.`) }),
  });
}
function parse(line: string): ReturnType<typeof searchable> {
  try {
    return searchable(JSON.parse(line));
  } catch {
    return undefined;
  }
}
