/** Traces of real runs, with real gateway and sessions. Only the model, the clock and the collector are made up. */
import { abortAllDurableObjects } from "cloudflare:test";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import type { ModelRequest } from "../../../src/ports/model.ts";
import { says } from "../../session/support.ts";
import { ADMIN, client, eventually, fetchWorker } from "../../support/gateway.ts";
import { alarm, jobStage, pass } from "../schedule/support.ts";
import { seenSpans, type SeenSpan } from "./otlp-shape.ts";

const stage = jobStage();
const KEY = "agent:main:cli:dm:traced";
const posts: { readonly url: string; readonly headers: Headers; readonly body: string }[] = [];
let answer: () => Response = () => Response.json({});
beforeEach(() => {
  posts.length = 0;
  answer = () => Response.json({});
  vi.spyOn(parts, "fetch").mockImplementation(async (url, init) => {
    posts.push({ url, headers: new Headers(init.headers), body: String(init.body) });
    return answer();
  });
});
const spans = (): readonly SeenSpan[] => posts.flatMap(({ body }) => seenSpans(body));
const set = (path: string, value: unknown) => stage.peer.ok("config.set", { path: `telemetry.otlp.${path}`, value });
const status = () => stage.peer.ok<ResultOf<"telemetry.status">>("telemetry.status", {});
const turnOn = () => set("endpoint", "https://collector.example/otlp");
async function say(message: string): Promise<void> {
  const { runId } = await stage.peer.ok<{ runId: string }>("chat.send", { sessionKey: KEY, message });
  await eventually(async () => {
    const story = await stage.peer.ok<ResultOf<"run.why">>("run.why", { sessionKey: KEY, runId });
    expect(story.end).toBe("final");
  });
}
/** The alarm, until this holds. */
async function exports(check: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    pass(stage, 2_000);
    await alarm();
    await check();
  });
}

describe("[OT1] [OT4] [OT8] traces of runs", () => {
  test("are off, and on as soon as there is an address", async () => {
    await say("one");
    expect(await status()).toEqual({ enabled: false, waiting: 0, exported: 0, dropped: 0 });
    await turnOn();
    await say("two");
    await exports(async () => expect(await status()).toMatchObject({ enabled: true, waiting: 0, exported: 1, dropped: 0 }));
    expect(posts.map(({ url }) => url)).toEqual(["https://collector.example/otlp/v1/traces"]);
    expect(spans().map(({ name, attributes }) => [name, attributes["gen_ai.operation.name"]])).toEqual([
      ["invoke_agent main", "invoke_agent"],
      [expect.stringMatching(/^chat /), "chat"],
    ]);
    // What was sent to the model is what the span says (rule AU8).
    expect(spans()[1]?.attributes["gsv.context.core_tokens"]).toBeGreaterThan(100);
    expect(posts[0]?.body).not.toContain("the report");
  });
  test("wait while the collector is down, over a kill of the gateway, and no answer waits for them", async () => {
    await turnOn();
    answer = () => new Response("", { status: 503 });
    await say("one");
    await exports(async () => expect(await status()).toMatchObject({ waiting: 1, problem: "The collector answered 503." }));
    await say("two");
    expect((await status()).nextAt).toBeGreaterThan(stage.now);
    const refused = spans().map(({ traceId, spanId }) => `${traceId} ${spanId}`);
    await abortAllDurableObjects();
    stage.peer = await client();
    posts.length = 0;
    answer = () => Response.json({});
    pass(stage, 3_600_000);
    await exports(async () => expect(await status()).toMatchObject({ waiting: 0, exported: 2 }));
    expect((await status()).problem).toBeUndefined();
    const taken = spans().map(({ traceId, spanId }) => `${traceId} ${spanId}`);
    for (const id of refused) expect(taken).toContain(id);
  });
  test("wait no more when the address is removed or their conversation is deleted", async () => {
    await turnOn();
    answer = () => new Response("", { status: 503 });
    await say("one");
    await exports(async () => expect((await status()).waiting).toBe(1));
    await stage.peer.ok("session.delete", { sessionKey: KEY });
    await eventually(async () => expect((await status()).waiting).toBe(0));
    await say("two");
    expect((await status()).waiting).toBe(1);
    await stage.peer.ok("config.unset", { path: "telemetry.otlp.endpoint" });
    await exports(async () => expect(await status()).toMatchObject({ enabled: false, waiting: 0 }));
  });
  test("a change of the settings ends the pause after a wrong token", async () => {
    await turnOn();
    answer = () => new Response("", { status: 401 });
    await say("one");
    await exports(async () => expect((await status()).problem).toContain("401"));
    answer = () => Response.json({});
    await set("headers.authorization", "Bearer right");
    await exports(async () => expect(await status()).toMatchObject({ waiting: 0, exported: 1 }));
    expect(posts.at(-1)?.headers.get("authorization")).toBe("Bearer right");
  });
});

test("[OT3] the headers are stored as secrets, and never shown", async () => {
  await turnOn();
  await set("headers", { "x-collector-key": "key-of-the-collector" });
  const shown = await stage.peer.ok("config.get", {});
  expect(JSON.stringify(shown)).not.toContain("key-of-the-collector");
  expect(JSON.stringify(await stage.peer.ok("config.get", { path: "telemetry.otlp.headers" }))).toContain("[redacted]");
  await say("one");
  await exports(() => expect(posts).toHaveLength(1));
  expect(posts[0]?.headers.get("x-collector-key")).toBe("key-of-the-collector");
  expect(JSON.stringify([await status(), posts[0]?.body])).not.toContain("key-of-the-collector");
  expect((await stage.peer.refused("config.set", { path: "telemetry.otlp.headers.host", value: "x" })).reason).toBe("config.invalid");
  expect((await stage.peer.refused("config.set", { path: "telemetry.otlp.endpoint", value: "http://10.0.0.5:4318" })).reason).toBe(
    "config.invalid",
  );
});

test("[OT6] no part of a stored secret leaves where a text is cut", async () => {
  await turnOn();
  await set("headers", { "x-collector-key": "key-of-the-collector" });
  await set("content", true);
  await say(`${"x".repeat(7_990)}key-of-the-collector`);
  await exports(() => expect(posts).toHaveLength(1));
  const input = String(spans()[0]?.attributes["gen_ai.input.messages"]);
  expect(input).toContain("xxx");
  expect(input).not.toContain("xkey");
});

test("[OT5] [OT6] a delegated run is in the trace of the run above it, and texts are exported only when the owner says so", async () => {
  await turnOn();
  const define = (name: string, more = "") =>
    stage.peer.ok("agents.define", {
      text: `metadata: { id: ${name}, name: ${name}, description: "Does ${name}." }\ncore_context: { system_prompt: "You are the agent ${name}." }\n${more}`,
    });
  await define("letter");
  await define("refund", "sub_agents: [letter]");
  await define("sorter", "sub_agents: [refund]");
  const isOf = ({ systemPrompt }: ModelRequest, name: string): boolean => systemPrompt.includes(`You are the agent ${name}.`);
  const hands = (to: string) => says("", [{ name: `delegate_to_${to}`, arguments: { instructions: "Decide about order 1042." } }]);
  stage.answer = (request) => {
    const isFirst = !request.messages.some(({ role }) => role === "toolResult");
    if (isFirst && isOf(request, "sorter")) return hands("refund");
    return isFirst && isOf(request, "refund") ? hands("letter") : says("It is decided.");
  };
  const task = async (key: string): Promise<AgentReport> => {
    const response = await fetchWorker("http://gsv.test/run", {
      method: "POST",
      body: JSON.stringify({ agent_name: "sorter", instructions: "Begin." }),
      headers: { Authorization: `Bearer ${ADMIN}`, "Idempotency-Key": key },
    });
    return response.json();
  };
  expect(await task("k1")).toMatchObject({ status: "completed" });
  await exports(async () => expect((await status()).exported).toBe(3));
  const agents = spans().filter(({ attributes }) => attributes["gen_ai.operation.name"] === "invoke_agent");
  const called = (name: string) => spans().find(({ attributes }) => attributes["gen_ai.tool.name"] === name);
  const of = (name: string) => agents.find(({ attributes }) => attributes["gen_ai.agent.id"] === name);
  expect(new Set(spans().map(({ traceId }) => traceId)).size).toBe(1);
  expect(of("sorter")?.parentSpanId).toBeUndefined();
  expect(of("refund")?.parentSpanId).toBe(called("delegate_to_refund")?.spanId);
  expect(of("letter")?.parentSpanId).toBe(called("delegate_to_letter")?.spanId);
  expect(called("delegate_to_refund")?.parentSpanId).toBe(of("sorter")?.spanId);
  expect(called("delegate_to_refund")?.attributes["gsv.delegation"]).toBe(true);
  const asked = spans().find(({ name, parentSpanId }) => name.startsWith("chat ") && parentSpanId === of("refund")?.spanId);
  expect(asked?.attributes["gsv.context.delegated_tokens"]).toBeGreaterThan(0);
  const without = posts.map(({ body }) => body).join("\n");
  expect(without).not.toMatch(/order 1042|It is decided/);

  posts.length = 0;
  await set("content", true);
  expect(await task("k2")).toMatchObject({ status: "completed" });
  await exports(async () => expect((await status()).exported).toBe(6));
  expect(called("delegate_to_refund")?.attributes["gen_ai.tool.call.arguments"]).toContain("order 1042");
  expect(spans().find(({ attributes }) => attributes["gen_ai.agent.id"] === "sorter")?.attributes["gen_ai.output.messages"]).toContain(
    "It is decided.",
  );
});
