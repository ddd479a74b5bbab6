/** Requests of other services: whether a browser sent one, and its body within a size and a time. */
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";

/** A platform's server sends no Origin. A web page that makes a person's browser call this machine does. */
export function isBrowser(headers: Headers): boolean {
  const site = headers.get("Sec-Fetch-Site");
  return headers.has("Origin") || (site !== null && site !== "none");
}

/** Whether so many bytes of a body may be held. */
export type HasRoom = (bytes: number) => boolean;
const always: HasRoom = () => true;

/**
 * `large`: the body is longer, whatever its length header says. `late`: a slow sender must not occupy a slot that others need. `full`: there
 * is no room for it beside the bodies of others.
 */
export async function readAtMost(
  request: Request,
  maxBytes: number,
  withinMs: number,
  hasRoom = always,
): Promise<Uint8Array<ArrayBuffer> | "large" | "late" | "full"> {
  if (Number(request.headers.get("Content-Length") ?? "0") > maxBytes) return "large";
  const reader = request.body?.getReader();
  if (reader === undefined) return new Uint8Array();
  try {
    return await within(afterTimeout, withinMs, wholeBody(reader, maxBytes, hasRoom), () => "late" as const);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
async function wholeBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
  hasRoom: HasRoom,
): Promise<Uint8Array<ArrayBuffer> | "large" | "full"> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { value } = await reader.read();
    if (value === undefined) break;
    size += value.byteLength;
    if (size > maxBytes) return "large";
    if (!hasRoom(size)) return "full";
    chunks.push(value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
