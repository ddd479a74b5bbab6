/**
 * What workspace files were before they were changed: at most `LIMITS.versionsKept` of each, outside of the workspace, so that
 * no tool reaches them. A version's key derives from what it holds and when that had been written, and what is there is never
 * put again: keeping twice is keeping once. Never touches the files themselves.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Result } from "../ports/result.ts";
import { type Bucket, failure, guarded, hasBody } from "./bucket.ts";
import {
  contentTypeOf,
  type VersionId,
  versionId,
  versionKey,
  versionOfKey,
  versionsPrefix,
  parseVersionId,
  type WorkspacePath,
} from "./keys.ts";

/** Who wrote it; custom metadata of files and of versions. */
export const BY = "by";
const MAX_BY_CHARS = 256;
/** Versions that a file may have over the limit, so that not every write has to look for what to remove. */
export const PRUNE_EVERY = 8;
/** Larger files, which only a person can have put there, are not kept, and so not overwritten. */
export const MAX_KEPT_BYTES = LIMITS.mediaBytes;

export interface Version {
  readonly version: VersionId;
  /** When it had been written; epoch ms. */
  readonly at: number;
  readonly sizeBytes: number;
  readonly by?: string;
  /** When it was put away; epoch ms. */
  readonly replacedAt: number;
}
export interface Versions {
  /** Puts away what `object` is. `bytes` is its whole content. */
  keep(agentId: string, path: WorkspacePath, object: R2Object, bytes: Uint8Array<ArrayBuffer> | ReadableStream): Promise<Result<void>>;
  /** The newest first. */
  list(agentId: string, path: WorkspacePath): Promise<Result<readonly Version[]>>;
  /** Null: there is no such version. */
  get(agentId: string, path: WorkspacePath, id: VersionId): Promise<Result<R2ObjectBody | null>>;
  /** Removes what is over the limit. Failing is harmless: the next time does it. */
  prune(agentId: string, path: WorkspacePath): Promise<void>;
}

export const idOf = (object: R2Object): VersionId => versionId(object.uploaded.getTime(), object.etag);
export const byOf = (object: R2Object): string | undefined => object.customMetadata?.[BY];
export const byMetadata = (by: string | undefined): Record<string, string> =>
  by === undefined || by === "" ? {} : { [BY]: by.toWellFormed().slice(0, MAX_BY_CHARS) };

/** The newest first: by when they were put away, because a disk's own times are whole seconds. */
const newestFirst = (a: Version, b: Version): number => b.replacedAt - a.replacedAt || b.at - a.at || (a.version < b.version ? 1 : -1);

export function createVersions(bucket: Bucket): Versions {
  const list: Versions["list"] = async (agentId, path) =>
    guarded("list the versions", async () => {
      const versions: Version[] = [];
      const prefix = `${versionsPrefix(agentId, path)}@`;
      let cursor: string | undefined;
      // Far more pages than there can be versions; a bucket that never ends its list must not hold us for ever.
      for (let page = 0; page < 20; page++) {
        const found: R2Objects = await bucket.list({
          prefix,
          delimiter: "/",
          include: ["customMetadata"],
          ...(cursor === undefined ? {} : { cursor }),
        });
        for (const object of found.objects) {
          const version = versionOfKey(object.key);
          const parsed = version === undefined ? undefined : parseVersionId(version);
          if (!parsed) continue;
          const by = byOf(object);
          versions.push({
            version: parsed.id,
            at: parsed.at,
            sizeBytes: object.size,
            ...(by === undefined ? {} : { by }),
            replacedAt: object.uploaded.getTime(),
          });
        }
        cursor = found.truncated ? found.cursor : undefined;
        if (cursor === undefined) break;
      }
      return versions.sort(newestFirst);
    });

  return {
    list,
    async keep(agentId, path, object, bytes) {
      const put = await guarded(`keep what \`${path}\` was, so nothing was changed`, () =>
        bucket.put(versionKey(agentId, path, idOf(object)), bytes, {
          onlyIf: { etagDoesNotMatch: "*" },
          httpMetadata: { contentType: contentTypeOf(path) },
          customMetadata: byMetadata(byOf(object)),
        }),
      );
      return put.ok ? { ok: true, value: undefined } : put;
    },
    async get(agentId, path, id) {
      const got = await guarded("read the version", () => bucket.get(versionKey(agentId, path, id)));
      if (!got.ok) return got;
      if (got.value && !hasBody(got.value)) return failure("storage.failed", "The version could not be read. Try again.");
      return got;
    },
    async prune(agentId, path) {
      const versions = await list(agentId, path);
      if (!versions.ok) return;
      const over = versions.value.slice(LIMITS.versionsKept);
      if (over.length === 0) return;
      await guarded("remove old versions", () => bucket.delete(over.map(({ version }) => versionKey(agentId, path, version))));
    },
  };
}
