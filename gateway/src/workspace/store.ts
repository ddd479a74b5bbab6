/**
 * Files of an agent: list, read, write, delete. Paths come as people and models write them and are checked here. Every
 * write is conditional on what was read, so nobody's change is lost, and remembers the calls that made it, so that a call
 * that runs again changes nothing (promises P8). Never throws for what the outside can cause.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Result } from "../ports.ts";
import { asText, type Bucket, failure, guarded } from "./bucket.ts";
import { cacheOf, isCached } from "./cache.ts";
import { contentTypeOf, fileKey, folderPrefix, globalSkillKey, parseFolder, parsePath, type WorkspacePath } from "./keys.ts";

export interface WorkspaceListing {
  /** "" for the workspace itself. */
  readonly path: string;
  /** Paths from the workspace down, sorted. */
  readonly files: readonly string[];
  readonly directories: readonly string[];
  /** There is more than was listed. */
  readonly truncated: boolean;
}
export interface WorkspaceFile {
  readonly path: string;
  readonly content: string;
  /** Bytes. */
  readonly size: number;
  /** ISO 8601. */
  readonly lastModified: string;
  readonly etag: string;
}
export interface WorkspaceWritten {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}
export interface WriteOptions {
  /** An etag, or `absent`: write only when the file is still like that. */
  readonly ifMatch?: string;
}
/** What a change makes of a file (undefined: there is none). An error stops it, and nothing is written. */
export type Change = (current: string | undefined) => Result<string>;

export interface WorkspaceStore {
  list(agentId: string, path: string | undefined): Promise<Result<WorkspaceListing>>;
  /** `maxBytes` defaults to LIMITS.workspaceFileBytes. */
  read(agentId: string, path: string, maxBytes?: number): Promise<Result<WorkspaceFile>>;
  write(agentId: string, path: string, content: string, options?: WriteOptions): Promise<Result<WorkspaceWritten>>;
  /** Reads, changes, writes back, up to CAS_TRIES times over; once for a callId, however often it is run. */
  update(agentId: string, path: string, change: Change, callId: string): Promise<Result<WorkspaceWritten>>;
  delete(agentId: string, path: string): Promise<Result<{ readonly path: string; readonly deleted: true }>>;
}

export const CAS_TRIES = 5;
const MAX_LIST_ENTRIES = 5_000;
/** Calls that a file remembers; R2 keeps 8 KiB of metadata. */
const REMEMBERED_CALLS = 16;
const CALLS = "calls";
const encoder = new TextEncoder();

const callsOf = (object: R2Object | null): readonly string[] =>
  object?.customMetadata?.[CALLS]?.split(" ").filter((call) => call !== "") ?? [];
const conflict = (path: string) => failure("workspace.conflict", `\`${path}\` was changed meanwhile. Read it again.`);

export function createWorkspaceStore(bucket: Bucket): WorkspaceStore {
  const written = (agentId: string, path: WorkspacePath): void => {
    if (isCached(path)) cacheOf(bucket).invalidate(agentId);
  };
  const notFound = async (agentId: string, path: WorkspacePath) => {
    const inside = await guarded("be searched", () => bucket.list({ prefix: folderPrefix(agentId, path), limit: 1 }));
    if (inside.ok && inside.value.objects.length > 0) return failure("path.not_a_file", `\`${path}\` is a folder.`);
    return failure("path.not_found", `There is no file \`${path}\` in the workspace.`);
  };

  async function put(
    agentId: string,
    path: WorkspacePath,
    content: string,
    onlyIf: R2Conditional | undefined,
    calls: readonly string[],
  ): Promise<Result<WorkspaceWritten | null>> {
    const bytes = encoder.encode(content);
    if (bytes.length > LIMITS.workspaceFileBytes)
      return failure("file.too_large", `\`${path}\` would be ${bytes.length} bytes; files have at most ${LIMITS.workspaceFileBytes}.`);
    const result = await guarded(`write \`${path}\``, () =>
      bucket.put(fileKey(agentId, path), bytes, {
        httpMetadata: { contentType: contentTypeOf(path) },
        ...(calls.length === 0 ? {} : { customMetadata: { [CALLS]: calls.slice(-REMEMBERED_CALLS).join(" ") } }),
        ...(onlyIf ? { onlyIf } : {}),
      }),
    );
    // Also when it failed: a put whose answer was lost may have been done.
    written(agentId, path);
    if (!result.ok) return result;
    return { ok: true, value: result.value ? { path, size: bytes.length, etag: result.value.etag } : null };
  }

  return {
    async list(agentId, given) {
      const folder = parseFolder(given);
      if (!folder.ok) return folder;
      const prefix = folderPrefix(agentId, folder.value);
      const base = folderPrefix(agentId, "").length;
      const sources = [{ prefix, cut: base }];
      if (folder.value === "skills" || folder.value.startsWith("skills/")) sources.push({ prefix: `${folder.value}/`, cut: 0 });
      const files = new Set<string>();
      const directories = new Set<string>();
      let truncated = false;
      for (const source of sources) {
        let cursor: string | undefined;
        do {
          const page = await guarded("list the folder", () =>
            bucket.list({ prefix: source.prefix, delimiter: "/", ...(cursor === undefined ? {} : { cursor }) }),
          );
          if (!page.ok) return page;
          for (const { key } of page.value.objects) if (!key.endsWith("/")) files.add(key.slice(source.cut));
          for (const inner of page.value.delimitedPrefixes) directories.add(inner.slice(source.cut).replace(/\/$/, ""));
          cursor = page.value.truncated ? page.value.cursor : undefined;
          if (files.size + directories.size > MAX_LIST_ENTRIES) truncated ||= cursor !== undefined;
        } while (cursor !== undefined && !truncated);
      }
      if (folder.value !== "" && files.size === 0 && directories.size === 0) {
        const file = await guarded("be searched", () => bucket.head(prefix.slice(0, -1)));
        if (file.ok && file.value) return failure("path.invalid", `\`${folder.value}\` is a file, not a folder.`);
        return failure("path.not_found", `There is no folder \`${folder.value}\` in the workspace.`);
      }
      return { ok: true, value: { path: folder.value, files: [...files].sort(), directories: [...directories].sort(), truncated } };
    },

    async read(agentId, given, maxBytes = LIMITS.workspaceFileBytes) {
      const path = parsePath(given);
      if (!path.ok) return path;
      let object = await guarded(`read \`${path.value}\``, () => bucket.get(fileKey(agentId, path.value)));
      const global = globalSkillKey(path.value);
      if (object.ok && !object.value && global !== undefined) object = await guarded(`read \`${path.value}\``, () => bucket.get(global));
      if (!object.ok) return object;
      const found = object.value;
      if (!found) return notFound(agentId, path.value);
      if (found.size > maxBytes) {
        await found.body.cancel();
        return failure("file.too_large", `\`${path.value}\` has ${found.size} bytes; at most ${maxBytes} can be read at once.`);
      }
      const bytes = await guarded(`read \`${path.value}\``, () => found.arrayBuffer());
      if (!bytes.ok) return bytes;
      const content = asText(bytes.value);
      if (content === undefined) return failure("file.binary", `\`${path.value}\` is not text.`);
      return {
        ok: true,
        value: { path: path.value, content, size: found.size, lastModified: found.uploaded.toISOString(), etag: found.etag },
      };
    },

    async write(agentId, given, content, options = {}) {
      const path = parsePath(given);
      if (!path.ok) return path;
      // The calls that a file remembers must outlive a person's own edit, or a call that runs again would undo it.
      const before = await guarded(`read \`${path.value}\``, () => bucket.head(fileKey(agentId, path.value)));
      if (!before.ok) return before;
      const { ifMatch } = options;
      const etag = ifMatch?.replace(/^(?:W\/)?"(.*)"$/, "$1");
      const onlyIf = ifMatch === undefined ? undefined : ifMatch === "absent" ? { etagDoesNotMatch: "*" } : { etagMatches: etag ?? "" };
      const done = await put(agentId, path.value, content.toWellFormed(), onlyIf, callsOf(before.value));
      if (!done.ok) return done;
      return done.value ? { ok: true, value: done.value } : conflict(path.value);
    },

    async update(agentId, given, change, callId) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const key = fileKey(agentId, path.value);
      for (let attempt = 0; attempt < CAS_TRIES; attempt++) {
        const got = await guarded(`read \`${path.value}\``, () => bucket.get(key));
        if (!got.ok) return got;
        const object = got.value;
        const calls = callsOf(object);
        if (object && calls.includes(callId)) {
          // Read to its end: a body that is given up half-way is noise in the runtime's log.
          await guarded(`read \`${path.value}\``, () => object.arrayBuffer());
          return { ok: true, value: { path: path.value, size: object.size, etag: object.etag } };
        }
        let current: string | undefined;
        if (object) {
          const bytes = await guarded(`read \`${path.value}\``, () => object.arrayBuffer());
          if (!bytes.ok) return bytes;
          current = asText(bytes.value);
          if (current === undefined) return failure("file.binary", `\`${path.value}\` is not text.`);
        }
        const next = change(current);
        if (!next.ok) return next;
        const done = await put(
          agentId,
          path.value,
          next.value.toWellFormed(),
          object ? { etagMatches: object.etag } : { etagDoesNotMatch: "*" },
          [...calls, callId],
        );
        if (!done.ok) return done;
        if (done.value) return { ok: true, value: done.value };
      }
      return conflict(path.value);
    },

    async delete(agentId, given) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const key = fileKey(agentId, path.value);
      const there = await guarded(`read \`${path.value}\``, () => bucket.head(key));
      if (!there.ok) return there;
      if (!there.value) return notFound(agentId, path.value);
      const gone = await guarded(`delete \`${path.value}\``, () => bucket.delete(key));
      written(agentId, path.value);
      if (!gone.ok) return gone;
      return { ok: true, value: { path: path.value, deleted: true } };
    },
  };
}
