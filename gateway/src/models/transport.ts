/**
 * The `fetch` for pi-ai's clients: refuses redirects, keeps error bodies and their status, bounds bytes,
 * feeds the watchdog, and passes the body through the guard. Records failures as faults; never classifies or retries.
 */
import type { Fault } from "./failure.ts";
import { parseRetryAfter } from "./failure.ts";
import type { SseGuard } from "./sse-guard.ts";
import type { Watchdog } from "./watchdog.ts";

export type Fetch = typeof globalThis.fetch;
const MAX_ERROR_BYTES = 65_536;
/** Limit for the raw bytes of one answer. Events are about ten times larger than their text. */
export const MAX_STREAM_BYTES = 96 * 1024 * 1024;
/** Later parsers rescan their whole buffer at each event, so they get small pieces. */
const PIECE_CHARS = 8192;

export interface Transport {
  readonly fetch: Fetch;
  /** For a request beside the answer, such as one for a token: the same rules, and the body as it is. */
  readonly plain: Fetch;
  /** The first fault, if any. */
  readonly fault: () => Fault | undefined;
}

async function readText(response: Response, maxBytes: number): Promise<string> {
  if (!response.body) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let out = "";
  let bytes = 0;
  try {
    while (bytes < maxBytes) {
      const { value, done } = await reader.read();
      if (done) break;
      bytes += value.length;
      out += decoder.decode(value, { stream: true });
    }
  } catch {
    // Use the part that arrived; the status says the rest.
  }
  await reader.cancel().catch(() => {});
  return out;
}
const causeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return "";
  const cause = error.cause;
  if (cause instanceof Error && "code" in cause && typeof cause.code === "string") return cause.code;
  const text = cause instanceof Error ? cause.message : error.message;
  // The runtime's error text without any details.
  return text.startsWith("internal error") ? "" : text;
};
const safeOrigin = (location: string | null, base: string): string | undefined => {
  if (location === null) return undefined;
  try {
    return new URL(location, base).origin;
  } catch {
    return undefined;
  }
};

export function createTransport(deps: {
  fetch: Fetch;
  /** Absent: the body is no text, and only its size is limited. */
  guard: SseGuard | undefined;
  watchdog: Watchdog;
  now: () => number;
  stopped: () => boolean;
  /** The provider has taken the call, and bills it from now on. */
  accepted: () => void;
}): Transport {
  const { guard, watchdog } = deps;
  let fault: Fault | undefined;
  const fail = (found: Fault): Error => {
    fault ??= found;
    return new Error(`model transport: ${found.kind}`);
  };

  function guarded(body: ReadableStream<Uint8Array>, guard: SseGuard): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    let bytes = 0;
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        for (;;) {
          let events: string[];
          let last = false;
          try {
            const { value, done } = await reader.read();
            last = done;
            if (value && value.length > 0) watchdog.touch();
            bytes += value?.length ?? 0;
            events = done ? [...guard.push(decoder.decode()), ...guard.end()] : guard.push(decoder.decode(value, { stream: true }));
          } catch (error) {
            controller.error(fail({ kind: "broken", cause: causeOf(error) }));
            return;
          }
          let piece = "";
          for (const event of events) {
            piece += event;
            if (piece.length < PIECE_CHARS) continue;
            controller.enqueue(encoder.encode(piece));
            piece = "";
          }
          if (piece !== "") controller.enqueue(encoder.encode(piece));
          if (guard.fault !== undefined || bytes > MAX_STREAM_BYTES) {
            controller.error(fail(guard.fault ?? { kind: "too_large" }));
            await reader.cancel().catch(() => {});
            return;
          }
          if (last || guard.finished) {
            controller.close();
            if (!last) await reader.cancel().catch(() => {});
            return;
          }
          if (events.length > 0) return;
        }
      },
      async cancel() {
        await reader.cancel().catch(() => {});
      },
    });
  }

  /** Bytes as they are: only their number is limited. */
  function limited(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    let bytes = 0;
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          const { value, done } = await reader.read();
          if (done) return controller.close();
          if (value.length > 0) watchdog.touch();
          bytes += value.length;
          if (bytes <= MAX_STREAM_BYTES) return controller.enqueue(value);
        } catch (error) {
          return controller.error(fail({ kind: "broken", cause: causeOf(error) }));
        }
        controller.error(fail({ kind: "too_large" }));
        await reader.cancel().catch(() => {});
      },
      async cancel() {
        await reader.cancel().catch(() => {});
      },
    });
  }

  const contentTypeOf = (response: Response): string => response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";

  const ask: Fetch = async (input, init) => {
    // A client that tries again by itself would repeat what was already recorded.
    if (fault !== undefined) throw fail(fault);
    let response: Response;
    try {
      response = await deps.fetch(input, { ...init, redirect: "manual" });
    } catch (error) {
      if (deps.stopped()) throw error;
      throw fail({ kind: "unreachable", cause: causeOf(error) });
    }
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel().catch(() => {});
      const url = typeof input === "string" ? input : input instanceof URL ? input.href : input.url;
      const location = safeOrigin(response.headers.get("location"), url);
      throw fail({ kind: "redirect", status: response.status, ...(location === undefined ? {} : { location }) });
    }
    if (!response.ok) {
      const body = await readText(response, MAX_ERROR_BYTES);
      const retryAfterMs = parseRetryAfter(response.headers, deps.now());
      throw fail({ kind: "http", status: response.status, body, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
    }
    return response;
  };

  return {
    fault: () => fault,
    async plain(input, init) {
      const response = await ask(input, init);
      return new Response(await readText(response, MAX_ERROR_BYTES), { headers: { "content-type": contentTypeOf(response) } });
    },
    async fetch(input, init) {
      const response = await ask(input, init);
      const contentType = contentTypeOf(response);
      if (contentType === "application/json") {
        const body = await readText(response, MAX_ERROR_BYTES);
        if (/"error"/.test(body)) throw fail({ kind: "in_band", body });
        deps.accepted();
        throw fail({ kind: "not_a_stream", contentType });
      }
      if (contentType !== "text/html") deps.accepted();
      if (contentType === "text/html" || !response.body) {
        await response.body?.cancel().catch(() => {});
        throw fail({ kind: "not_a_stream", contentType });
      }
      const stream = guard === undefined ? limited(response.body) : guarded(response.body, guard);
      const type = guard === undefined ? contentType : "text/event-stream";
      return new Response(stream, { status: 200, headers: { "content-type": type } });
    },
  };
}
