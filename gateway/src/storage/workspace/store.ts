/**
 * An agent's files: list, read, write, delete, versions. Checks the paths that people and models write, and refuses every write
 * to records of what happened (protection.ts). A change is conditional on the content that was read, stores it as a version (replace.ts), and
 * records the call's id, so that a repeated call changes nothing (promises P8). Never throws for external failures.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FileChange, FileContent, FileWritten, LabelledListing } from "../../ports/agent-files.ts";
import type { FileVersion } from "../../ports/changes.ts";
import { type Failure, failure, type Result } from "../../ports/result.ts";
import { asText, type Bucket, guarded } from "../bucket.ts";
import { cacheOf, isCached } from "./cache.ts";
import { fileKey, folderPrefix, globalSkillKey, parsePath, parseVersionId, versionId, type WorkspacePath } from "../keys.ts";
import { placeRefusal, refusal } from "./protection.ts";
import { sha256Of } from "../skills/folder.ts";
import { builtinFile } from "../skills/builtin/index.ts";
import { type BeforeChange, CAS_TRIES, CLOCK, type Clock, conflict, createReplacer, isMark, sameBytes } from "../replace.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import { byOf, createVersions, idOf, taintOf, type Version } from "../versions.ts";
import { folderLabels, type FolderListing, listFolder } from "./listing.ts";

export { type BeforeChange, CAS_TRIES };

/** The writer of a change: `client:<id> token:<id>`, `agent:<session>`. Stored with the file. */
export interface ChangeOptions {
  readonly by?: string;
  /** Who may have written the new content. Absent: the writer vouches for it. */
  readonly taint?: Taint;
  readonly before?: BeforeChange;
}
export interface WriteOptions extends ChangeOptions {
  /** An etag, a version's name, or `absent`: write only if the file still has this state. */
  readonly ifMatch?: string;
  /** For `update`: nothing of the old content stays, so its label goes too. */
  readonly whole?: boolean;
  /** For `write` and `delete`: the definition of an agent, which the gateway has checked. */
  readonly definition?: true;
}
export interface WorkspaceLog {
  readonly path: string;
  /** Undefined when the file does not exist now. */
  readonly current: Omit<Version, "replacedAt"> | undefined;
  /** Newest first, without the current content. */
  readonly versions: readonly Version[];
}
export interface WorkspaceStore {
  list(agentId: string, path: string | undefined): Promise<Result<Omit<FolderListing, "labels">>>;
  listLabelled(agentId: string, path: string | undefined): Promise<Result<LabelledListing>>;
  /** `maxBytes` defaults to LIMITS.workspaceFileBytes. */
  read(agentId: string, path: string, maxBytes?: number): Promise<Result<FileContent>>;
  write(agentId: string, path: string, content: string, options?: WriteOptions): Promise<Result<FileWritten>>;
  /** Writes a file of any bytes, such as a skill's. */
  writeBytes(
    agentId: string,
    path: string,
    bytes: Uint8Array<ArrayBuffer>,
    maxBytes: number,
    options?: ChangeOptions,
  ): Promise<Result<FileWritten>>;
  /** The agent's own file, without built-in and shared ones. Undefined: there is none. */
  own(agentId: string, path: string): Promise<Result<FileContent | undefined>>;
  /** Reads, changes and writes back, with up to CAS_TRIES tries. Applies at most once per callId. */
  update(agentId: string, path: string, change: FileChange, callId: string, options?: WriteOptions): Promise<Result<FileWritten>>;
  /** Who may have written the file; anyone when it is gone. Undefined: nothing is known of others. */
  taintOf(agentId: string, path: string): Promise<Result<Taint | undefined>>;
  /** The deleted content stays as a version. `permanently`: content that is too large for one does not stay. */
  delete(
    agentId: string,
    path: string,
    options?: WriteOptions & { readonly permanently?: boolean },
  ): Promise<Result<{ readonly path: string; readonly deleted: true; readonly kept: boolean }>>;
  log(agentId: string, path: string): Promise<Result<WorkspaceLog>>;
  readVersion(agentId: string, path: string, version: string, maxBytes?: number): Promise<Result<FileContent>>;
  /** The current version and sha256 of a file, of any size; undefined: there is no such file. */
  state(agentId: string, path: string): Promise<Result<FileVersion | undefined>>;
  /** Whether the content of an earlier version is kept. */
  hasVersion(agentId: string, path: string, version: string): Promise<Result<boolean>>;
  /** The name of a file's version. */
  versionOf(object: R2Object): string;
  /** Restores a version; the current content becomes a version. */
  restore(agentId: string, path: string, version: string, options?: WriteOptions): Promise<Result<FileWritten>>;
}

const writer = (by: string | undefined, taint: Taint | undefined): { readonly by?: string; readonly taint?: Taint } => ({
  ...(by === undefined ? {} : { by }),
  ...(taint === undefined ? {} : { taint }),
});
const encode = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text.toWellFormed()));

/** Whether the current file (undefined: none) is the state that the writer has seen. */
function isSeen(ifMatch: string | undefined, object: R2Object | undefined): boolean {
  if (ifMatch === undefined) return true;
  if (ifMatch === "absent") return object === undefined;
  if (object === undefined) return false;
  const etag = ifMatch.replace(/^(?:W\/)?"(.*)"$/, "$1");
  return etag === object.etag || etag === idOf(object);
}
/** A path that is not sealed. The callers decide who may change protected files, because they know the writer. */
function changeable(agentId: string, given: string, { definition }: Pick<WriteOptions, "definition"> = {}): Result<WorkspacePath> {
  const path = parsePath(given);
  if (!path.ok) return path;
  const refused = refusal(path.value, definition === true ? "gateway" : "owner", agentId);
  return refused ? { ok: false, error: refused } : path;
}
/** A path that is not sealed, where a file can be. */
function writable(agentId: string, given: string, options?: Pick<WriteOptions, "definition">): Result<WorkspacePath> {
  const path = changeable(agentId, given, options);
  const refused = path.ok ? placeRefusal(path.value) : undefined;
  return refused ? { ok: false, error: refused } : path;
}

export function createWorkspaceStore(bucket: Bucket, clock: Partial<Clock> = {}): WorkspaceStore {
  const versions = createVersions(bucket);
  const replacer = createReplacer(bucket, versions, { ...CLOCK, ...clock }, (agentId, path) => {
    if (isCached(path)) cacheOf(bucket).invalidate(agentId);
    if (path.startsWith("skills/")) cacheOf(bucket).skills.invalidate({ scope: "agent", agentId });
  });
  const isFolder = async (agentId: string, path: WorkspacePath): Promise<boolean> => {
    const inside = await guarded("be searched", () => bucket.list({ prefix: folderPrefix(agentId, path), limit: 1 }));
    return inside.ok && inside.value.objects.length > 0;
  };
  /** Why a file can't be written here: a bucket of plain files keeps no file where a folder is, and none below a file. */
  const place = async (agentId: string, path: WorkspacePath): Promise<Failure | undefined> => {
    if (await isFolder(agentId, path)) {
      const hint = `Name the file in it: \`gsv workspace put ${path}/NAME\`.`;
      return { ok: false, error: { reason: "path.not_a_file", message: `\`${path}\` is a folder.`, hint } };
    }
    const names = path.split("/").slice(0, -1);
    for (const at of names.keys()) {
      const above = parsePath(names.slice(0, at + 1).join("/"));
      const file = above.ok ? await guarded("be searched", () => bucket.head(fileKey(agentId, above.value))) : above;
      if (above.ok && file.ok && file.value && !isMark(file.value))
        return failure("path.invalid", `\`${above.value}\` is a file, not a folder.`);
    }
    return undefined;
  };
  const notFound = async (agentId: string, path: WorkspacePath) => {
    if (await isFolder(agentId, path)) return failure("path.not_a_file", `\`${path}\` is a folder.`);
    return failure("path.not_found", `There is no file \`${path}\` in the workspace.`);
  };

  async function textOf(path: WorkspacePath, found: R2ObjectBody, maxBytes: number, etag: string, at: Date): Promise<Result<FileContent>> {
    if (found.size > maxBytes) {
      await guarded("be closed", () => found.body.cancel());
      return failure("file.too_large", `\`${path}\` has ${found.size} bytes; at most ${maxBytes} can be read at once.`);
    }
    const bytes = await guarded(`read \`${path}\``, () => found.arrayBuffer());
    if (!bytes.ok) return bytes;
    const content = asText(bytes.value);
    if (content === undefined) return failure("file.binary", `\`${path}\` is not text.`);
    const taint = taintOf(found);
    return {
      ok: true,
      value: { path, content, size: found.size, lastModified: at.toISOString(), etag, ...(taint === undefined ? {} : { taint }) },
    };
  }
  /** Writes these bytes: one try with an expected state; otherwise retries after concurrent changes. */
  const become = async (
    agentId: string,
    path: WorkspacePath,
    bytes: Uint8Array<ArrayBuffer>,
    { ifMatch, by, taint, before }: WriteOptions,
    maxBytes?: number,
  ): Promise<Result<FileWritten>> => {
    const written = await replacer.replace(
      agentId,
      path,
      (current) => {
        // Also for a write whose answer was lost: the file has the requested state.
        const isSame = current?.bytes !== undefined && sameBytes(current.bytes, bytes);
        // A label is written again: the writer vouches for the same content.
        if (isSame && taintOf(current.object)?.label === taint?.label) return { ok: true, value: { kind: "done" } };
        if (!isSeen(ifMatch, current?.object)) return conflict(path);
        // The file's call ids must survive a person's edit, or a repeated call would undo it.
        return { ok: true, value: { kind: "put", bytes, calls: current?.calls ?? [], ...writer(by, taint) } };
      },
      ifMatch !== undefined,
      before,
      maxBytes,
    );
    return written.ok || written.error.reason !== "storage.failed" ? written : ((await place(agentId, path)) ?? written);
  };
  async function version(agentId: string, path: WorkspacePath, given: string) {
    const parsed = parseVersionId(given);
    const missing = failure("path.not_found", `\`${path}\` has no such version. \`gsv workspace log ${path}\` shows them.`);
    if (!parsed) return missing;
    const got = await versions.get(agentId, path, parsed.id);
    if (!got.ok) return got;
    return got.value ? ({ ok: true, value: { object: got.value, ...parsed } } as const) : missing;
  }

  return {
    async list(agentId, given) {
      const found = await listFolder(bucket, agentId, given);
      if (!found.ok) return found;
      const { labels: _labels, ...listing } = found.value;
      return { ok: true, value: listing };
    },

    async listLabelled(agentId, given) {
      const found = await listFolder(bucket, agentId, given);
      if (!found.ok) return found;
      const { etags: _etags, ...listing } = found.value;
      const folders = await folderLabels(bucket, folderPrefix(agentId, ""), listing.directories);
      return { ok: true, value: { ...listing, labels: new Map([...listing.labels, ...folders]) } };
    },

    async read(agentId, given, maxBytes = LIMITS.workspaceFileBytes) {
      const path = parsePath(given);
      if (!path.ok) return path;
      let object = await guarded(`read \`${path.value}\``, () => bucket.get(fileKey(agentId, path.value)));
      const global = globalSkillKey(path.value);
      if (object.ok && !object.value && global !== undefined) object = await guarded(`read \`${path.value}\``, () => bucket.get(global));
      if (!object.ok) return object;
      const found = object.value;
      if (found && isMark(found)) await guarded("be closed", () => found.body.cancel());
      const builtin = found && !isMark(found) ? undefined : builtinFile(path.value);
      if (builtin !== undefined) return { ok: true, value: { path: path.value, ...builtin } };
      if (!found || isMark(found)) return notFound(agentId, path.value);
      return textOf(path.value, found, maxBytes, found.etag, found.uploaded);
    },

    async write(agentId, given, content, options = {}) {
      const path = writable(agentId, given, options);
      return path.ok ? become(agentId, path.value, encode(content), options) : path;
    },

    async writeBytes(agentId, given, bytes, maxBytes, options = {}) {
      const path = writable(agentId, given);
      return path.ok ? become(agentId, path.value, bytes, options, maxBytes) : path;
    },

    async own(agentId, given) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const object = await guarded(`read \`${path.value}\``, () => bucket.get(fileKey(agentId, path.value)));
      if (!object.ok) return object;
      const found = object.value;
      if (found && isMark(found)) await guarded("be closed", () => found.body.cancel());
      if (!found || isMark(found)) return { ok: true, value: undefined };
      return textOf(path.value, found, LIMITS.workspaceFileBytes, found.etag, found.uploaded);
    },

    async taintOf(agentId, given) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const head = await guarded(`read \`${path.value}\``, () => bucket.head(fileKey(agentId, path.value)));
      if (!head.ok) return head;
      // Its text may still be in the search index, and its label went with it.
      if (!head.value || isMark(head.value)) return { ok: true, value: { label: "world", source: "a file that is gone" } };
      return { ok: true, value: taintOf(head.value) };
    },

    async update(agentId, given, change, callId, { by, taint, before, ifMatch, whole } = {}) {
      const path = writable(agentId, given);
      if (!path.ok) return path;
      return replacer.replace(
        agentId,
        path.value,
        (current) => {
          if (current?.calls.includes(callId)) return { ok: true, value: { kind: "done" } };
          if (!isSeen(ifMatch, current?.object)) return conflict(path.value);
          if (current && !current.bytes)
            return failure(
              "file.too_large",
              `\`${path.value}\` has ${current.object.size} bytes; files have at most ${LIMITS.workspaceFileBytes}.`,
            );
          const text = current?.bytes && asText(current.bytes.buffer);
          if (current && text === undefined) return failure("file.binary", `\`${path.value}\` is not text.`);
          const next = change(text);
          if (!next.ok) return next;
          const bytes = encode(next.value);
          const old = current === undefined || whole === true ? undefined : taintOf(current.object);
          const label = taint === undefined ? old : higher(taint, old);
          return { ok: true, value: { kind: "put", bytes, calls: [...(current?.calls ?? []), callId], ...writer(by, label) } };
        },
        false,
        before,
      );
    },

    async delete(agentId, given, { before, ifMatch, permanently, ...options } = {}) {
      const path = changeable(agentId, given, options);
      if (!path.ok) return path;
      if (ifMatch !== undefined) {
        const head = await guarded(`read \`${path.value}\``, () => bucket.head(fileKey(agentId, path.value)));
        if (!head.ok) return head;
        // A file that is gone is what a repeated deletion wants.
        if (head.value !== null && !isMark(head.value) && !isSeen(ifMatch, head.value)) return conflict(path.value);
      }
      const gone = await replacer.remove(agentId, path.value, { before, permanently });
      if (!gone.ok) return gone;
      if (gone.value === "absent") return notFound(agentId, path.value);
      return { ok: true, value: { path: path.value, deleted: true, kept: gone.value === "kept" } };
    },

    async log(agentId, given) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const [head, kept] = await Promise.all([
        guarded(`read \`${path.value}\``, () => bucket.head(fileKey(agentId, path.value))),
        versions.list(agentId, path.value),
      ]);
      if (!head.ok) return head;
      if (!kept.ok) return kept;
      const object = head.value && !isMark(head.value) ? head.value : undefined;
      if (!object && kept.value.length === 0) return notFound(agentId, path.value);
      const by = object && byOf(object);
      const current = object && {
        version: versionId(object.uploaded.getTime(), object.etag),
        at: object.uploaded.getTime(),
        sizeBytes: object.size,
        ...(by === undefined ? {} : { by }),
      };
      // After an interrupted change the newest version can equal the current file.
      const earlier = kept.value.filter(({ version }) => version !== current?.version).slice(0, LIMITS.versionsKept);
      return { ok: true, value: { path: path.value, current, versions: earlier } };
    },

    async readVersion(agentId, given, name, maxBytes = LIMITS.workspaceFileBytes) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const found = await version(agentId, path.value, name);
      if (!found.ok) return found;
      return textOf(path.value, found.value.object, maxBytes, found.value.etag, new Date(found.value.at));
    },

    async state(agentId, given) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const found = await guarded(`read \`${path.value}\``, async () => {
        const object = await bucket.get(fileKey(agentId, path.value));
        if (!object || !isMark(object)) return object;
        await object.body.cancel();
        return null;
      });
      if (!found.ok) return found;
      const object = found.value;
      if (!object) return { ok: true, value: undefined };
      if (object.size > LIMITS.workspaceFileBytes) {
        await guarded("be closed", () => object.body.cancel());
        return { ok: true, value: { version: idOf(object) } };
      }
      const bytes = await guarded(`read \`${path.value}\``, () => object.arrayBuffer());
      return bytes.ok ? { ok: true, value: { version: idOf(object), sha256: await sha256Of(new Uint8Array(bytes.value)) } } : bytes;
    },

    async hasVersion(agentId, given, name) {
      const path = parsePath(given);
      if (!path.ok) return path;
      const found = await version(agentId, path.value, name);
      if (!found.ok) return found.error.reason === "path.not_found" ? { ok: true, value: false } : found;
      await guarded("be closed", () => found.value.object.body.cancel());
      return { ok: true, value: true };
    },

    versionOf: idOf,

    async restore(agentId, given, name, options = {}) {
      const path = writable(agentId, given);
      if (!path.ok) return path;
      const found = await version(agentId, path.value, name);
      if (!found.ok) return found;
      const { object } = found.value;
      if (object.size > LIMITS.workspaceFileBytes) {
        await guarded("be closed", () => object.body.cancel());
        return failure("file.too_large", `This version has ${object.size} bytes; files have at most ${LIMITS.workspaceFileBytes}.`);
      }
      const bytes = await guarded("read the version", () => object.arrayBuffer());
      // The owner restores a content, and says nothing about who wrote it.
      const taint = taintOf(object);
      return bytes.ok
        ? become(agentId, path.value, new Uint8Array(bytes.value), { ...options, ...(taint === undefined ? {} : { taint }) })
        : bytes;
    },
  };
}
