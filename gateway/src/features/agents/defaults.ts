/**
 * Creates a new agent's default files, once. Never overwrites a file and never restores a deleted one: a marker object says "making"
 * before and "made" after, so that interrupted work is completed and completed work is not repeated. A folder that a person filled
 * by hand, which says who the agent is, gets no marker and no files (rule AG5).
 */
import { type Result, storageFailed } from "../../ports/result.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import { originOf } from "../../storage/telling-bucket.ts";
import { isMeaningful } from "../../prompt/heartbeat.ts";
import { type AgentFiles, cacheOf } from "../../storage/workspace/cache.ts";
import { DEFAULT_FILES } from "./default-files.ts";
import { contentTypeOf, fileKey, MARKER, parsePath } from "../../storage/keys.ts";

type MarkerState = "making" | "made";
const ABSENT = { etagDoesNotMatch: "*" } as const;
const markerText = (state: MarkerState): string =>
  `${JSON.stringify({ about: "Says that this workspace's default files were made. Leave it, or deleted ones can come back.", state })}\n`;

async function putAbsent(bucket: Bucket, agentId: string, name: string, text: string): Promise<void> {
  const path = parsePath(name);
  if (path.ok) await bucket.put(fileKey(agentId, path.value), text, { onlyIf: ABSENT, httpMetadata: { contentType: contentTypeOf(name) } });
}

/** Agents whose default files exist, as far as this isolate knows. */
const known = new WeakMap<Bucket, Set<string>>();
function knownOf(bucket: Bucket): Set<string> {
  const origin = originOf(bucket);
  const set = known.get(origin) ?? new Set();
  known.set(origin, set);
  return set;
}

const BOOTSTRAP = "BOOTSTRAP.md";
/** Writes the missing files, BOOTSTRAP.md last, because the first meeting needs the others. */
async function fill(bucket: Bucket, agentId: string, bootstrap: boolean): Promise<void> {
  const first = DEFAULT_FILES.filter(({ name }) => name !== BOOTSTRAP);
  const last = DEFAULT_FILES.find(({ name }) => name === BOOTSTRAP);
  await Promise.all(first.map(({ name, text }) => putAbsent(bucket, agentId, name, text)));
  if (bootstrap && last) await putAbsent(bucket, agentId, last.name, last.text);
}
const markerOptions = { httpMetadata: { contentType: contentTypeOf(MARKER) } };

/** Creates the missing files of a new agent, also in a folder with other files. */
export async function makeDefaults(bucket: Bucket, agentId: string, bootstrap: boolean): Promise<Result<void>> {
  try {
    await fill(bucket, agentId, bootstrap);
    // The marker is updated last, so that a retry completes missing files.
    await bucket.put(fileKey(agentId, MARKER), markerText("made"), markerOptions);
    return { ok: true, value: undefined };
  } catch {
    return storageFailed("The files of the new agent could not be created.");
  } finally {
    cacheOf(bucket).invalidate(agentId);
  }
}

/**
 * `seen` is the last listing. Returns true when files were created, so that the caller reads again.
 * Costs one read the first time that an isolate sees an agent, and nothing afterwards.
 */
export async function ensureDefaults(
  bucket: Bucket,
  agentId: string,
  seen: Pick<AgentFiles, "files" | "marked" | "hasHistory">,
): Promise<Result<boolean>> {
  const settled = knownOf(bucket);
  if (seen.marked ? settled.has(agentId) : seen.hasHistory) return { ok: true, value: false };
  const marker = fileKey(agentId, MARKER);
  try {
    // Another instance may do the same now. A file is put only when it does not exist.
    const begun = seen.marked ? null : await bucket.put(marker, markerText("making"), { ...markerOptions, onlyIf: ABSENT });
    if (begun === null) {
      const object = await bucket.get(marker);
      const text = object && hasBody(object) ? await object.text() : "";
      if (!text.includes('"making"')) {
        settled.add(agentId);
        return { ok: true, value: !seen.marked };
      }
    }
    // In the first meeting the agent would not see the tasks that it has already.
    await fill(bucket, agentId, !isMeaningful(seen.files.get("HEARTBEAT.md")?.text ?? ""));
    await bucket.put(marker, markerText("made"), markerOptions);
    settled.add(agentId);
    return { ok: true, value: true };
  } catch {
    return storageFailed("The files of a new agent could not be created.");
  } finally {
    cacheOf(bucket).invalidate(agentId);
  }
}
