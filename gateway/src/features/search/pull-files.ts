/** Brings the files of an agent's workspace into its index, all of them or only those of its memory. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asText, hasBody } from "../../storage/bucket.ts";
import { taintText } from "../../storage/versions.ts";
import type { Listed, Source } from "./source-store.ts";
import type { Doc } from "./text-store.ts";
import { listed, listObjects } from "./list-objects.ts";
import type { Pass } from "./pass.ts";
import { TRANSCRIPTS } from "./pull-transcripts.ts";
import { dayOfName, isMemory, linePieces, pieces } from "./text.ts";

/** Folders that are not indexed as files: transcripts have their own source and contain the results. */
const NOT_SEARCHED = new Set([TRANSCRIPTS, "results/"]);
const MEMORY_FILE = "MEMORY.md";
const MEMORY_FOLDER = "memory/";
const NOT_LISTED = "The files could not be listed now, so the last indexed state was searched.";
const FILE_PIECE_CHARS = 2_000;
/** Further files are not searched, and a note says so. */
const MAX_FILES = 5_000;

export async function listMemoryFiles(pass: Pass): Promise<void> {
  const found = new Map<string, Listed>();
  try {
    const [file, isWhole] = await Promise.all([
      pass.ports.bucket.head(pass.folder + MEMORY_FILE),
      listObjects(pass, MEMORY_FOLDER, found, MAX_FILES),
    ]);
    if (file !== null) found.set(MEMORY_FILE, listed(file));
    if (!isWhole) pass.note("workspace", `The agent has more than ${MAX_FILES} memory files; the others are not searched.`);
  } catch {
    return pass.fail("workspace", NOT_LISTED);
  }
  pass.ports.store.sources.listed("workspace", found, isMemory);
}
export async function listFiles(pass: Pass): Promise<void> {
  const found = new Map<string, Listed>();
  const folders = new Set<string>();
  try {
    let whole = await listObjects(pass, "", found, MAX_FILES, folders);
    const searched = [...folders].filter((folder) => !NOT_SEARCHED.has(folder));
    for (const each of await Promise.all(searched.map((folder) => listObjects(pass, folder, found, MAX_FILES)))) whole = each && whole;
    if (!whole) pass.note("workspace", `The workspace has more than ${MAX_FILES} files; the others are not searched.`);
  } catch {
    return pass.fail("workspace", NOT_LISTED);
  }
  pass.ports.store.sources.listed("workspace", found);
}
export async function pullFile(pass: Pass, source: Source): Promise<void> {
  const { store, bucket } = pass.ports;
  try {
    const object = await bucket.get(pass.folder + source.name);
    if (!object || !hasBody(object)) return store.replace(source.id, [], { state: "gone" });
    if (object.size > LIMITS.workspaceFileBytes) {
      await object.body.cancel();
      return store.replace(source.id, [], { state: "skipped", etag: object.etag });
    }
    const text = asText(await object.arrayBuffer());
    if (text === undefined) return store.replace(source.id, [], { state: "skipped", etag: object.etag });
    const at = object.uploaded.getTime();
    const split = isMemory(source.name) ? linePieces : pieces;
    const day = dayOfName(source.name);
    const docs = split(text, FILE_PIECE_CHARS).map((piece): Doc => ({ position: piece.line, at, text: piece.text, day }));
    pass.took(docs.length);
    // The etag and label of the read content, which may be newer than the listing.
    store.replace(source.id, docs, { state: "done", etag: object.etag, taint: taintText(object) });
  } catch {
    pass.fail("workspace", "Some files could not be read now, so the last indexed state was searched. Search again.");
  }
}
