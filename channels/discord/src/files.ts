/**
 * Files in both directions. Inbound files are fetched only from Discord's own servers, without redirects (promises S18, X18); outbound
 * files come from the gateway. Sizes are checked before bytes are read.
 */
import type { InboundFile, OutboundPart, PlatformHost } from "../../kit/src/platform.ts";
import { FileRefused } from "../../kit/src/inbox.ts";
import { isFileAddress } from "./map-content.ts";
import { fileNameOf, MAX_CHARS, MAX_FILE_BYTES, tooLargeNote } from "./map-outbound.ts";
import { asNumber, asObject } from "./map-reading.ts";

const FETCH_MS = 20_000;

export class FileGone extends Error {
  override readonly name = "FileGone";
}
export interface LoadedFile {
  readonly name: string;
  readonly data: Uint8Array;
  readonly contentType: string;
}
/** The part with its file, or with a note when the file is too large. */
export async function loadFile(
  { readFile }: Pick<PlatformHost, "readFile">,
  part: OutboundPart,
): Promise<{ readonly part: OutboundPart; readonly files: readonly LoadedFile[]; readonly filename: string | undefined }> {
  const { file } = part;
  if (!file) return { part, files: [], filename: undefined };
  const filename = fileNameOf(file.filename, file.mimeType);
  const stored = await readFile(part, MAX_FILE_BYTES);
  if (!stored) throw new FileGone(`The file ${JSON.stringify(filename)} is no longer stored.`);
  const { bytes: data } = stored;
  if (data === undefined) {
    const note = tooLargeNote(filename, stored.sizeBytes);
    const text = part.text === "" ? note : `${part.text.slice(0, MAX_CHARS - note.length - 2)}\n\n${note}`;
    return { part: { ...part, text }, files: [], filename: undefined };
  }
  return { part, files: [{ name: filename, data, contentType: file.mimeType }], filename };
}

export async function fetchAttachment(
  file: InboundFile,
  origin: string | undefined,
): Promise<{ readonly body: ReadableStream<Uint8Array>; readonly sizeBytes?: number }> {
  const url = asObject(file.reference)?.["url"];
  if (!isFileAddress(url, origin)) throw new FileRefused("it is not on Discord's servers");
  const response = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok || !response.body) {
    await response.body?.cancel();
    if (response.status >= 500 || response.status === 429) throw new Error(`Discord's file server answered ${response.status}`);
    throw new FileRefused(`Discord's file server answered ${response.status}`);
  }
  const length = asNumber(Number(response.headers.get("content-length") ?? Number.NaN), 0, Number.MAX_SAFE_INTEGER);
  return { body: response.body, ...(length === undefined ? {} : { sizeBytes: length }) };
}
