/**
 * Stores a received file in the workspace (rules TF3, TF5, TF7): its parts are joined under the file's key in one conditional write, which the
 * bucket accepts only with the right sha256. Only plain files: what defines an agent, its memory and its records have writers of their own.
 */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { pause, pieces } from "../../../../protocol/runtime/pieces.ts";
import { failure, type Failure, type Result } from "../../ports/result.ts";
import type { Taint } from "../../ports/taint.ts";
import { type Bucket, guarded, hasBody } from "../bucket.ts";
import { contentTypeOf, fileKey, transferPartKey, transferPartsPrefix, type WorkspacePath } from "../keys.ts";
import { conflict, isMark, tooLargeToKeep } from "../replace.ts";
import { byMetadata, createVersions, keepStream, MAX_KEPT_BYTES, taintMetadata } from "../versions.ts";
import { receiveProblem } from "./protection.ts";

export interface Received {
  /** The id of the transfer. */
  readonly id: string;
  readonly agentId: string;
  readonly path: WorkspacePath;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly replaces: boolean;
  readonly by: string;
  readonly taint?: Taint;
}

/** The id of the transfer, in the metadata of its file: a repeated write finds its own. */
const TRANSFER = "transfer";
/** Objects that are removed at once. A bucket takes 1,000. */
const DELETE_BATCH = 500;
/** More than the largest file has. */
const DELETE_BATCHES = 16;

const bytesOf = (hex: string): ArrayBuffer => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)).buffer;

/** `alive` is called with each piece that was read. */
export async function sha256OfStream(stream: ReadableStream, alive: () => void): Promise<string> {
  const digest = new crypto.DigestStream("SHA-256");
  const writer = digest.getWriter();
  for await (const piece of pieces(stream)) {
    alive();
    await writer.write(piece);
  }
  await writer.close();
  return toHex(await digest.digest);
}

/** The current file; undefined: none. */
export async function currentFile(bucket: Bucket, agentId: string, path: WorkspacePath): Promise<Result<R2Object | undefined>> {
  const head = await headOf(bucket, agentId, path);
  return head.ok ? { ok: true, value: fileIn(head.value) } : head;
}
/** As it is stored: also the mark of a file that is being deleted. */
const headOf = (bucket: Bucket, agentId: string, path: WorkspacePath): Promise<Result<R2Object | null>> =>
  guarded(`read \`${path}\``, () => bucket.head(fileKey(agentId, path)));
const fileIn = (head: R2Object | null): R2Object | undefined => (head && !isMark(head) ? head : undefined);
/** Whether files of the workspace lie below this path. */
export async function isFolder(bucket: Bucket, agentId: string, path: WorkspacePath): Promise<Result<boolean>> {
  const below = await guarded(`read \`${path}\``, () => bucket.list({ prefix: `${fileKey(agentId, path)}/`, limit: 1 }));
  return below.ok ? { ok: true, value: below.value.objects.length > 0 } : below;
}
/** Why a file can't have this path: something is in its way. On a disk, a file and a folder can't have one name. */
export async function treeProblem(bucket: Bucket, agentId: string, path: WorkspacePath): Promise<Failure | undefined> {
  const problem = (message: string, hint: string): Failure => ({ ok: false, error: { reason: "transfer.bad_endpoint", message, hint } });
  const folder = await isFolder(bucket, agentId, path);
  if (!folder.ok) return folder;
  if (folder.value) return problem(`\`${path}\` is a folder of the workspace.`, `Copy into it: write \`gsv:${path}/\`.`);
  const names = path.split("/");
  for (let depth = 1; depth < names.length; depth++) {
    const above = names.slice(0, depth).join("/") as WorkspacePath;
    const file = await currentFile(bucket, agentId, above);
    if (!file.ok) return file;
    if (file.value !== undefined)
      return problem(`\`${above}\` is a file of the workspace, so nothing can be in it.`, "Choose another path.");
  }
  return undefined;
}
/** Why a file that exists is not replaced. */
export function replaceProblem(path: WorkspacePath, current: R2Object | undefined, replaces: boolean): Failure | undefined {
  if (current === undefined) return undefined;
  if (!replaces)
    return {
      ok: false,
      error: {
        reason: "file.exists",
        message: `\`${path}\` exists already.`,
        hint: "Add `--force` to replace it, or choose another name.",
      },
    };
  return current.size <= MAX_KEPT_BYTES ? undefined : tooLargeToKeep(path, current);
}

export async function storeReceived(bucket: Bucket, file: Received, alive: () => void): Promise<Result<void>> {
  const { id, agentId, path, sizeBytes, sha256, replaces, by, taint } = file;
  const key = fileKey(agentId, path);
  const refused = receiveProblem(agentId, path);
  if (refused !== undefined) return refused;
  const head = await headOf(bucket, agentId, path);
  if (!head.ok) return head;
  // An earlier attempt has stored it, and was interrupted right after. A program may use an id again after a day, for other bytes.
  const { checksums: before } = head.value ?? {};
  const isSame = head.value?.size === sizeBytes && before?.sha256 !== undefined && toHex(before.sha256) === sha256;
  if (head.value?.customMetadata?.[TRANSFER] === id && isSame) return { ok: true, value: undefined };
  const current = fileIn(head.value);
  const problem = replaceProblem(path, current, replaces);
  if (problem !== undefined) return problem;
  if (current !== undefined) {
    const kept = await keepVersion(bucket, agentId, path, current);
    if (!kept.ok) return kept;
  }
  const onlyIf: R2Conditional = head.value ? { etagMatches: head.value.etag } : { etagDoesNotMatch: "*" };
  const put = await guarded(`write \`${path}\``, () =>
    joined(bucket, file, alive, (body) =>
      bucket.put(key, body, {
        sha256: bytesOf(sha256),
        onlyIf,
        httpMetadata: { contentType: contentTypeOf(path) },
        customMetadata: { ...byMetadata(by), ...taintMetadata(taint), [TRANSFER]: id },
      }),
    ),
  );
  if (!put.ok) return (await hasRightParts(bucket, file, alive)) === false ? differs() : put;
  if (put.value === null) return conflict(path);
  const stored = await headOf(bucket, agentId, path);
  if (!stored.ok) return stored;
  if (stored.value?.customMetadata?.[TRANSFER] !== id) return conflict(path);
  const { size, checksums } = stored.value;
  const isRight = size === sizeBytes && (checksums.sha256 === undefined || toHex(checksums.sha256) === sha256);
  return isRight ? { ok: true, value: undefined } : differs();
}

const differs = (): Failure => failure("transfer.checksum", "The copy differs from the source, so it was removed.");

/** Removes the parts of a transfer. True: there are none. What could not be removed is in no file. */
export async function removeParts(bucket: Bucket, id: string): Promise<boolean> {
  for (let batch = 0; batch < DELETE_BATCHES; batch++) {
    const removed = await guarded("remove the parts of a copy", async () => {
      const { objects } = await bucket.list({ prefix: transferPartsPrefix(id), limit: DELETE_BATCH });
      if (objects.length > 0) await bucket.delete(objects.map(({ key }) => key));
      return objects.length;
    });
    if (!removed.ok) return false;
    if (removed.value < DELETE_BATCH) return batch === 0 && removed.value === 0;
  }
  return false;
}

async function keepVersion(bucket: Bucket, agentId: string, path: WorkspacePath, current: R2Object): Promise<Result<void>> {
  const object = await guarded(`read \`${path}\``, () => bucket.get(fileKey(agentId, path), { onlyIf: { etagMatches: current.etag } }));
  if (!object.ok) return object;
  const found = object.value;
  if (!found || !hasBody(found)) return conflict(path);
  return keepStream(createVersions(bucket), agentId, path, found);
}

const joined = <T>(
  bucket: Bucket,
  file: Received,
  alive: () => void,
  use: (body: ReadableStream | Uint8Array<ArrayBuffer>) => Promise<T>,
): Promise<T> => joinedParts(bucket, file, LIMITS.transferStoredBytes, alive, use);

/** Gives parts of this size, and a last one, as one stream to `use`. Throws when a part is missing. */
export async function joinedParts<T>(
  bucket: Bucket,
  { id, sizeBytes }: Pick<Received, "id" | "sizeBytes">,
  partBytes: number,
  alive: () => void,
  use: (body: ReadableStream | Uint8Array<ArrayBuffer>) => Promise<T>,
): Promise<T> {
  if (sizeBytes === 0) return use(new Uint8Array(0));
  const sized = new FixedLengthStream(sizeBytes);
  const copying = (async () => {
    try {
      for (let number = 0; number * partBytes < sizeBytes; number++) {
        const part = await bucket.get(transferPartKey(id, number));
        if (!part || !hasBody(part)) throw new Error("a part is missing");
        await part.body.pipeTo(sized.writable, { preventClose: true });
        alive();
        await pause();
      }
      await sized.writable.close();
    } catch (error) {
      await sized.writable.abort(error).catch(() => undefined);
      throw error;
    }
  })();
  const [used, copied] = await Promise.allSettled([use(sized.readable), copying]);
  if (used.status === "rejected") throw used.reason;
  // A write that was refused by its condition reads nothing, and its stream is cancelled.
  if (copied.status === "rejected" && used.value !== null) throw copied.reason;
  return used.value;
}

/** Whether the parts have the right content. Undefined: they can't be read now. */
async function hasRightParts(bucket: Bucket, file: Received, alive: () => void): Promise<boolean | undefined> {
  const read = await guarded("read the copy", () =>
    joined(bucket, file, alive, async (body) =>
      body instanceof Uint8Array ? toHex(await crypto.subtle.digest("SHA-256", body)) : sha256OfStream(body, alive),
    ),
  );
  return read.ok ? read.value === file.sha256 : undefined;
}
