/** Objects of the bucket as pieces, and back (rules MV5, MV13). A large object is staged in parts and joined in one write that the bucket checks. */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import { decodeBase64, encodeBase64 } from "../../storage/base64.ts";
import { transferPartKey } from "../../storage/keys.ts";
import { joinedParts } from "../../storage/workspace/received.ts";
import type { PieceRecord } from "./records.ts";

export const OBJECT_PIECE_BYTES = 327_680;
const LIST = 500;
/** Keys that belong to this deployment or this gateway, and not to the home. */
const STAYING = ["audit/", "gsv/", "transfers/"];
export const isMoved = (key: string): boolean => !STAYING.some((prefix) => key.startsWith(prefix));

const texts = (value: object | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(value ?? {}).flatMap(([name, item]) => (typeof item === "string" ? [[name, item]] : [])));

/** Objects that move, after a key. */
export async function objectsAfter(bucket: Bucket, after: string, limit = LIST): Promise<{ found: readonly R2Object[]; next?: string }> {
  const page = await bucket.list({ limit, ...(after === "" ? {} : { startAfter: after }) });
  const last = page.objects.at(-1)?.key;
  return {
    found: page.objects.filter(({ key }) => isMoved(key)),
    ...(page.truncated && last !== undefined ? { next: last } : {}),
  };
}

/** A piece from `offset` on; undefined: the object is another one by now. */
export async function readPiece(
  bucket: Bucket,
  key: string,
  etag: string,
  sizeBytes: number,
  offset: number,
): Promise<PieceRecord | undefined> {
  const length = Math.min(OBJECT_PIECE_BYTES, sizeBytes - offset);
  const range = length < sizeBytes ? { range: { offset, length } } : {};
  const object = await bucket.get(key, { onlyIf: { etagMatches: etag }, ...range });
  if (object === null || !hasBody(object)) return undefined;
  const bytes = new Uint8Array(await object.arrayBuffer());
  if (bytes.length !== length) return undefined;
  const md5 = object.checksums.md5 && toHex(object.checksums.md5);
  return {
    kind: "piece",
    key,
    sizeBytes,
    ...(md5 === undefined ? {} : { md5 }),
    http: texts(object.httpMetadata),
    custom: texts(object.customMetadata),
    offset,
    base64: encodeBase64(bytes),
  };
}

/** Stores a piece; the last one of an object makes the object. False: it does not fit. Can be repeated. */
export async function writePiece(bucket: Bucket, moveId: string, piece: PieceRecord): Promise<boolean> {
  const { key, sizeBytes, offset, md5, http, custom } = piece;
  const bytes = decodeBase64(piece.base64);
  const isLast = offset + (bytes?.length ?? 0) === sizeBytes;
  if (bytes === undefined || !isMoved(key) || offset % OBJECT_PIECE_BYTES !== 0 || (!isLast && bytes.length !== OBJECT_PIECE_BYTES))
    return false;
  const options = { httpMetadata: { ...http }, customMetadata: { ...custom }, ...(md5 === undefined ? {} : { md5 }) };
  if (offset === 0 && isLast) {
    await bucket.put(key, bytes, options);
    return true;
  }
  const number = offset / OBJECT_PIECE_BYTES;
  await bucket.put(transferPartKey(moveId, number), bytes);
  if (!isLast) return true;
  await joinedParts(
    bucket,
    { id: moveId, sizeBytes },
    OBJECT_PIECE_BYTES,
    () => undefined,
    (body) => bucket.put(key, body, options),
  );
  await removePieces(bucket, moveId, number + 1);
  return true;
}
async function removePieces(bucket: Bucket, moveId: string, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, number) => transferPartKey(moveId, number));
  for (let at = 0; at < keys.length; at += 1000) await bucket.delete(keys.slice(at, at + 1000));
}

export async function countObjects(bucket: Bucket): Promise<{ readonly objects: number; readonly bytes: number }> {
  let [objects, bytes, after] = [0, 0, ""];
  for (;;) {
    const { found, next } = await objectsAfter(bucket, after);
    objects += found.length;
    bytes += found.reduce((sum, { size }) => sum + size, 0);
    if (next === undefined) return { objects, bytes };
    after = next;
  }
}

/** Removes all that an import has written, and what it has staged. */
export async function emptyBucket(bucket: Bucket, moveId: string): Promise<void> {
  const staged = `transfers/${moveId}/`;
  for (const prefix of [staged, ""]) {
    let after = "";
    for (;;) {
      const page = await bucket.list({ prefix, limit: LIST, ...(after === "" ? {} : { startAfter: after }) });
      const keys = page.objects.map(({ key }) => key).filter((key) => prefix !== "" || isMoved(key));
      if (keys.length > 0) await bucket.delete(keys);
      after = page.objects.at(-1)?.key ?? "";
      if (!page.truncated) break;
    }
  }
}
