/**
 * Sends the traces of runs that have ended to the owner's collector (gateway/spec/telemetry.md). Works on rows and on the stored records
 * of runs, so that an export that was cut off anywhere is made again, with the same ids. Never part of a turn.
 */
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { hideSecrets } from "../../../../protocol/runtime/secret-shapes.ts";
import { type After, afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import type { Ids } from "../../kernel/ports.ts";
import type { Result } from "../../ports/result.ts";
import type { RunRecord } from "../../ports/session.ts";
import { type Attributes, requestOf, type Span } from "./otlp.ts";
import { cut, redactedTexts } from "./redact-texts.ts";
import { type RunPlace, spansOf, traceKey } from "./spans.ts";
import type { TelemetryStore, WaitingRun } from "./store.ts";

export interface ExportTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content: boolean;
  /** The version of the configuration. */
  readonly version: number;
}
export interface ExporterPorts {
  readonly store: TelemetryStore;
  readonly now: () => number;
  readonly after?: After;
  readonly sha256: Ids["sha256"];
  /** Undefined: nothing is exported. */
  readonly target: () => ExportTarget | undefined;
  /** The run with what the audit has of its calls. */
  readonly record: (run: { readonly sessionKey: string; readonly runId: string; readonly texts: boolean }) => Promise<Result<RunRecord>>;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Masks stored secrets. */
  readonly scrub: (text: string) => string;
  readonly resource: Attributes;
  readonly warn: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}
const RUNS_AT_ONCE = 32;
const SPANS_AT_ONCE = 256;
/** With texts, a span is many times as large. */
const SPANS_WITH_TEXTS = 32;
const TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 3_600_000;
const RECORD_TRIES = 8;
const RECORD_MS = 60_000;
/** A pass begins no run after this. */
const BEGIN_MS = 300_000;
/** A pass sends nothing after this. With the last request it is over before its lease is. */
const SEND_MS = 540_000;
/** Longer than any pass takes. */
export const PASS_MS = SEND_MS + TIMEOUT_MS;
const ANSWER_BYTES = 16_384;
/** By the protocol, these and no others may be tried again. */
const BUSY: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** The same spans under other settings are another request: they wait. */
const WRONG_SETTINGS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308, 401, 402, 403, 404, 405]);

type Sent =
  | { readonly kind: "taken"; readonly problem?: string }
  | { readonly kind: "refused"; readonly problem: string }
  | { readonly kind: "pause"; readonly problem: string; readonly forMs?: number };

export class TelemetryExporter {
  readonly #ports: ExporterPorts;

  constructor(ports: ExporterPorts) {
    this.#ports = ports;
  }

  /** Exports runs that are due, some at most, for a limited time. Stops at the first failure of the collector. */
  async run(): Promise<void> {
    const { store, now, target } = this.#ports;
    const began = now();
    for (let count = 0; count < RUNS_AT_ONCE; count++) {
      const to = target();
      if (to === undefined || now() - began >= BEGIN_MS) return;
      store.resume(to.version);
      const waiting = store.due(now());
      if (waiting === undefined) return;
      if (!(await this.#export(waiting, to, began + SEND_MS))) return;
    }
  }

  /** False: the collector takes nothing now. */
  async #export(waiting: WaitingRun, to: ExportTarget, until: number): Promise<boolean> {
    const { store, now, warn } = this.#ports;
    const { id, sessionKey, runId } = waiting;
    const reading = this.#ports.record({ sessionKey, runId, texts: to.content }).catch((error: unknown) => {
      warn("run_for_trace_not_read", { error });
      return undefined;
    });
    const record = await within(this.#ports.after ?? afterTimeout, RECORD_MS, reading, () => undefined);
    if (record !== undefined && !record.ok) {
      store.drop(id, `The record of a run could not be exported: ${record.error.message}`, now());
      return true;
    }
    if (record === undefined || record.value.story.end === "open") {
      if (waiting.tries + 1 >= RECORD_TRIES) store.drop(id, "The record of a run could not be read.", now());
      else store.later(id, now() + backoffMs(waiting.tries + 1, FIRST_PAUSE_MS));
      return true;
    }
    const sent = await this.#send(await this.#spans(record.value, waiting), to, until);
    if (sent.kind === "pause") {
      const pause = sent.forMs ?? backoffMs(store.state().tries + 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
      store.pause(id, sent.problem, now(), now() + Math.min(LONGEST_PAUSE_MS, pause), to.version);
      warn("traces_not_exported", { problem: sent.problem });
      return false;
    }
    if (sent.kind === "refused") {
      store.drop(id, sent.problem, now());
      warn("trace_refused", { problem: sent.problem });
    } else store.exported(id, now(), sent.problem);
    return true;
  }

  async #spans(record: RunRecord, { sessionKey, runId, rootKey, rootRun, parentCall }: WaitingRun): Promise<readonly Span[]> {
    const { sha256, scrub } = this.#ports;
    const { texts, ...rest } = record;
    const clean = texts === undefined ? rest : { ...rest, texts: redactedTexts(texts, scrub) };
    const place: RunPlace = { sessionKey, runId, parentCall, conversation: (await sha256(sessionKey)).slice(0, 32) };
    const traceId = (await sha256(traceKey(rootKey, rootRun))).slice(0, 32);
    const idOf = async (key: string): Promise<string> => (await sha256(key)).slice(0, 16);
    const spans: Span[] = [];
    for (const { key, parent, attributes, failed, ...span } of spansOf(clean, place)) {
      spans.push({
        ...span,
        traceId,
        spanId: await idOf(key),
        ...(parent === undefined ? {} : { parentSpanId: await idOf(parent) }),
        attributes: scrubbed(attributes, scrub),
        ...(failed === undefined ? {} : { failed: { message: cut(hideSecrets(scrub(failed.message))) } }),
      });
    }
    return spans;
  }

  /** In requests of a bounded size. A run counts as sent when all of them were taken; a repeated span has the same ids. */
  async #send(spans: readonly Span[], to: ExportTarget, until: number): Promise<Sent> {
    const size = to.content ? SPANS_WITH_TEXTS : SPANS_AT_ONCE;
    let problem: string | undefined;
    for (let from = 0; from < spans.length; from += size) {
      if (this.#ports.now() >= until) return { kind: "pause", problem: "The collector was too slow to take a run." };
      const sent = await this.#post(requestOf(spans.slice(from, from + size), this.#ports.resource, "gsv"), to);
      if (sent.kind !== "taken") return sent;
      problem ??= sent.problem;
    }
    return { kind: "taken", ...(problem === undefined ? {} : { problem }) };
  }
  async #post(body: string, { url, headers }: ExportTarget): Promise<Sent> {
    let answer: Response;
    try {
      answer = await this.#ports.fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        // The headers are for this address alone.
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    } catch {
      return { kind: "pause", problem: "The collector did not answer." };
    }
    if (answer.ok) return { kind: "taken", ...(await partOf(answer)) };
    await answer.body?.cancel().catch(() => undefined);
    const { status } = answer;
    const problem = `The collector answered ${status}.`;
    if (BUSY.has(status)) return { kind: "pause", problem, ...retryAfter(answer, this.#ports.now()) };
    if (WRONG_SETTINGS.has(status))
      return { kind: "pause", problem: `${problem} Its address or its headers are wrong.`, forMs: LONGEST_PAUSE_MS };
    return { kind: "refused", problem };
  }
}

const scrubbed = (attributes: Attributes, scrub: (text: string) => string): Attributes =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, typeof value === "string" ? scrub(value) : value]));

/** Seconds or a date. */
function retryAfter(answer: Response, now: number): { readonly forMs?: number } {
  const header = answer.headers.get("retry-after")?.trim() ?? "";
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now;
  return Number.isFinite(ms) && ms > 0 ? { forMs: ms } : {};
}
/** The collector's word about spans that it did not take. They are not sent again. */
async function partOf(answer: Response): Promise<{ readonly problem?: string }> {
  const rejected = rejectedIn(await beginningOf(answer));
  return rejected > 0 ? { problem: `The collector took a run without ${rejected} of its spans.` } : {};
}
async function beginningOf(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (let bytes = 0; bytes <= ANSWER_BYTES; ) {
      const { done, value } = await reader.read();
      if (done) return text;
      bytes += value.byteLength;
      text += decoder.decode(value, { stream: true });
    }
    await reader.cancel();
  } catch {
    // The spans were taken; the rest of the answer is not needed.
  }
  return "";
}
function rejectedIn(text: string): number {
  try {
    const parsed: unknown = JSON.parse(text);
    const part: unknown = typeof parsed === "object" && parsed !== null && "partialSuccess" in parsed ? parsed.partialSuccess : undefined;
    const count = Number(typeof part === "object" && part !== null && "rejectedSpans" in part ? part.rejectedSpans : 0);
    return Number.isSafeInteger(count) ? count : 0;
  } catch {
    return 0;
  }
}
