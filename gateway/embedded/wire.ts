/**
 * The protocol between workerd's `r2Bucket` binding and the service behind it (workerd `src/workerd/api/r2-api.capnp`, `r2-rpc.c++`).
 *
 *   PUT   body = JSON request (`cf-r2-metadata-size` bytes) + object bytes      put, delete, multipart
 *   GET   header `cf-r2-request` = JSON request                                 get, head, list
 *   answer: JSON (`cf-r2-metadata-size` bytes) + object bytes; failures in header `CF-R2-Error`
 *
 * Parsing refuses what does not fit. Never touches storage.
 */
import { toHex } from "../../protocol/runtime/hex.ts";
import { isJsonObject, type JsonObject } from "../../protocol/runtime/json-object.ts";
import type { Conditions, ETagTest, RangeRequest } from "./conditions.ts";

/** Error numbers of the R2 API. */
export const CODE = {
  internal: 10001,
  noSuchKey: 10007,
  metadataTooLarge: 10012,
  invalidKey: 10020,
  invalidLimit: 10022,
  invalidArgument: 10029,
  preconditionFailed: 10031,
  badDigest: 10037,
  invalidRange: 10039,
  notImplemented: 10000,
  tooLarge: 100100,
} as const;

export class R2Failure extends Error {
  readonly status: number;
  readonly v4code: number;
  constructor(status: number, v4code: number, message: string) {
    super(message);
    this.status = status;
    this.v4code = v4code;
  }
}

export type HashName = "md5" | "sha1" | "sha256" | "sha384" | "sha512";
/** In the order of the wire's numbers. */
export const HASHES: readonly { readonly name: HashName; readonly algorithm: string; readonly bytes: number }[] = [
  { name: "md5", algorithm: "MD5", bytes: 16 },
  { name: "sha1", algorithm: "SHA-1", bytes: 20 },
  { name: "sha256", algorithm: "SHA-256", bytes: 32 },
  { name: "sha384", algorithm: "SHA-384", bytes: 48 },
  { name: "sha512", algorithm: "SHA-512", bytes: 64 },
];
/** Lower-case hex by algorithm. */
export type Checksums = { readonly [name in HashName]?: string };
export type HttpFields = Readonly<Record<string, string | number>>;
export type CustomFields = readonly { readonly k: string; readonly v: string }[];

export interface PutRequest {
  readonly method: "put";
  readonly key: string;
  readonly custom: CustomFields;
  readonly http: HttpFields;
  readonly onlyIf: Conditions | undefined;
  readonly expected: Checksums;
}
export interface ListRequest {
  readonly method: "list";
  readonly limit: number;
  readonly prefix: string;
  readonly delimiter: string;
  /** Keys up to and including this one are left out. */
  readonly after: string;
  readonly include: { readonly http: boolean; readonly custom: boolean };
}
export type WriteRequest = PutRequest | { readonly method: "delete"; readonly keys: readonly string[] };
export type ReadRequest =
  | { readonly method: "head"; readonly key: string }
  | {
      readonly method: "get";
      readonly key: string;
      readonly range: RangeRequest | undefined;
      readonly rangeHeader: string | undefined;
      readonly onlyIf: Conditions | undefined;
    }
  | ListRequest;

const MAX_LIST = 1000;
export const MAX_OBJECT_BYTES = 5_363_466_240;
/** A reader that meets an object in the middle of being replaced looks again this often. */
export const MAX_LOOKS = 5;
/** Up to here a put is handled in memory, above it is streamed. */
export const BUFFER_BYTES = 1 << 20;
const MAX_CUSTOM_BYTES = 8192;
const encoder = new TextEncoder();

// ---------------------------------------------------------------- parsing

const bad = (what: string): R2Failure => new R2Failure(400, CODE.invalidArgument, what);

function object(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw bad("The request's metadata is not JSON.");
  }
  if (!isJsonObject(value)) throw bad("The request's metadata is not an object.");
  return value;
}
function string(json: JsonObject, name: string): string | undefined {
  const value = json[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw bad(`${name} is not a string.`);
  return value;
}
/** 64-bit numbers come as strings. */
function integer(json: JsonObject, name: string): number | undefined {
  const value = json[name];
  if (value === undefined) return undefined;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isInteger(number) || number < 0) throw bad(`${name} is not a whole number.`);
  return number;
}
function list(json: JsonObject, name: string): readonly unknown[] | undefined {
  const value = json[name];
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw bad(`${name} is not a list.`);
  return value;
}
function required(json: JsonObject, name: string): string {
  const value = string(json, name);
  if (value === undefined) throw bad(`${name} is missing.`);
  return value;
}

function etags(json: JsonObject, name: string): ETagTest[] | undefined {
  return list(json, name)?.map((item) => {
    if (!isJsonObject(item)) throw bad(`${name} is not a list of etags.`);
    const { type } = item;
    if (type === "wildcard") return { type };
    if (type === "strong" || type === "weak") return { type, value: required(item, "value") };
    throw bad(`${name} has an etag of an unknown type.`);
  });
}
function conditions(json: JsonObject): Conditions | undefined {
  const { onlyIf } = json;
  if (onlyIf === undefined) return undefined;
  if (!isJsonObject(onlyIf)) throw bad("onlyIf is not an object.");
  return present({
    etagMatches: etags(onlyIf, "etagMatches"),
    etagDoesNotMatch: etags(onlyIf, "etagDoesNotMatch"),
    uploadedBefore: integer(onlyIf, "uploadedBefore"),
    uploadedAfter: integer(onlyIf, "uploadedAfter"),
    secondsGranularity: onlyIf["secondsGranularity"] === true,
  });
}
/** Without the fields that are undefined. */
function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
function customFields(json: JsonObject): CustomFields {
  const fields = (list(json, "customFields") ?? []).map((item) => {
    if (!isJsonObject(item)) throw bad("customFields is not a list of records.");
    return { k: string(item, "k") ?? "", v: string(item, "v") ?? "" };
  });
  const bytes = fields.reduce((sum, { k, v }) => sum + encoder.encode(k).length + encoder.encode(v).length, 0);
  if (bytes > MAX_CUSTOM_BYTES) throw new R2Failure(400, CODE.metadataTooLarge, `The metadata is longer than ${MAX_CUSTOM_BYTES} bytes.`);
  return fields;
}
function httpFields(json: JsonObject): HttpFields {
  const { httpFields: fields } = json;
  if (fields === undefined) return {};
  if (!isJsonObject(fields)) throw bad("httpFields is not an object.");
  return present({
    contentType: string(fields, "contentType"),
    contentLanguage: string(fields, "contentLanguage"),
    contentDisposition: string(fields, "contentDisposition"),
    contentEncoding: string(fields, "contentEncoding"),
    cacheControl: string(fields, "cacheControl"),
    cacheExpiry: integer(fields, "cacheExpiry"),
  });
}
function expectedChecksums(json: JsonObject): Checksums {
  const sums: { [name in HashName]?: string } = {};
  for (const { name, bytes } of HASHES) {
    const text = string(json, name);
    if (text === undefined) continue;
    // The wire gives md5 in base64 and the others in hex.
    const hex = name === "md5" ? base64ToHex(text) : text.toLowerCase();
    if (hex === null || hex.length !== bytes * 2 || !/^[0-9a-f]*$/.test(hex)) throw bad(`${name} is not a checksum.`);
    sums[name] = hex;
  }
  return sums;
}
function base64ToHex(text: string): string | null {
  try {
    return toHex(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
  } catch {
    return null;
  }
}

export function parseWrite(text: string): WriteRequest {
  const json = object(text);
  const method = required(json, "method");
  if (method === "put") {
    return {
      method,
      key: required(json, "object"),
      custom: customFields(json),
      http: httpFields(json),
      onlyIf: conditions(json),
      expected: expectedChecksums(json),
    };
  }
  if (method === "delete") {
    const keys = list(json, "objects") ?? [required(json, "object")];
    if (keys.length > MAX_LIST) throw bad(`At most ${MAX_LIST} objects can be deleted at once.`);
    return {
      method,
      keys: keys.map((key) => {
        if (typeof key !== "string") throw bad("objects is not a list of keys.");
        return key;
      }),
    };
  }
  throw new R2Failure(501, CODE.notImplemented, `The embedded bucket does not do ${method}. Put the object in one piece.`);
}

export function parseRead(text: string): ReadRequest {
  const json = object(text);
  const method = required(json, "method");
  if (method === "head") return { method, key: required(json, "object") };
  if (method === "get") {
    const { range } = json;
    if (range !== undefined && !isJsonObject(range)) throw bad("range is not an object.");
    return {
      method,
      key: required(json, "object"),
      range: range && present({ offset: integer(range, "offset"), length: integer(range, "length"), suffix: integer(range, "suffix") }),
      rangeHeader: string(json, "rangeHeader"),
      onlyIf: conditions(json),
    };
  }
  if (method === "list") {
    const limit = integer(json, "limit") ?? MAX_LIST;
    if (limit < 1 || limit > MAX_LIST) throw new R2Failure(400, CODE.invalidLimit, `limit must be from 1 to ${MAX_LIST}.`);
    const include = list(json, "include") ?? [];
    const cursor = string(json, "cursor");
    return {
      method,
      limit,
      prefix: string(json, "prefix") ?? "",
      delimiter: string(json, "delimiter") ?? "",
      after: cursor === undefined ? (string(json, "startAfter") ?? "") : decodeCursor(cursor),
      include: { http: include.includes(0), custom: include.includes(1) },
    };
  }
  throw new R2Failure(501, CODE.notImplemented, `The embedded bucket does not do ${method}.`);
}

export const encodeCursor = (key: string): string => toHex(encoder.encode(key));
function decodeCursor(cursor: string): string {
  if (cursor.length % 2 !== 0 || !/^[0-9a-f]*$/.test(cursor)) throw bad("cursor was not made by this bucket.");
  const bytes = Uint8Array.from(cursor.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return new TextDecoder().decode(bytes);
}

// ---------------------------------------------------------------- answering

export interface ObjectInfo {
  readonly key: string;
  readonly version: string;
  readonly size: number;
  readonly etag: string;
  /** Epoch ms. */
  readonly uploaded: number;
  readonly http: HttpFields;
  readonly custom: CustomFields;
  readonly checksums: Checksums;
}

export function objectJson(info: ObjectInfo, show = { http: true, custom: true }): Record<string, unknown> {
  return {
    name: info.key,
    version: info.version,
    size: String(info.size),
    etag: info.etag,
    uploaded: String(info.uploaded),
    ...(show.http ? { httpFields: withStrings(info.http) } : {}),
    ...(show.custom ? { customFields: info.custom } : {}),
    checksums: Object.fromEntries(
      HASHES.flatMap(({ name }, number) => (info.checksums[name] === undefined ? [] : [[String(number), info.checksums[name]]])),
    ),
    storageClass: "Standard",
  };
}
const withStrings = (fields: HttpFields): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

/** JSON, then `body` of exactly `bodyBytes` bytes. */
export function answer(json: unknown, body?: ReadableStream<Uint8Array> | Uint8Array, bodyBytes = 0): Response {
  const head = encoder.encode(JSON.stringify(json));
  const headers = { "cf-r2-metadata-size": String(head.length) };
  if (body === undefined) return new Response(head, { headers });
  if (body instanceof Uint8Array) {
    const whole = new Uint8Array(head.length + body.length);
    whole.set(head);
    whole.set(body, head.length);
    return new Response(whole, { headers });
  }
  const { readable, writable } = new FixedLengthStream(head.length + bodyBytes);
  // A reader that disconnects ends the copy, and there is no receiver for the error.
  copyAfter(head, body, writable).catch(() => undefined);
  return new Response(readable, { headers });
}
async function copyAfter(head: Uint8Array, body: ReadableStream<Uint8Array>, writable: WritableStream<Uint8Array>): Promise<void> {
  const writer = writable.getWriter();
  await writer.write(head);
  writer.releaseLock();
  await body.pipeTo(writable);
}

/** `json` is what a failed precondition of `get` still shows of the object. */
export function failure(error: R2Failure, json?: unknown): Response {
  const head = json === undefined ? null : encoder.encode(JSON.stringify(json));
  const headers = new Headers({ "CF-R2-Error": JSON.stringify({ version: 1, v4code: error.v4code, message: error.message }) });
  if (head !== null) headers.set("cf-r2-metadata-size", String(head.length));
  return new Response(head, { status: error.status, headers });
}

/** The next `size` bytes; the rest stays in the stream. */
export async function readExactly(stream: ReadableStream<Uint8Array>, size: number): Promise<Uint8Array> {
  if (size === 0) return new Uint8Array();
  const reader = stream.getReader({ mode: "byob" });
  // A sender that gives up is no failure of the storage.
  const read = await reader.readAtLeast(size, new Uint8Array(size)).catch(() => undefined);
  reader.releaseLock();
  if (read?.value?.length !== size) throw new R2Failure(400, CODE.invalidArgument, "The request ended too early.");
  return read.value;
}
