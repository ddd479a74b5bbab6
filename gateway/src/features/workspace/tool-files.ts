/**
 * The agent's files for native tools: the workspace store, skills, and files to send. A run reads a skill only as it was approved, and
 * the owner's run announces a change of a skill before it writes (gateway rule SK4).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Media } from "../../../../protocol/gen/types.ts";
import { cleanFilename, HEAD_BYTES, kindOf, normaliseType, typeOf } from "../../storage/media-kinds.ts";
import { uuidFor } from "../../storage/media-names.ts";
import type { AgentFiles } from "../../ports/agent-files.ts";
import type { FileVersion } from "../../ports/changes.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import type { NativeToolContext } from "../../ports/native-tools.ts";
import { failure, type Result } from "../../ports/result.ts";
import { sha256Of, skillPath } from "../../storage/skills/folder.ts";
import { KeyedLock } from "../../storage/keyed-lock.ts";
import { type Bucket, guarded, hasBody } from "../../storage/bucket.ts";
import { contentTypeOf, fileKey, isOwnKey, parsePath } from "../../storage/keys.ts";
import { putMedia } from "../../storage/media-objects.ts";
import type { Current } from "../../storage/replace.ts";
import { idOf } from "../../storage/versions.ts";
import { higher, isUnsure, type Taint } from "../../ports/taint.ts";
import { createQuarantine } from "../../storage/workspace/quarantine.ts";
import { createWorkspaceStore, type WriteOptions } from "../../storage/workspace/store.ts";
import { edited } from "./changes.ts";

/** A file of a skill, only as it was approved; undefined when the path is not inside a skill. `path` is checked already. */
export interface ReadSkill {
  text(path: string, context: NativeToolContext): Promise<Result<string> | undefined>;
  bytes(path: string, context: NativeToolContext): Promise<Result<Uint8Array<ArrayBuffer>> | undefined>;
}

/** The text of a stored file, by its key. */
export type ReadMedia = (block: MediaBlock) => Promise<Result<string>>;

const fileVersion = async ({ object, bytes }: Current): Promise<FileVersion> => ({
  version: idOf(object),
  ...(bytes === undefined ? {} : { sha256: await sha256Of(bytes) }),
});

export function createAgentFiles(bucket: Bucket, readSkill: ReadSkill, readMedia: ReadMedia): AgentFiles {
  const locks = new KeyedLock();
  const store = createWorkspaceStore(bucket);
  const quarantine = createQuarantine(bucket);
  /** A change with the session as the writer. Changes of one skill are serialised, so that what was announced is still true when it is written. */
  const change = <T>(given: string, context: NativeToolContext, tool: string, work: (options: WriteOptions) => Promise<T>): Promise<T> => {
    const { identity, gateway, callId, expect, runId, taint } = context;
    const by = `agent:${identity.key}`;
    const options: WriteOptions = {
      by,
      // The owner has seen a change with an expected state, and vouches for it (rule TA14).
      ...(expect === undefined ? (isUnsure(taint) ? { taint } : {}) : { ifMatch: expect }),
      before: async (path, content, current) => {
        const sha256 = content === undefined ? undefined : await sha256Of(content);
        if (skillPath(path) !== undefined) {
          const after = sha256 === undefined ? {} : { sha256 };
          const allowed = await gateway.skillWriting({ agentId: identity.agentId, path, by, ...after });
          if (!allowed.ok) return allowed;
        }
        // After the last check and before the change (rule UN5).
        await gateway.fileChanging({
          callId,
          sessionKey: identity.key,
          ...(runId === undefined ? {} : { runId }),
          tool,
          agentId: identity.agentId,
          path,
          ...(current === undefined ? {} : { before: await fileVersion(current) }),
          ...(sha256 === undefined ? {} : { after: sha256 }),
        });
        return { ok: true, value: undefined };
      },
    };
    const path = parsePath(given);
    const asked = path.ok ? skillPath(path.value) : undefined;
    return asked === undefined ? work(options) : locks.run(asked.name, () => work(options));
  };
  return {
    list: store.listLabelled,
    read: store.read,
    own: store.own,
    async taintOf(agentId, paths) {
      const all = await Promise.all([...new Set(paths)].map((path) => store.taintOf(agentId, path)));
      // A file whose label can't be read counts as anyone's.
      const labels = all.map((label): Taint | undefined =>
        label.ok ? label.value : { label: "world", source: "a file of the workspace" },
      );
      return labels.reduce((known, next) => (known === undefined ? next : higher(known, next)), undefined);
    },
    update: (path, context, next, whole = false) =>
      change(path, context, "gsv__WriteFile", (options) =>
        store.update(context.identity.agentId, path, next, context.callId, { ...options, whole }),
      ),
    async quarantine(given, { identity, callId, now, taint }, asked) {
      const path = parsePath(given);
      if (!path.ok) return path;
      if (taint === undefined) return failure("internal", "Only a conversation with a label has a quarantine.");
      if (asked.kind === "edit") {
        // An edit that cannot be made is no memory.
        const now = await store.own(identity.agentId, path.value);
        const next = now.ok ? edited({ path: given, ...asked })(now.value?.content) : now;
        if (!next.ok) return next;
      }
      return quarantine.add(identity.agentId, { path: path.value, change: asked, taint, sessionKey: identity.key, callId, at: now });
    },
    delete: (path, context) => change(path, context, "gsv__DeleteFile", (options) => store.delete(context.identity.agentId, path, options)),
    async skill(given, context) {
      const path = parsePath(given);
      return path.ok ? readSkill.text(path.value, context) : undefined;
    },
    async received(path, context) {
      if (!MEDIA_NAME.test(path)) return undefined;
      const file = await stored(bucket, keyOf(path, context), path, context);
      if (!file.ok) return file;
      const { type, mimeType, r2Key = "", filename, size = 0 } = file.value;
      return readMedia({ type, mimeType, r2Key, sizeBytes: size, ...(filename === undefined ? {} : { filename }) });
    },
    async outgoing(paths, context) {
      const out: Media[] = [];
      for (const [index, path] of paths.entries()) {
        const isStored = MEDIA_NAME.test(path) || path.startsWith("media/");
        const file = isStored
          ? await stored(bucket, keyOf(path, context), path, context)
          : await copied(bucket, readSkill, path, index, context);
        if (!file.ok) return file;
        out.push(file.value);
      }
      return { ok: true, value: out };
    },
  };
}

const mediaOf = (r2Key: string, mimeType: string, filename: string | undefined, size: number): Media => ({
  type: kindOf(mimeType),
  mimeType,
  r2Key,
  ...(filename === undefined ? {} : { filename }),
  size,
});
const missing = (path: string) => failure("path.not_found", `There is no file \`${path.slice(0, 200)}\`. Nothing was done.`);

/** A short name, as the model sees it beside each file. */
const MEDIA_NAME = /^media:([1-9][0-9]{0,14})$/;
function keyOf(path: string, { mediaKey }: NativeToolContext): string {
  const number = MEDIA_NAME.exec(path)?.[1];
  return number === undefined ? path : (mediaKey?.(Number(number)) ?? "");
}

/** A file of this session: it arrived here, or a tool made it. */
async function stored(bucket: Bucket, key: string, path: string, { identity }: NativeToolContext): Promise<Result<Media>> {
  if (!isOwnKey(identity.key, key)) return missing(path);
  const object = await guarded("look for the file", () => bucket.head(key));
  if (!object.ok) return object;
  if (object.value === null) return missing(path);
  const { httpMetadata, customMetadata, size } = object.value;
  return {
    ok: true,
    value: mediaOf(key, normaliseType(httpMetadata?.contentType ?? ""), cleanFilename(customMetadata?.["originalFilename"]), size),
  };
}
/** A copy of a workspace file as it is now: a later change of the file does not change the message. A skill's file only as it was approved. */
async function copied(
  bucket: Bucket,
  readSkill: ReadSkill,
  given: string,
  index: number,
  context: NativeToolContext,
): Promise<Result<Media>> {
  const { identity, callId, now } = context;
  const path = parsePath(given);
  if (!path.ok) return path;
  const content =
    (await readSkill.bytes(path.value, context)) ?? (await fileBytes(bucket, fileKey(identity.agentId, path.value), path.value));
  if (!content.ok) return content;
  const bytes = content.value;
  if (bytes === undefined) return missing(given);
  const mimeType = typeOf(contentTypeOf(path.value), bytes.subarray(0, HEAD_BYTES));
  const filename = cleanFilename(path.value);
  const uuid = await uuidFor(identity.key, { kind: "result", callId, index });
  const put = await putMedia(bucket, {
    sessionKey: identity.key,
    uuid,
    mimeType,
    bytes,
    ...(filename === undefined ? {} : { filename }),
    uploadedAt: now,
  });
  return put.ok ? { ok: true, value: mediaOf(put.value.key, mimeType, filename, bytes.length) } : put;
}
/** Undefined: there is no such file. */
async function fileBytes(bucket: Bucket, key: string, path: string): Promise<Result<Uint8Array<ArrayBuffer> | undefined>> {
  const object = await guarded("read the file", async () => {
    const found = await bucket.get(key);
    if (!found || !hasBody(found)) return undefined;
    return { size: found.size, bytes: found.size > LIMITS.mediaBytes ? undefined : new Uint8Array(await found.arrayBuffer()) };
  });
  if (!object.ok) return object;
  if (object.value === undefined) return { ok: true, value: undefined };
  const { bytes, size } = object.value;
  if (bytes === undefined)
    return failure("file.too_large", `\`${path}\` has ${size} bytes; a message can carry at most ${LIMITS.mediaBytes}.`);
  return { ok: true, value: bytes };
}
