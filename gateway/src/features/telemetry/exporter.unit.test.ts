/** Traces of runs: what a collector gets, after failures, and after kills at every step. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { KEY, Killed, record, world } from "../../../test/features/telemetry/telemetry-world.ts";
import { succeed } from "../../ports/result.ts";
import { PASS_MS } from "./exporter.ts";
import { LEASE_MS } from "./index.ts";
import { requestOf } from "./otlp.ts";

const answers =
  (status: number, headers: Record<string, string> = {}) =>
  () =>
    new Response("words of the collector", { status, headers });

describe("[OT7] the spans of a run", () => {
  test("have attributes of the protocol's kinds", () => {
    const attributes = { text: "a", whole: 3, part: 0.5, yes: true, no: false, absent: undefined };
    const span = { traceId: "t", spanId: "s", name: "n", kind: 1, startMs: 1, endMs: 2, attributes } as const;
    const { resourceSpans } = JSON.parse(requestOf([span], {}, "scope")) as {
      resourceSpans: { scopeSpans: { spans: { attributes: unknown }[] }[] }[];
    };
    assert.deepEqual(resourceSpans[0]?.scopeSpans[0]?.spans[0]?.attributes, [
      { key: "text", value: { stringValue: "a" } },
      { key: "whole", value: { intValue: "3" } },
      { key: "part", value: { doubleValue: 0.5 } },
      { key: "yes", value: { boolValue: true } },
      { key: "no", value: { boolValue: false } },
    ]);
  });
  test("are the run, each call of the model, and each call of a tool, as the protocol and its conventions say", async () => {
    const w = world();
    w.add("r1");
    await w.run();
    const spans = w.spans();
    assert.deepEqual(
      spans.map(({ name, kind, startMs, endMs, status }) => [name, kind, startMs, endMs, status]),
      [
        ["invoke_agent main", 1, 1_000, 9_000, 0],
        ["chat asked", 3, 1_100, 1_500, 2],
        ["chat asked", 3, 2_000, 3_000, 0],
        ["execute_tool lap__Bash", 1, 3_300, 4_000, 0],
        ["execute_tool lap__Write", 1, 3_000, 3_000, 2],
        ["chat asked", 3, 8_000, 9_000, 0],
      ],
    );
    const [root, failed, chat, tool, denied] = spans;
    assert.equal(root?.parentSpanId, undefined);
    assert.deepEqual(new Set(spans.slice(1).map(({ parentSpanId }) => parentSpanId)), new Set([root?.spanId]));
    assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    assert.deepEqual(root?.events, ["gsv.model_call_lost"]);
    assert.equal(root?.attributes["gen_ai.operation.name"], "invoke_agent");
    assert.equal(failed?.attributes["error.type"], "model.overloaded");
    const { attributes = {} } = chat ?? {};
    assert.deepEqual(
      ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model"].map((name) => attributes[name]),
      ["chat", "gcp.gemini", "asked", "answered"],
    );
    assert.deepEqual(
      ["gen_ai.usage.input_tokens", "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.output_tokens", "gsv.usage.cost_usd"].map(
        (name) => attributes[name],
      ),
      [150, 50, 20, 0.25],
    );
    assert.deepEqual(
      ["core", "characteristics", "shared", "delegated", "working", "long_term", "tool"].map(
        (layer) => attributes[`gsv.context.${layer}_tokens`],
      ),
      [8, 0, 24, 0, 12, 4, 20],
    );
    assert.deepEqual(
      [tool?.attributes["gen_ai.tool.name"], tool?.attributes["gsv.policy.decision"], tool?.attributes["gsv.policy.rule"]],
      ["lap__Bash", "allowed", "mode:auto"],
    );
    assert.equal(denied?.attributes["error.type"], "policy.denied");
  });
  test("a run that failed has an error, and one of an earlier version has spans too", async () => {
    const w = world();
    w.given.record = async (runId) => {
      const { story, ...rest } = record(runId, { end: "error", error: "private words", failed: [{ at: 8_500, reason: "model.auth" }] });
      const steps = story.steps.map(({ sent: _sent, failed: _failed, ...step }) => step);
      return succeed({ ...rest, story: { ...story, steps } });
    };
    w.add("r1");
    await w.run();
    const [root, chat] = w.spans();
    assert.deepEqual([root?.status, root?.attributes["error.type"]], [2, "model.auth"]);
    assert.deepEqual([chat?.name, chat?.startMs, chat?.attributes["gsv.context.core_tokens"]], ["chat answered", 1_000, undefined]);
    assert.doesNotMatch(w.posts[0]?.body ?? "", /private words/);
  });
});

describe("[OT5] ids", () => {
  test("follow from the run, so that a second export has the same; another run has others", async () => {
    const w = world();
    const ids = async (runId: string): Promise<readonly string[]> => {
      w.posts.length = 0;
      w.add(runId);
      await w.run();
      return w.spans().map(({ traceId, spanId }) => `${traceId} ${spanId}`);
    };
    const first = await ids("r1");
    assert.deepEqual(await ids("r1"), first);
    const others = await ids("r2");
    assert.deepEqual(
      others.filter((id) => first.includes(id)),
      [],
    );
  });
  test("a delegated run is in the trace of the run above it, below the call that handed it on", async () => {
    const w = world();
    w.add("top");
    w.add("below", { sessionKey: "agent:b:task:1", rootRun: "top", parentCall: "ref/top/1/0" });
    await w.run();
    const [top, below] = w.spans().filter(({ name }) => name.startsWith("invoke_agent"));
    const call = w.spans().find(({ attributes }) => attributes["gen_ai.tool.call.id"] === "ref/top/1/0");
    assert.equal(below?.traceId, top?.traceId);
    assert.equal(below?.parentSpanId, call?.spanId);
    assert.notEqual(call?.spanId, undefined);
  });
  test("a gateway that is killed at any step exports every span at least once, with the same ids", async () => {
    const whole = world();
    for (const runId of ["r1", "r2"]) whole.add(runId);
    await whole.run();
    const expected = new Set(whole.spans().map((span) => JSON.stringify(span)));
    let kills = 0;
    for (let at = 1; at <= 12; at++) {
      const w = world();
      for (const runId of ["r1", "r2"]) w.add(runId);
      w.given.killAfter = at;
      // A request that is cut off looks like a collector that does not answer; the pause ends by time.
      await w.run().catch((error: unknown) => assert.ok(error instanceof Killed));
      if (w.given.killAfter <= 0) kills += 1;
      w.given.killAfter = Number.POSITIVE_INFINITY;
      for (let more = 0; more < 4 && w.store.waiting() > 0; more++) {
        w.given.now += 3_600_000;
        await w.run();
      }
      assert.equal(w.store.waiting(), 0, `killed at step ${at}`);
      assert.deepEqual(new Set(w.spans().map((span) => JSON.stringify(span))), expected, `killed at step ${at}`);
    }
    assert.ok(kills >= 10, `${kills} kills`);
  });
});

describe("[OT4] what waits", () => {
  test("is tried again when the collector is busy or does not answer, with growing pauses", async () => {
    const w = world();
    w.add("r1");
    const pauses: number[] = [];
    for (const answer of [
      answers(503),
      () => {
        throw new Error("down");
      },
      answers(429),
      answers(502),
      answers(504),
    ]) {
      w.given.answer = answer;
      await w.run();
      const { pausedUntil = 0, problem } = w.store.state();
      assert.match(problem ?? "", /^The collector (?:answered \d{3}|did not answer)\.$/);
      pauses.push((pausedUntil - w.given.now) / 1_000);
      w.given.now = pausedUntil;
    }
    assert.deepEqual(pauses, [5, 10, 20, 40, 80]);
    w.given.answer = answers(503, { "retry-after": "120" });
    await w.run();
    assert.equal((w.store.state().pausedUntil ?? 0) - w.given.now, 120_000);
    w.given.now += 120_000;
    w.given.answer = answers(503, { "retry-after": "999999" });
    await w.run();
    assert.equal((w.store.state().pausedUntil ?? 0) - w.given.now, 3_600_000);
    w.given.now += 3_600_000;
    w.given.answer = () => new Response("{}");
    await w.run();
    const { exported, dropped, problem, pausedUntil } = w.store.state();
    assert.deepEqual([w.store.waiting(), exported, dropped, problem, pausedUntil], [0, 1, 0, undefined, undefined]);
  });
  test("waits for other settings after a wrong token, and for nothing else", async () => {
    for (const status of [401, 403, 404, 307]) {
      const w = world();
      for (const runId of ["r1", "r2"]) w.add(runId);
      w.given.answer = answers(status);
      await w.run();
      assert.equal(w.posts.length, 1);
      assert.deepEqual([w.store.waiting(), w.store.state().pausedVersion], [2, 1]);
      assert.match(w.store.state().problem ?? "", /headers are wrong/);
      assert.equal(w.posts[0]?.redirect, "manual");
    }
  });
  test("a run that the collector refuses is dropped and counted, and the next one is exported", async () => {
    for (const status of [400, 413, 500]) {
      const w = world();
      for (const runId of ["r1", "r2"]) w.add(runId);
      const kinds = [answers(status), () => new Response("{}")];
      w.given.answer = () => (kinds.shift() ?? answers(200))();
      await w.run();
      const { exported, dropped } = w.store.state();
      assert.deepEqual([w.store.waiting(), exported, dropped], [0, 1, 1], String(status));
    }
  });
  test("a run that the collector never takes goes behind the others, also behind those that come during the pause", async () => {
    const w = world();
    for (const runId of ["never", "r1", "r2"]) w.add(runId);
    const from = w.posts.length;
    w.given.answer = () => new Response("", { status: w.posts.at(-1)?.body.includes('"never"') ? 503 : 200 });
    await w.run();
    assert.deepEqual([w.posts.length - from, w.store.waiting()], [1, 3], "a busy collector is left alone");
    w.add("r3");
    for (let passes = 0; passes < 2; passes++) {
      w.given.now = w.store.state().pausedUntil ?? 0;
      await w.run();
      assert.deepEqual([w.store.waiting(), w.store.state().exported], [1, 3]);
    }
  });
  test("a change of the settings ends the pause for every run, also for the one that was not taken", async () => {
    const w = world();
    for (const runId of ["r1", "r2"]) w.add(runId);
    w.given.answer = answers(401);
    await w.run();
    w.given.answer = answers(200);
    w.given.target = { url: "https://c.example/v1/traces", headers: {}, content: false, version: 2 };
    await w.run();
    assert.deepEqual([w.store.waiting(), w.store.state().exported], [0, 2]);
  });
  test("spans that the collector did not take are told of and not sent again", async () => {
    const w = world();
    w.add("r1");
    w.given.answer = () => Response.json({ partialSuccess: { rejectedSpans: "2", errorMessage: "words" } });
    await w.run();
    assert.deepEqual([w.store.waiting(), w.posts.length], [0, 1]);
    assert.equal(w.store.state().problem, "The collector took a run without 2 of its spans.");
  });
  test("has a limit: the oldest are dropped and counted", async () => {
    const w = world();
    for (let number = 0; number < LIMITS.telemetryRuns + 3; number++) w.add(`r${number}`);
    w.add("r5");
    assert.deepEqual([w.store.waiting(), w.store.state().dropped], [LIMITS.telemetryRuns, 3]);
    assert.equal(w.store.due(w.given.now)?.runId, "r3");
  });
  test("a record that is gone is dropped; one that cannot be read holds up no other, and is dropped after eight tries", async () => {
    const w = world();
    for (const runId of ["gone", "broken", "open", "fine"]) w.add(runId);
    w.given.record = async (runId) => {
      if (runId === "broken") throw new Error("unreachable");
      return runId === "gone" ? w.gone() : succeed(record(runId, runId === "open" ? { end: "open" } : {}));
    };
    await w.run();
    assert.deepEqual([w.store.waiting(), w.store.state().exported, w.store.state().dropped], [2, 1, 1]);
    for (let tries = 0; tries < 8; tries++) {
      w.given.now += 3_600_000;
      await w.run();
    }
    assert.deepEqual([w.store.waiting(), w.store.state().exported, w.store.state().dropped], [0, 1, 3]);
  });
  test("a long run is sent in several requests", async () => {
    const w = world();
    const { story } = record("r1");
    const [step] = story.steps;
    assert.ok(step);
    const steps = Array.from({ length: 200 }, (_, index) => ({ ...step, step: index + 1, calls: [] }));
    w.given.record = async () => succeed(record("r1", { steps }));
    w.add("r1");
    await w.run();
    assert.deepEqual([w.posts.length, w.spans().length, w.store.waiting()], [2, 401, 0]);
  });
});

describe("[OT4] a pass", () => {
  /** Each request takes as long as it may. */
  const slow = (w: ReturnType<typeof world>) => () => {
    w.given.now += 10_000;
    return new Response("{}");
  };
  test("is over before the lease of its alarm is, however slow the collector", async () => {
    assert.ok(PASS_MS < LEASE_MS);
    const w = world();
    for (let number = 0; number < 40; number++) w.add(`r${number}`);
    w.given.answer = slow(w);
    w.given.record = async (runId) => {
      w.given.now += 20_000;
      return succeed(record(runId));
    };
    const from = w.given.now;
    await w.run();
    assert.deepEqual([w.given.now - from, w.store.state().exported, w.store.waiting()], [300_000, 10, 30]);
    await w.run();
    assert.equal(w.store.state().exported, 20, "the next pass goes on");
  });
  test("is over before its lease also within a long run, which goes behind the others", async () => {
    const w = world();
    const { story } = record("long");
    const [step] = story.steps;
    assert.ok(step);
    const steps = Array.from({ length: 1_200 }, (_, index) => ({ ...step, step: index + 1, calls: [] }));
    w.given.target = { url: "https://c.example/v1/traces", headers: {}, content: true, version: 1 };
    w.given.record = async (runId) => succeed(record(runId, runId === "long" ? { steps } : {}));
    for (const runId of ["long", "r1"]) w.add(runId);
    w.given.answer = slow(w);
    const from = w.given.now;
    await w.run();
    assert.ok(w.given.now - from <= PASS_MS, `${w.given.now - from}`);
    assert.equal(w.store.state().problem, "The collector was too slow to take a run.");
    w.given.now = w.store.state().pausedUntil ?? 0;
    w.given.answer = () => new Response("{}");
    await w.run();
    assert.deepEqual([w.store.waiting(), w.store.state().exported], [0, 2]);
  });
  test("waits a minute for a record that does not come", async () => {
    const w = world();
    for (const runId of ["silent", "r1"]) w.add(runId);
    const waits: number[] = [];
    w.given.after = (ms, work) => {
      waits.push(ms);
      if (waits.length === 1) queueMicrotask(work);
      return () => undefined;
    };
    w.given.record = (runId) => (runId === "silent" ? new Promise(() => undefined) : Promise.resolve(succeed(record(runId))));
    await w.run();
    assert.deepEqual([waits[0], w.store.waiting(), w.store.state().exported], [60_000, 1, 1]);
  });
});

test("[OT3] the headers go with the request, and nothing else has their values", async () => {
  const w = world();
  w.add("r1");
  w.given.answer = answers(401);
  await w.run();
  assert.equal(w.posts[0]?.headers["authorization"], "Bearer key-of-the-collector");
  assert.equal(w.posts[0]?.headers["content-type"], "application/json");
  assert.doesNotMatch(JSON.stringify([w.warnings, w.store.state(), w.posts[0]?.body]), /key-of-the-collector|words of the collector/);
});

describe("[OT6] texts", () => {
  const texts = {
    input: "my number is 12 and stored-secret",
    answers: { "1": "I look", "2": "done" },
    calls: {
      "ref/r1/1/0": {
        args: { command: "echo stored-secret", nested: { api_key: "abcdef-123456" } },
        result: '{"password":"hunter22","ok":1}',
      },
    },
  };
  test("are not exported unless the owner wants them, nor is the name of the conversation", async () => {
    const w = world();
    w.add("r1");
    await w.run();
    assert.doesNotMatch(w.posts[0]?.body ?? "", /messages|arguments|\+31612345678|whatsapp:dm/);
    assert.match(String(w.spans()[0]?.attributes["gen_ai.conversation.id"]), /^[0-9a-f]{32}$/);
  });
  test("are exported without secrets when the owner wants them", async () => {
    const w = world();
    w.given.target = { url: "https://c.example/v1/traces", headers: {}, content: true, version: 1 };
    w.given.record = async (runId) => succeed(record(runId, {}, texts));
    w.add("r1");
    await w.run();
    const all = w.posts.map(({ body }) => body).join("\n");
    assert.doesNotMatch(all, /stored-secret|abcdef-123456|hunter22/);
    const [root, , chat, tool] = w.spans();
    assert.equal(root?.attributes["gsv.session.key"], KEY);
    assert.deepEqual(JSON.parse(String(root?.attributes["gen_ai.input.messages"])), [
      { role: "user", parts: [{ type: "text", content: "my number is 12 and [redacted]" }] },
    ]);
    assert.match(String(root?.attributes["gen_ai.output.messages"]), /"content":"done"/);
    assert.match(String(chat?.attributes["gen_ai.output.messages"]), /I look/);
    assert.equal(tool?.attributes["gen_ai.tool.call.arguments"], '{"command":"echo [redacted]","nested":{"api_key":"[redacted]"}}');
    assert.equal(tool?.attributes["gen_ai.tool.call.result"], '{"password":"[redacted]","ok":1}');
  });
});

test("[OT6] a text is cut to 8,000 characters after its secrets were hidden", async () => {
  const w = world();
  const long = "x".repeat(7_995);
  const edge = `${long}stored-secret and more`;
  const filler = "y".repeat(9_000);
  w.given.target = { url: "https://c.example/v1/traces", headers: {}, content: true, version: 1 };
  const texts = {
    input: edge,
    answers: { "1": edge, "2": edge },
    calls: {
      "ref/r1/1/0": { args: { api_key: "abcdef-123456", command: edge }, result: JSON.stringify({ password: "hunter22", list: filler }) },
      "ref/r1/1/1": { args: { list: filler, pin: 1 }, result: edge },
    },
  };
  w.given.record = async (runId) => succeed(record(runId, { end: "error", error: edge }, texts));
  w.add("r1");
  await w.run();
  const all = w.posts.map(({ body }) => body).join("\n");
  assert.doesNotMatch(all, /xstor|abcdef-123456|hunter22/);
  const [, , , first, second] = w.spans();
  const of = (span: typeof first, name: string) => String(span?.attributes[`gen_ai.tool.call.${name}`]);
  for (const span of [first, second]) for (const name of ["arguments", "result"]) assert.equal(of(span, name).length, 8_000, name);
  assert.match(of(first, "arguments"), /^\{"api_key":"\[redacted\]","command":"xxx/);
  assert.match(of(first, "result"), /^\{"password":"\[redacted\]","list":"yyy/);
  for (const text of all.match(/x+\[[a-z]*\]?/g) ?? []) assert.ok(text.length <= 8_000, `${text.length}`);
});

test("[OT1] nothing is read or sent without an address", async () => {
  const w = world();
  w.add("r1");
  w.given.target = undefined;
  w.given.record = () => Promise.reject(new Error("not to be read"));
  await w.run();
  assert.deepEqual([w.posts.length, w.store.waiting()], [0, 1]);
  w.store.clear();
  assert.equal(w.store.waiting(), 0);
});
