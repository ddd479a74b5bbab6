/**
 * Names of stored files. A name derives from the file's origin, so that a repeated upload stores nothing twice and no sender can
 * choose the name of another sender's file. Asynchronous only because hashing is.
 */
import { toHex } from "../../../protocol/runtime/hex.ts";
import { isOwnKey, mediaKey, mediaPrefix } from "./keys.ts";

export type MediaOrigin =
  /** The n-th file of a message. */
  | { readonly kind: "message"; readonly messageId: string; readonly index: number }
  /** The n-th image of a tool's result. */
  | { readonly kind: "result"; readonly callId: string; readonly index: number }
  /** Uploaded by a client, under an id that the client chose. */
  | { readonly kind: "upload"; readonly id: string }
  /** Uploaded by the machine that runs the call. */
  | { readonly kind: "call"; readonly callId: string; readonly nodeId: string };

function words(origin: MediaOrigin): readonly (string | number)[] {
  switch (origin.kind) {
    case "message":
      return ["message", origin.messageId, origin.index];
    case "result":
      return ["result", origin.callId, origin.index];
    case "upload":
      return ["upload", origin.id];
    case "call":
      return ["call", origin.callId, origin.nodeId];
  }
}
/** A UUID of version 8 (RFC 9562): the first bits of a SHA-256. */
export async function uuidFor(sessionKey: string, origin: MediaOrigin): Promise<string> {
  const text = JSON.stringify([sessionKey, ...words(origin)]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))).subarray(0, 16);
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x80;
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80;
  const hex = toHex(digest);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
export const keyFor = async (sessionKey: string, origin: MediaOrigin, mimeType: string): Promise<string> =>
  mediaKey(sessionKey, await uuidFor(sessionKey, origin), mimeType);

/** Whether the key belongs to a file of this origin, for any type. */
export async function isKeyOf(sessionKey: string, origin: MediaOrigin, key: string): Promise<boolean> {
  return isOwnKey(sessionKey, key) && key.startsWith(`${mediaPrefix(sessionKey)}${await uuidFor(sessionKey, origin)}.`);
}
