/**
 * Changing one file of the workspace so that nobody's work is lost: what is there is read, put away as a version, and replaced
 * only while it is still the same; otherwise all of it again, up to CAS_TRIES times. Whatever breaks off in between leaves the
 * old content in its place or among the versions, and doing it again is harmless.
 *
 * A bucket deletes whatever is there at that moment. So a file is first replaced by a mark, conditionally like any change, and
 * then the mark is deleted; nobody writes over a mark that is fresh.
 *
 * Operations: a new file 2 (get, put); a change 3 (get, keep, put), every eighth 1 or 2 more (list, delete); a deletion 4 to 6.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { GsvError, Result } from "../ports/result.ts";
import { type Bucket, failure, guarded } from "./bucket.ts";
import { contentTypeOf, fileKey, type WorkspacePath } from "./keys.ts";
import { byMetadata, MAX_KEPT_BYTES, PRUNE_EVERY, type Versions } from "./versions.ts";

export const CAS_TRIES = 5;
/** A deletion that is under way is not disturbed for this long; after it, it has been broken off. */
export const MARK_FRESH_MS = 10_000;
/** Waits before each try of a deletion: R2 takes one change of a key a second, and the mark was one. */
const DELETE_WAITS_MS = [0, 300, 1_000] as const;
/** Calls that a file remembers; R2 keeps 8 KiB of metadata. */
const REMEMBERED_CALLS = 16;
const CALLS = "calls";
/** Versions kept since old ones were last removed. */
const KEPT = "kept";
const MARK = "deleting";

export interface WorkspaceWritten {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}
/** A file as it is. */
export interface Current {
  readonly object: R2Object;
  /** Undefined: it is larger than any file that is written here. */
  readonly bytes: Uint8Array<ArrayBuffer> | undefined;
  readonly calls: readonly string[];
}
/** What to make of a file: new content, or nothing because it is as wanted. */
export type Step =
  | { readonly kind: "put"; readonly bytes: Uint8Array<ArrayBuffer>; readonly calls: readonly string[]; readonly by?: string }
  | { readonly kind: "done" };
export type Decide = (current: Current | undefined) => Result<Step>;

/**
 * Asked right before a file is changed, with what it will be (undefined: it is deleted). An error stops the change. Skills use it to
 * say beforehand what may then be there.
 */
export type BeforeChange = (path: WorkspacePath, content: Uint8Array<ArrayBuffer> | undefined) => Promise<Result<void>>;

export interface Replacer {
  /** `once`: a change that meets another's is a conflict, not tried again. */
  replace(agentId: string, path: WorkspacePath, decide: Decide, once: boolean, before?: BeforeChange): Promise<Result<WorkspaceWritten>>;
  /** False: there was no such file. */
  remove(agentId: string, path: WorkspacePath): Promise<Result<boolean>>;
}

export const conflict = (path: string): { ok: false; error: GsvError } =>
  failure("workspace.conflict", `\`${path}\` was changed meanwhile. Read it again.`);
const beingDeleted = (path: string): { ok: false; error: GsvError } =>
  failure("workspace.conflict", `\`${path}\` is being deleted at this moment. Try again in ${MARK_FRESH_MS / 1000} seconds.`);

/** A file that is being deleted is no file any more. */
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

/** Time, as an argument. */
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

/** `changed` is told after each operation that may have changed a file, also when its answer was lost. */
export function createReplacer(
  bucket: Bucket,
  versions: Versions,
  { now, pause }: Clock,
  changed: (agentId: string, path: string) => void,
): Replacer {
  /** What is there: `absent` also for a mark that somebody left behind, which then is replaced. */
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
  async function load(path: WorkspacePath, object: R2ObjectBody): Promise<Result<Current>> {
    const calls = callsOf(object);
    if (object.size > LIMITS.workspaceFileBytes) return { ok: true, value: { object, bytes: undefined, calls } };
    const bytes = await guarded(`read \`${path}\``, () => object.arrayBuffer());
    return bytes.ok ? { ok: true, value: { object, bytes: new Uint8Array(bytes.value), calls } } : bytes;
  }
  async function keep(agentId: string, path: WorkspacePath, object: R2ObjectBody, bytes: Current["bytes"]): Promise<Result<void>> {
    if (bytes !== undefined) return versions.keep(agentId, path, object, bytes);
    if (object.size > MAX_KEPT_BYTES)
      return failure(
        "file.too_large",
        `\`${path}\` has ${object.size} bytes, more than are kept as an earlier version. Move it away by hand first.`,
      );
    const sized = new FixedLengthStream(object.size);
    const [kept, copied] = await Promise.all([
      versions.keep(agentId, path, object, sized.readable),
      guarded(`read \`${path}\``, () => object.body.pipeTo(sized.writable)),
    ]);
    // What is there already is not read again, and its stream ends early.
    return kept.ok || copied.ok ? kept : copied;
  }
  const put = async (
    agentId: string,
    path: WorkspacePath,
    bytes: Uint8Array<ArrayBuffer>,
    onlyIf: R2Conditional,
    customMetadata: Record<string, string>,
  ): Promise<Result<R2Object | null>> => {
    const done = await guarded(`write \`${path}\``, () =>
      bucket.put(fileKey(agentId, path), bytes, { httpMetadata: { contentType: contentTypeOf(path) }, customMetadata, onlyIf }),
    );
    changed(agentId, path);
    return done;
  };
  /** Of a file that is a mark already: it may be tried again. */
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

  /** One try: null when somebody else was quicker. */
  async function attempt(
    agentId: string,
    path: WorkspacePath,
    found: Found,
    current: Current | undefined,
    decide: Decide,
    before: BeforeChange | undefined,
  ) {
    const step = decide(current);
    if (!step.ok) return step;
    if (step.value.kind === "done") {
      if (!current) return failure("internal", "The file is not there.");
      const { size, etag } = current.object;
      return { ok: true, value: { path, size, etag } } as const;
    }
    const { bytes, calls, by } = step.value;
    if (bytes.length > LIMITS.workspaceFileBytes)
      return failure("file.too_large", `\`${path}\` would be ${bytes.length} bytes; files have at most ${LIMITS.workspaceFileBytes}.`);
    const allowed = await before?.(path, bytes);
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
      ...(calls.length === 0 ? {} : { [CALLS]: calls.slice(-REMEMBERED_CALLS).join(" ") }),
      ...(kept === 0 || due ? {} : { [KEPT]: String(kept) }),
    });
    if (!done.ok) return done;
    if (!done.value) return null;
    if (due) await versions.prune(agentId, path);
    return { ok: true, value: { path, size: bytes.length, etag: done.value.etag } } as const;
  }

  return {
    async replace(agentId, path, decide, once, before) {
      for (let tries = 0; tries < CAS_TRIES; tries++) {
        const found = await look(agentId, path);
        if (!found.ok) return found;
        const { object } = found.value;
        const current = object ? await load(path, object) : undefined;
        if (current && !current.ok) return current;
        const outcome = await attempt(agentId, path, found.value, current?.value, decide, before);
        // A large file's content that was not needed after all.
        if (object && !object.bodyUsed) await drop(object);
        if (outcome) return outcome;
        if (once) break;
      }
      return conflict(path);
    },

    async remove(agentId, path) {
      for (let attempt = 0; attempt < CAS_TRIES; attempt++) {
        const found = await look(agentId, path);
        if (!found.ok) return found;
        const { object } = found.value;
        const mark = found.value.object === undefined ? found.value.mark : undefined;
        if (!object && !mark) return { ok: true, value: false };
        if (object) {
          const loaded = await load(path, object);
          if (!loaded.ok) return loaded;
          const away = await keep(agentId, path, object, loaded.value.bytes);
          if (!away.ok) return away;
        }
        // Another content than the file's, so that a change which began before meets another etag.
        const content = new Uint8Array(object?.size === 0 ? [10] : []);
        const marked = await put(
          agentId,
          path,
          mark ? new Uint8Array([10, 10]) : content,
          { etagMatches: (object ?? mark)?.etag ?? "" },
          {
            [MARK]: "1",
          },
        );
        if (!marked.ok) return marked;
        if (!marked.value) continue;
        const gone = await unlink(agentId, path);
        if (!gone.ok) return gone;
        await versions.prune(agentId, path);
        return { ok: true, value: true };
      }
      return conflict(path);
    },
  };
}
