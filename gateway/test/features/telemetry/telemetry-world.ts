/** The export of traces over tables of its own: the collector, the records, the clock and kills are the test's. */
import { createHash } from "node:crypto";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { afterTimeout } from "../../../../protocol/runtime/within.ts";
import { asCallId, asRunId, asSessionKey, asToolName } from "../../../../protocol/gen/types.ts";
import { failure, type Result, succeed } from "../../../src/ports/result.ts";
import type { RunRecord } from "../../../src/ports/session.ts";
import { type ExportTarget, TelemetryExporter } from "../../../src/features/telemetry/exporter.ts";
import { TELEMETRY_MIGRATIONS } from "../../../src/features/telemetry/migrations.ts";
import { TelemetryStore } from "../../../src/features/telemetry/store.ts";
import type { Database } from "../../../src/platform/sql.ts";
import { seenSpans, type SeenSpan } from "./otlp-shape.ts";

export class Killed extends Error {}
export const KEY = "agent:main:whatsapp:dm:+31612345678";
const usage = { input: 100, output: 20, total: 170, cacheRead: 50, costUsd: 0.25 };
const sent = (at: number) => ({ at, provider: "google", model: "asked", layers: [8, 0, 24, 0, 12, 4], tools: 20 });

/** A run of one step with a call, a failed call of the model before it, and a last step. */
export function record(runId: string, more: Partial<RunRecord["story"]> = {}, texts?: RunRecord["texts"]): RunRecord {
  return {
    agentId: "main",
    ...(texts === undefined ? {} : { texts }),
    story: {
      sessionKey: asSessionKey(KEY),
      runId: asRunId(runId),
      origin: "channel whatsapp owner",
      startedAt: 1_000,
      endedAt: 9_000,
      end: "final",
      usage,
      left: 0,
      steps: [
        {
          step: 1,
          at: 3_000,
          ms: 2_000,
          provider: "google",
          model: "answered",
          usage,
          sent: sent(2_000),
          failed: [
            { at: 1_500, reason: "model.overloaded", sent: sent(1_100) },
            { at: 1_800, reason: "interrupted" },
          ],
          calls: [
            {
              callId: asCallId(`ref/${runId}/1/0`),
              tool: asToolName("lap__Bash"),
              decision: "allowed",
              rule: "mode:auto",
              outcome: "ok",
              durationMs: 700,
              endedAt: 4_000,
            },
            {
              callId: asCallId(`ref/${runId}/1/1`),
              tool: asToolName("lap__Write"),
              decision: "denied",
              outcome: "error",
              reason: "policy.denied",
              durationMs: 0,
              endedAt: 3_000,
            },
          ],
        },
        { step: 2, at: 9_000, ms: 900, provider: "google", model: "answered", usage, sent: sent(8_000), calls: [] },
      ],
      ...more,
    },
  };
}

function database(): Database {
  const sqlite = new DatabaseSync(":memory:");
  const sql = {
    exec: (query: string, ...values: SQLInputValue[]) => {
      const rows = sqlite.prepare(query).all(...values);
      let at = 0;
      return {
        toArray: () => rows,
        next: () => (at < rows.length ? { done: false, value: rows[at++] } : { done: true, value: undefined }),
      };
    },
  };
  const transactionSync = (work: () => unknown): unknown => {
    sqlite.exec("BEGIN");
    try {
      const done = work();
      sqlite.exec("COMMIT");
      return done;
    } catch (error) {
      sqlite.exec("ROLLBACK");
      throw error;
    }
  };
  return Object.assign(Object.create(null) as Database, { sql, transactionSync });
}

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly redirect: string | undefined;
}
export function world() {
  const db = database();
  for (const { up } of TELEMETRY_MIGRATIONS) up(db.sql);
  const store = new TelemetryStore(db);
  const posts: Post[] = [];
  const warnings: string[] = [];
  const given = {
    now: 100_000,
    target: { url: "https://c.example/v1/traces", headers: { authorization: "Bearer key-of-the-collector" }, content: false, version: 1 } as
      | ExportTarget
      | undefined,
    record: async (runId: string): Promise<Result<RunRecord>> => succeed(record(runId)),
    answer: (): Response => new Response("{}"),
    after: afterTimeout,
    /** Steps until the gateway is killed: reading a record, the request, its answer, the row. */
    killAfter: Number.POSITIVE_INFINITY,
  };
  const step = (): void => {
    if (--given.killAfter <= 0) throw new Killed();
  };
  const killing = (): TelemetryStore =>
    new Proxy(store, {
      get: (target, name) => {
        const act: unknown = Reflect.get(target, name);
        if (typeof act !== "function") return act;
        return (...args: unknown[]): unknown => {
          if (name === "exported") step();
          const done: unknown = Reflect.apply(act, target, args);
          if (name === "exported") step();
          return done;
        };
      },
    });
  /** As after a start of the gateway: nothing but the tables is known. */
  const run = (): Promise<void> =>
    new TelemetryExporter({
      store: killing(),
      now: () => given.now,
      after: (ms, work) => given.after(ms, work),
      sha256: async (text) => createHash("sha256").update(text).digest("hex"),
      target: () => given.target,
      record: async ({ runId }) => {
        const read = await given.record(runId);
        step();
        return read;
      },
      fetch: async (url, init) => {
        step();
        posts.push({ url, headers: init.headers as Record<string, string>, body: String(init.body), redirect: init.redirect });
        const answer = given.answer();
        step();
        return answer;
      },
      scrub: (text) => text.replaceAll("stored-secret", "[redacted]"),
      resource: { "service.name": "gsv", "service.version": "1" },
      warn: (event, fields) => void warnings.push(JSON.stringify([event, fields])),
    }).run();
  const add = (runId: string, more: Partial<Parameters<TelemetryStore["add"]>[0]> = {}): void =>
    store.add({ sessionKey: KEY, runId, rootKey: KEY, rootRun: runId, parentCall: undefined, dueAt: given.now, ...more });
  const spans = (): readonly SeenSpan[] => posts.flatMap(({ body }) => seenSpans(body));
  return { store, given, posts, warnings, run, add, spans, gone: () => failure("run.not_found", "No such run.") };
}
