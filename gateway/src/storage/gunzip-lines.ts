/**
 * Reads the lines of a gzip stream one at a time in bounded memory. The input is fed in small pieces, because a piece may unpack
 * to a thousand times its size. Never throws because of the stream's content.
 */
import { toHex } from "../../../protocol/runtime/hex.ts";

export type LinesEnd = {
  /** `broken`: not gzip, truncated or changed. `stopped`: the visitor ended the reading. */
  readonly end: "whole" | "stopped" | "broken" | "line too long" | "too large";
  /** Complete lines that were read; empty lines don't count. */
  readonly lines: number;
  /** The digest of the packed bytes, in hex, if requested and the stream was read to its end. */
  readonly sha256?: string;
};
export interface LinesOptions {
  readonly sha256?: boolean;
  readonly maxBytes?: number;
  readonly maxLineChars?: number;
}
export const MAX_UNPACKED_BYTES = 256 * 1024 * 1024;
const MAX_LINE_CHARS = 16 * 1024 * 1024;
const PIECE_BYTES = 4096;

/** Splits pieces of text into lines without rejoining the incomplete line at each piece. */
class LineSplitter {
  readonly #onLine: (line: string) => boolean;
  #open: string[] = [];
  openChars = 0;
  constructor(onLine: (line: string) => boolean) {
    this.#onLine = onLine;
  }
  /** False ends the reading. */
  push(text: string): boolean {
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
      const line = this.#open.join("") + text.slice(from, at);
      this.#open = [];
      this.openChars = 0;
      from = at + 1;
      if (!this.#onLine(line)) return false;
    }
    if (from < text.length) {
      this.#open.push(text.slice(from));
      this.openChars += text.length - from;
    }
    return true;
  }
  end(): boolean {
    const line = this.#open.join("");
    return line === "" || this.#onLine(line);
  }
}

export async function gunzipLines(
  packed: ReadableStream<Uint8Array>,
  { sha256 = false, maxBytes = MAX_UNPACKED_BYTES, maxLineChars = MAX_LINE_CHARS }: LinesOptions,
  visit: (line: string, index: number) => "go on" | "stop",
): Promise<LinesEnd> {
  let lines = 0;
  let last = "go on";
  const splitter = new LineSplitter((line) => {
    if (line.trim() === "") return true;
    last = visit(line, lines);
    if (last === "stop") return false;
    lines++;
    return true;
  });
  const digest = sha256 ? new crypto.DigestStream("SHA-256") : undefined;
  const hashing = digest?.getWriter();
  digest?.digest.catch(() => undefined);
  const source = packed.getReader();
  const unpacker = new DecompressionStream("gzip");
  const into = unpacker.writable.getWriter();
  const out = (unpacker.readable as ReadableStream<Uint8Array>).getReader();
  let stopped = false;
  const feeding = (async () => {
    for (;;) {
      const { value, done } = await source.read();
      if (done) break;
      await hashing?.write(value);
      for (let at = 0; at < value.length && !stopped; at += PIECE_BYTES) {
        await into.ready;
        await into.write(value.subarray(at, at + PIECE_BYTES));
      }
      if (stopped) return;
    }
    await hashing?.close();
    await into.close();
  })();
  // The reader sees the same failure; handle this rejection too.
  const fed = feeding.then(
    () => undefined,
    async (error: unknown) => {
      await into.abort(error).catch(() => undefined);
    },
  );
  const stop = async (end: LinesEnd["end"]): Promise<LinesEnd> => {
    stopped = true;
    await Promise.allSettled([out.cancel(), source.cancel(), ...(hashing ? [hashing.abort()] : [])]);
    await fed;
    return { end, lines };
  };
  const decoder = new TextDecoder();
  let bytes = 0;
  try {
    for (;;) {
      const { value, done } = await out.read();
      if (done) {
        if (!splitter.push(decoder.decode()) || !splitter.end()) return await stop("stopped");
        await fed;
        return { end: "whole", lines, ...(digest ? { sha256: toHex(await digest.digest) } : {}) };
      }
      bytes += value.byteLength;
      if (!splitter.push(decoder.decode(value, { stream: true }))) return await stop("stopped");
      if (bytes > maxBytes) return await stop("too large");
      if (splitter.openChars > maxLineChars) return await stop("line too long");
    }
  } catch {
    return stop("broken");
  }
}
