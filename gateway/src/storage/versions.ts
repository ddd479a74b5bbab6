/**
 * Stores earlier versions of workspace files: at most `LIMITS.versionsKept` per file, outside the workspace, so that no tool can
 * reach them. A version's key derives from its content and write time, so storing a version is idempotent. Must not change
 * the files themselves.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { type Result, storageFailed } from "../ports/result.ts";
import { isUnsure, TAINT_LABELS, type Taint } from "../ports/taint.ts";
import { type Bucket, guarded, hasBody } from "./bucket.ts";
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

/** The writer; custom metadata of files and versions. */
export const BY = "by";
const MAX_BY_CHARS = 256;
/** How many versions over the limit are allowed, so that not every write has to prune. */
export const PRUNE_EVERY = 8;
/** Larger files can only come from outside. They get no version, so they are not overwritten. */
export const MAX_KEPT_BYTES = LIMITS.mediaBytes;

export interface Version {
  readonly version: VersionId;
  /** When the content was written; epoch ms. */
  readonly at: number;
  readonly sizeBytes: number;
  readonly by?: string;
  /** When the version was stored; epoch ms. */
  readonly replacedAt: number;
}
export interface Versions {
  /** Stores `object` as a version. `bytes` is its whole content. */
  keep(agentId: string, path: WorkspacePath, object: R2Object, bytes: Uint8Array<ArrayBuffer> | ReadableStream): Promise<Result<void>>;
  /** Newest first. */
  list(agentId: string, path: WorkspacePath): Promise<Result<readonly Version[]>>;
  /** Null when there is no such version. */
  get(agentId: string, path: WorkspacePath, id: VersionId): Promise<Result<R2ObjectBody | null>>;
  /** Prunes the versions over the limit. A failure is harmless: the next call retries. */
  prune(agentId: string, path: WorkspacePath): Promise<void>;
}

export const idOf = (object: R2Object): VersionId => versionId(object.uploaded.getTime(), object.etag);
export const byOf = (object: R2Object): string | undefined => object.customMetadata?.[BY];
export const byMetadata = (by: string | undefined): Record<string, string> =>
  by === undefined || by === "" ? {} : { [BY]: by.toWellFormed().slice(0, MAX_BY_CHARS) };

/** Who may have written the content (rule TA14); custom metadata of files and versions. */
const TAINT = "taint";
export const taintOf = (object: R2Object): Taint | undefined => taintIn(taintText(object));
/** The label as it stands in the metadata. */
export const taintText = ({ customMetadata }: Pick<R2Object, "customMetadata">): string | undefined => customMetadata?.[TAINT];
export function taintIn(text: string | undefined): Taint | undefined {
  const [label, source = ""] = text?.split(" ") ?? [];
  const known = TAINT_LABELS.find((name) => name === label);
  if (label === undefined) return undefined;
  // A label that no version of GSV wrote is read as the highest one.
  return { label: known ?? "world", source: decoded(source) };
}
export const taintMetadata = (taint: Taint | undefined): Record<string, string> =>
  isUnsure(taint) ? { [TAINT]: `${taint.label} ${encodeURIComponent(taint.source.toWellFormed())}` } : {};
function decoded(source: string): string {
  try {
    return decodeURIComponent(source);
  } catch {
    return "an unreadable source";
  }
}

/** Stores an object that is too large for memory as a version. */
export async function keepStream(versions: Versions, agentId: string, path: WorkspacePath, object: R2ObjectBody): Promise<Result<void>> {
  const sized = new FixedLengthStream(object.size);
  const [kept, copied] = await Promise.all([
    versions.keep(agentId, path, object, sized.readable),
    guarded(`read \`${path}\``, () => object.body.pipeTo(sized.writable)),
  ]);
  // The stream of a version that is stored already is cancelled, not read.
  return kept.ok || copied.ok ? kept : copied;
}

/** Newest first, by the time of storing, because a disk's own times are whole seconds. */
const newestFirst = (a: Version, b: Version): number => b.replacedAt - a.replacedAt || b.at - a.at || (a.version < b.version ? 1 : -1);

export function createVersions(bucket: Bucket): Versions {
  const list: Versions["list"] = async (agentId, path) =>
    guarded("list the versions", async () => {
      const versions: Version[] = [];
      const prefix = `${versionsPrefix(agentId, path)}@`;
      let cursor: string | undefined;
      // More pages than there can be versions; an endless list must not block forever.
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
      const put = await guarded(`store the earlier version of \`${path}\`, so nothing was changed`, () =>
        bucket.put(versionKey(agentId, path, idOf(object)), bytes, {
          onlyIf: { etagDoesNotMatch: "*" },
          httpMetadata: { contentType: contentTypeOf(path) },
          customMetadata: { ...byMetadata(byOf(object)), ...taintMetadata(taintOf(object)) },
        }),
      );
      return put.ok ? { ok: true, value: undefined } : put;
    },
    async get(agentId, path, id) {
      const got = await guarded("read the version", () => bucket.get(versionKey(agentId, path, id)));
      if (!got.ok) return got;
      if (got.value && !hasBody(got.value)) return storageFailed("The version could not be read.");
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
