/**
 * Changes one workspace file without lost updates: reads the content, stores it as a version, and replaces it only if it is
 * unchanged; otherwise retries up to CAS_TRIES times. An interruption leaves the old content in the file or in its versions,
 * and repeating the change is safe.
 *
 * A bucket's delete is unconditional. So a deletion first replaces the file by a marker, conditionally like any change, and
 * then deletes the marker. A fresh marker must not be overwritten.
 *
 * Operations: a new file 2 (get, put); a change 3 (get, keep, put), every eighth 1 or 2 more (list, delete); a deletion 4 to 6.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { FileWritten } from "../ports/agent-files.ts";
import { failure, type GsvError, type Result, succeed } from "../ports/result.ts";
import { type Bucket, contentTypeFor, guarded } from "./bucket.ts";
import { fileKey, type WorkspacePath } from "./keys.ts";
import type { Taint } from "../ports/taint.ts";
import { byMetadata, keepStream, MAX_KEPT_BYTES, PRUNE_EVERY, taintMetadata, type Versions } from "./versions.ts";

export const CAS_TRIES = 5;
/** A marker is fresh for this long; an older marker belongs to an interrupted deletion. */
export const MARK_FRESH_MS = 10_000;
/** Waits before each try of a deletion: R2 accepts one change of a key per second, and the marker was one. */
const DELETE_WAITS_MS = [0, 300, 1_000] as const;
/** Number of call ids in a file's metadata; R2 stores at most 8 KiB of metadata. */
const REMEMBERED_CALLS = 16;
const CALLS = "calls";
/** Versions stored since old ones were last removed. */
const KEPT = "kept";
const MARK = "deleting";
/** Whether the content stays as an earlier version. */
const MARK_KEPT = "1";
const MARK_GONE = "gone";

/** A file's current state. */
export interface Current {
  readonly object: R2Object;
  /** Undefined when the file is larger than the limit for writes. */
  readonly bytes: Uint8Array<ArrayBuffer> | undefined;
  readonly calls: readonly string[];
}
/** The wanted change: new content, or none because the file is already as requested. */
export type Step =
  | {
      readonly kind: "put";
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly calls: readonly string[];
      readonly by?: string;
      readonly taint?: Taint;
    }
  | { readonly kind: "done" };
export type Decide = (current: Current | undefined) => Result<Step>;

/**
 * Called right before a file is changed, with the new content (undefined for a deletion) and the current file. An error stops the
 * change. The skills feature uses it to announce a change of a skill, and undo to record what the file was.
 */
export type BeforeChange = (
  path: WorkspacePath,
  content: Uint8Array<ArrayBuffer> | undefined,
  current: Current | undefined,
) => Promise<Result<void>>;

export interface Replacer {
  /**
   * `once`: a concurrent change is a conflict and is not retried. `maxBytes`: the largest content, by default LIMITS.workspaceFileBytes.
   */
  replace(
    agentId: string,
    path: WorkspacePath,
    decide: Decide,
    once: boolean,
    before?: BeforeChange,
    maxBytes?: number,
  ): Promise<Result<FileWritten>>;
  /** Says whether the content stays as an earlier version. `permanently`: content that is too large for one is deleted as well. */
  remove(
    agentId: string,
    path: WorkspacePath,
    options: { readonly before?: BeforeChange | undefined; readonly permanently?: boolean | undefined },
  ): Promise<Result<"absent" | "kept" | "gone">>;
}

/** A file is changed and deleted only when its content can stay as an earlier version. */
export const tooLargeToKeep = (path: string, { size }: Pick<R2Object, "size">): { ok: false; error: GsvError } => ({
  ok: false,
  error: {
    reason: "file.too_large",
    message: `\`${path}\` has ${size} bytes, which is too large to keep as an earlier version.`,
    hint: "Choose another name, or let the user delete it without one: `gsv workspace rm --permanently PATH`.",
  },
});
export const conflict = (path: string): { ok: false; error: GsvError } =>
  failure("workspace.conflict", `\`${path}\` was changed meanwhile.`, "Read the file again, then repeat the change.");
const beingDeleted = (path: string): { ok: false; error: GsvError } =>
  failure("workspace.conflict", `\`${path}\` is being deleted.`, `Try again in ${MARK_FRESH_MS / 1000} seconds.`);

/** A file that is being deleted counts as deleted. */
export const isMark = (object: R2Object | null): boolean => object?.customMetadata?.[MARK] !== undefined;
export const callsOf = (object: R2Object | null): readonly string[] =>
  object?.customMetadata?.[CALLS]?.split(" ").filter((call) => call !== "") ?? [];
export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, index) => byte === b[index]);

const keptSince = (object: R2Object): number => {
  const kept = Number(object.customMetadata?.[KEPT]);
  return Number.isInteger(kept) && kept >= 0 ? kept : 0;
};
const drop = async (object: R2ObjectBody): Promise<void> => {
  await guarded("be closed", () => object.body.cancel());
};

/** The clock and the waits, as arguments. */
export interface Clock {
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
}
export const CLOCK: Clock = {
  now: Date.now,
  pause: (ms) =>
    new Promise((resolve) => {
      setTimeout(resolve, ms);
    }),
};

/** The content of a file, unless it is larger than `maxBytes`. */
async function load(path: WorkspacePath, object: R2ObjectBody, maxBytes: number): Promise<Result<Current>> {
  const calls = callsOf(object);
  if (object.size > maxBytes) return { ok: true, value: { object, bytes: undefined, calls } };
  const bytes = await guarded(`read \`${path}\``, () => object.arrayBuffer());
  return bytes.ok ? { ok: true, value: { object, bytes: new Uint8Array(bytes.value), calls } } : bytes;
}

/** `changed` is called after each operation that may have changed a file, also when its answer was lost. */
export function createReplacer(
  bucket: Bucket,
  versions: Versions,
  { now, pause }: Clock,
  changed: (agentId: string, path: string) => void,
): Replacer {
  /** The current file. A stale marker counts as `absent`, and the next write replaces it. */
  type Found = { object: R2ObjectBody } | { object: undefined; mark: R2Object | undefined };
  async function look(agentId: string, path: WorkspacePath): Promise<Result<Found>> {
    const got = await guarded(`read \`${path}\``, () => bucket.get(fileKey(agentId, path)));
    if (!got.ok) return got;
    const object = got.value;
    if (!object) return { ok: true, value: { object: undefined, mark: undefined } };
    if (!isMark(object)) return { ok: true, value: { object } };
    await drop(object);
    const age = now() - object.uploaded.getTime();
    if (age < MARK_FRESH_MS && age > -MARK_FRESH_MS) return beingDeleted(path);
    return { ok: true, value: { object: undefined, mark: object } };
  }
  async function keep(agentId: string, path: WorkspacePath, object: R2ObjectBody, bytes: Current["bytes"]): Promise<Result<void>> {
    if (bytes !== undefined) return versions.keep(agentId, path, object, bytes);
    if (object.size > MAX_KEPT_BYTES) return tooLargeToKeep(path, object);
    return keepStream(versions, agentId, path, object);
  }
  const put = async (
    agentId: string,
    path: WorkspacePath,
    bytes: Uint8Array<ArrayBuffer>,
    onlyIf: R2Conditional,
    customMetadata: Record<string, string>,
  ): Promise<Result<R2Object | null>> => {
    const done = await guarded(`write \`${path}\``, () =>
      bucket.put(fileKey(agentId, path), bytes, { httpMetadata: { contentType: contentTypeFor(path, bytes) }, customMetadata, onlyIf }),
    );
    changed(agentId, path);
    return done;
  };
  /** What comes before a deletion: whether it is allowed, and the content as an earlier version. */
  async function leave(
    agentId: string,
    path: WorkspacePath,
    object: R2ObjectBody,
    isKept: boolean,
    before: BeforeChange | undefined,
  ): Promise<Result<void>> {
    const loaded = await load(path, object, LIMITS.workspaceFileBytes);
    if (!loaded.ok) return loaded;
    const allowed = await before?.(path, undefined, loaded.value);
    if (allowed?.ok === false) return allowed;
    return isKept ? keep(agentId, path, object, loaded.value.bytes) : succeed(await drop(object));
  }
  /** Deletes the marker of a file; may be repeated. */
  async function unlink(agentId: string, path: WorkspacePath): Promise<Result<void>> {
    let gone: Result<void> = { ok: true, value: undefined };
    for (const wait of DELETE_WAITS_MS) {
      if (wait > 0) await pause(wait);
      gone = await guarded(`delete \`${path}\``, () => bucket.delete(fileKey(agentId, path)));
      changed(agentId, path);
      if (gone.ok) break;
    }
    return gone;
  }
  const ABSENT: R2Conditional = { etagDoesNotMatch: "*" };

  /** One try; null after a concurrent change. */
  async function attempt(
    agentId: string,
    path: WorkspacePath,
    found: Found,
    current: Current | undefined,
    decide: Decide,
    before: BeforeChange | undefined,
    maxBytes: number,
  ) {
    const step = decide(current);
    if (!step.ok) return step;
    if (step.value.kind === "done") {
      if (!current) return failure("internal", "The file does not exist.");
      const { size, etag } = current.object;
      return { ok: true, value: { path, size, etag } } as const;
    }
    const { bytes, calls, by, taint } = step.value;
    if (bytes.length > maxBytes)
      return failure("file.too_large", `\`${path}\` would be ${bytes.length} bytes; files have at most ${maxBytes}.`);
    const allowed = await before?.(path, bytes, current);
    if (allowed?.ok === false) return allowed;
    let kept = 0;
    if (found.object && current) {
      const same = current.bytes !== undefined && sameBytes(current.bytes, bytes);
      const away = same ? ({ ok: true } as const) : await keep(agentId, path, found.object, current.bytes);
      if (!away.ok) return away;
      kept = keptSince(found.object) + (same ? 0 : 1);
    }
    const due = kept >= PRUNE_EVERY;
    const etag = found.object === undefined ? found.mark?.etag : found.object.etag;
    const done = await put(agentId, path, bytes, etag === undefined ? ABSENT : { etagMatches: etag }, {
      ...byMetadata(by),
      ...taintMetadata(taint),
      ...(calls.length === 0 ? {} : { [CALLS]: calls.slice(-REMEMBERED_CALLS).join(" ") }),
      ...(kept === 0 || due ? {} : { [KEPT]: String(kept) }),
    });
    if (!done.ok) return done;
    if (!done.value) return null;
    if (due) await versions.prune(agentId, path);
    return { ok: true, value: { path, size: bytes.length, etag: done.value.etag } } as const;
  }

  return {
    async replace(agentId, path, decide, once, before, maxBytes = LIMITS.workspaceFileBytes) {
      for (let tries = 0; tries < CAS_TRIES; tries++) {
        const found = await look(agentId, path);
        if (!found.ok) return found;
        const { object } = found.value;
        const current = object ? await load(path, object, maxBytes) : undefined;
        if (current && !current.ok) return current;
        const outcome = await attempt(agentId, path, found.value, current?.value, decide, before, maxBytes);
        // The content of a large file that was not needed.
        if (object && !object.bodyUsed) await drop(object);
        if (outcome) return outcome;
        if (once) break;
      }
      return conflict(path);
    },

    async remove(agentId, path, { before, permanently = false }) {
      for (let attempt = 0; attempt < CAS_TRIES; attempt++) {
        const found = await look(agentId, path);
        if (!found.ok) return found;
        const { object } = found.value;
        const mark = found.value.object === undefined ? found.value.mark : undefined;
        if (!object && !mark) return { ok: true, value: "absent" };
        // A deletion that was interrupted has said in its mark whether it kept the content.
        const isKept = object === undefined ? mark?.customMetadata?.[MARK] !== MARK_GONE : object.size <= MAX_KEPT_BYTES || !permanently;
        const away = object === undefined ? succeed(undefined) : await leave(agentId, path, object, isKept, before);
        if (!away.ok) return away;
        // The marker's content differs from the file's, so that an earlier started change sees another etag.
        const content = new Uint8Array(object?.size === 0 ? [10] : []);
        const marked = await put(
          agentId,
          path,
          mark ? new Uint8Array([10, 10]) : content,
          { etagMatches: (object ?? mark)?.etag ?? "" },
          { [MARK]: isKept ? MARK_KEPT : MARK_GONE },
        );
        if (!marked.ok) return marked;
        if (!marked.value) continue;
        const gone = await unlink(agentId, path);
        if (!gone.ok) return gone;
        await versions.prune(agentId, path);
        return { ok: true, value: isKept ? "kept" : "gone" };
      }
      return conflict(path);
    },
  };
}
