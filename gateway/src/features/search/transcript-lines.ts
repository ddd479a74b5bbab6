/**
 * Reads the lines of a stored transcript (gzip, JSON Lines) a few at a time, so that no transcript is in memory as a whole. Keeps
 * damage, which is permanent, separate from a failing bucket, which can be retried.
 */

export type LineBatch =
  | { readonly kind: "lines"; readonly lines: readonly string[] }
  /** The bytes are not gzip, are truncated, or exceed a transcript's limit. The lines before are valid. */
  | { readonly kind: "damaged" }
  | { readonly kind: "failed" };

const BATCH_CHARS = 262_144;
/** No message of ours has a longer line. */
const MAX_LINE_CHARS = 8 * 1024 * 1024;
export const MAX_UNPACKED_BYTES = 256 * 1024 * 1024;

/** Ends after `damaged` or `failed`. Stop it early with `return()`. */
export async function* transcriptLines(body: ReadableStream<Uint8Array>): AsyncGenerator<LineBatch, void, undefined> {
  let bucketFailed = false;
  const input = body.getReader();
  const noted = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const { value, done } = await input.read();
        if (done) controller.close();
        else controller.enqueue(new Uint8Array(value));
      } catch (error) {
        bucketFailed = true;
        controller.error(error);
      }
    },
    cancel: (reason) => input.cancel(reason),
  });
  const reader = noted.pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder();
  let lines: string[] = [];
  let chars = 0;
  let rest = "";
  let bytes = 0;
  try {
    for (;;) {
      let read: ReadableStreamReadResult<Uint8Array>;
      try {
        read = await reader.read();
      } catch {
        if (lines.length > 0) yield { kind: "lines", lines };
        yield { kind: bucketFailed ? "failed" : "damaged" };
        return;
      }
      bytes += read.value?.byteLength ?? 0;
      rest += read.done ? decoder.decode() : decoder.decode(read.value, { stream: true });
      const whole = rest.split("\n");
      rest = read.done ? "" : (whole.pop() ?? "");
      for (const line of whole) {
        if (line === "") continue;
        lines.push(line);
        chars += line.length;
      }
      if (lines.length > 0 && (read.done || chars >= BATCH_CHARS)) {
        yield { kind: "lines", lines };
        lines = [];
        chars = 0;
      }
      if (read.done) return;
      if (bytes > MAX_UNPACKED_BYTES || rest.length > MAX_LINE_CHARS) {
        yield { kind: "damaged" };
        return;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
