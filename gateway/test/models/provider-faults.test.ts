/**
 * Faults of a provider, over both wires, against real HTTP. Each case checks what the
 * session gets (reason, whether to retry) and that a broken answer never gives a tool call.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type FakeModel, type Script, startFakeModel } from "../../../test/fakes/fake-model.ts";
import type { Wire } from "../../../test/fakes/model-wire.ts";
import { INVALID_ARGUMENTS } from "../../src/models/invalid-arguments.ts";
import { createModelClient } from "../../src/models/model-client.ts";
import type { ModelOutcome } from "../../src/ports/model.ts";
import { KEY, manualTime, toFake, tool, user } from "./support.ts";

const client = createModelClient();
const WIRES: readonly Wire[] = ["anthropic-messages", "openai-completions"];

type Replied = Extract<ModelOutcome, { kind: "replied" }>;
type Failed = Extract<ModelOutcome, { kind: "failed" }>;
function replied(outcome: ModelOutcome): Replied {
  assert.equal(outcome.kind, "replied", JSON.stringify(outcome));
  return outcome as Replied;
}
function failed(outcome: ModelOutcome, reason: string, retryable: boolean): Failed {
  assert.equal(outcome.kind, "failed", JSON.stringify(outcome));
  const failure = outcome as Failed;
  assert.deepEqual([failure.error.reason, failure.retryable], [reason, retryable], failure.error.message);
  assert.match(failure.error.message, /^[^\n]{20,}[.?)`.]$/, "a whole sentence");
  assert.ok(!failure.error.message.includes(KEY), "no key in a message");
  return failure;
}
const textOf = (outcome: Replied): string => outcome.message.content.map((block) => (block.type === "text" ? block.text : "")).join("");

for (const wire of WIRES) {
  describe(`[C] over ${wire}`, () => {
    let fake: FakeModel;
    before(async () => {
      fake = await startFakeModel();
    });
    afterEach(() => fake.reset());
    after(() => fake.close());

    const ask = async (...scripts: Script[]): Promise<ModelOutcome> => {
      fake.enqueue(...scripts);
      return client.call(toFake(fake, wire).request);
    };
    /** Fails the test if a failure lets a call through: its type has none, so look at the data itself. */
    const noCall = (outcome: ModelOutcome): void =>
      assert.ok(!JSON.stringify(outcome).includes("rm -rf"), "nothing of the broken call came out");

    it("[P5] text is streamed and complete", async () => {
      fake.enqueue({ text: "Hello there, dear user.", usage: { input: 100, output: 7, cacheRead: 50 } });
      const heard = toFake(fake, wire);
      const outcome = replied(await client.call(heard.request));
      assert.equal(heard.text(), "Hello there, dear user.");
      assert.equal(textOf(outcome), "Hello there, dear user.");
      assert.equal(outcome.message.stopReason, "stop");
      const price = wire === "anthropic-messages" ? { input: 3, output: 15, cacheRead: 0.3 } : { input: 2, output: 8, cacheRead: 0.5 };
      assert.deepEqual([outcome.usage.input, outcome.usage.output, outcome.usage.cacheRead, outcome.usage.total], [100, 7, 50, 157]);
      assert.ok(Math.abs((outcome.usage.costUsd ?? -1) - (100 * price.input + 7 * price.output + 50 * price.cacheRead) / 1e6) < 1e-12);
    });

    if (wire === "openai-completions")
      it("[R1] a request above a tier's limit costs the tier's price, cached tokens included", async () => {
        const id = "gpt-5.6-sol";
        const costOf = async (input: number): Promise<number | undefined> => {
          fake.enqueue({ text: "ok", usage: { input, output: 10, cacheRead: 2000 } });
          return replied(await client.call(toFake(fake, wire, { model: { provider: "openai", id } }, { id }).request)).usage.costUsd;
        };
        assert.deepEqual(
          [await costOf(270_000), await costOf(270_001)].map((usd) => Math.round((usd ?? 0) * 1e6)),
          [270_000 * 4 + 2000 * 0.4 + 10 * 20, 270_001 * 8 + 2000 * 0.8 + 10 * 30],
        );
      });

    it("[P5] a tool call arrives complete, with parsed arguments", async () => {
      const outcome = replied(
        await ask({
          text: "Let me look.",
          toolCalls: [{ id: "c1", name: "laptop__Bash", arguments: { command: "ls -la", deep: { list: [1, "zwölf ✓"] } } }],
        }),
      );
      assert.deepEqual(outcome.calls, [
        { providerId: "c1", name: "laptop__Bash", arguments: { command: "ls -la", deep: { list: [1, "zwölf ✓"] } } },
      ]);
      assert.equal(outcome.message.stopReason, "toolUse");
    });

    for (const [status, reason, retryable] of [
      [400, "model.rejected", false],
      [401, "model.auth", false],
      [402, "model.rejected", false],
      [403, "model.auth", false],
      [404, "model.rejected", false],
      [413, "model.rejected", false],
      [422, "model.rejected", false],
      [429, "model.rate_limited", true],
      [500, "model.bad_answer", true],
      [502, "model.unreachable", true],
      [503, "model.overloaded", true],
      [504, "model.timeout", true],
      [529, "model.overloaded", true],
    ] as const) {
      it(`[P5] HTTP ${status} is ${reason}, ${retryable ? "tried again" : "never tried again"}`, async () => {
        const failure = failed(
          await ask({ status, body: JSON.stringify({ error: { type: "x", message: `because of ${KEY}` } }) }),
          reason,
          retryable,
        );
        assert.equal(failure.retryAfterMs, undefined);
        assert.equal(fake.requests.length, 1, "the client itself never tries again");
      });
    }
    it("[P5] retry-after in seconds", async () => {
      assert.equal(failed(await ask({ status: 429, headers: { "retry-after": "7" } }), "model.rate_limited", true).retryAfterMs, 7000);
    });
    it("[P5] retry-after as a date", async () => {
      fake.enqueue({ status: 503, headers: { "retry-after": new Date(1_700_000_030_000).toUTCString() } });
      const time = manualTime(1_700_000_000_000);
      const outcome = await createModelClient({ timers: time }).call(toFake(fake, wire, { now: time.now }).request);
      assert.equal(failed(outcome, "model.overloaded", true).retryAfterMs, 30_000);
    });

    it("[P5] an unknown host name", async () => {
      const gone = createModelClient({
        fetch: () =>
          Promise.reject(
            Object.assign(new TypeError("fetch failed"), {
              cause: Object.assign(new Error("getaddrinfo ENOTFOUND"), { code: "ENOTFOUND" }),
            }),
          ),
      });
      assert.match(failed(await gone.call(toFake(fake, wire).request), "model.unreachable", true).error.message, /ENOTFOUND/);
    });
    it("[P5] a closed port", async () => {
      const other = await startFakeModel();
      await other.close();
      failed(await client.call(toFake(other, wire).request), "model.unreachable", true);
    });
    it("[P5] a server without valid TLS", async () => {
      failed(
        await client.call(toFake(fake, wire, {}, { baseUrl: fake.url.replace("http:", "https:") }).request),
        "model.unreachable",
        true,
      );
    });
    it("[P5] a reset before the answer", async () => {
      failed(await ask({ fault: "reset" }), "model.unreachable", true);
    });
    it("[P5] a reset in the middle of the answer", async () => {
      failed(await ask({ text: "one two three four five six", fault: "reset_midway" }), "model.bad_answer", true);
    });
    it("[P5] no first byte within 60 seconds", async () => {
      const time = manualTime();
      fake.enqueue({ fault: "stall" });
      const call = createModelClient({ timers: time }).call(toFake(fake, wire, { now: time.now }).request);
      const seen = await fake.request(1);
      time.advance(59_999);
      assert.equal(time.pending, 1, "still waiting");
      time.advance(1);
      assert.match(failed(await call, "model.timeout", true).error.message, /60 seconds/);
      await seen.closed;
      assert.equal(time.pending, 0);
    });
    it("[P5] silence of 45 seconds in the middle", async () => {
      const time = manualTime();
      fake.enqueue({ text: "one two three four", fault: "idle" });
      const heard = toFake(fake, wire, { now: time.now });
      const call = createModelClient({ timers: time }).call(heard.request);
      await heard.firstText;
      await fake.request(1);
      time.advance(45_000);
      assert.match(failed(await call, "model.timeout", true).error.message, /45 seconds/);
      await (await fake.request(1)).closed;
    });
    it("[P5] the whole call has a time limit", async () => {
      const time = manualTime();
      fake.enqueue({ fault: "stall" });
      const call = createModelClient({ timers: time }).call(toFake(fake, wire, { now: time.now, timeoutMs: 20_000 }).request);
      await fake.request(1);
      time.advance(20_000);
      assert.match(failed(await call, "model.timeout", true).error.message, /20 seconds/);
    });
    it("[P5] an error inside a stream that began with 200", async () => {
      failed(
        await ask({ text: "one two three four", fault: "error_in_band" }),
        wire === "anthropic-messages" ? "model.overloaded" : "model.unreachable",
        true,
      );
    });
    it("[P5] the body ends in the middle of the text", async () => {
      failed(await ask({ text: "one two three four", fault: "cut_text" }), "model.bad_answer", true);
    });
    it("[P5] the body ends in the middle of a call's arguments: no call", async () => {
      const outcome = await ask({
        toolCalls: [{ name: "laptop__Bash", arguments: { command: "rm -rf /tmp/important-things" } }],
        fault: "cut_args",
      });
      failed(outcome, "model.bad_answer", true);
      noCall(outcome);
    });
    it("[SP2] arguments of a call that never became complete count, and so does a call that was taken and not answered", async () => {
      const counted = async (script: Script): Promise<[written: number, accepted: number]> => {
        let [written, accepted] = [0, 0];
        const onArguments = (length: number): void => {
          written += length;
        };
        fake.enqueue(script);
        await client.call(toFake(fake, wire, { onArguments, onAccepted: () => void accepted++ }).request);
        return [written, accepted];
      };
      const command = "x".repeat(40_000);
      const toolCalls = [{ name: "laptop__Bash", arguments: { command } }];
      const [cut, taken] = await counted({ toolCalls, fault: "cut_args" });
      assert.ok(cut > 0 && cut < 40_014, `${cut} characters`);
      assert.equal(taken, 1);
      assert.deepEqual(await counted({ toolCalls }), [JSON.stringify({ command }).length, 1]);
      assert.deepEqual(await counted({ fault: "json" }), [0, 1]);
      for (const script of [{ status: 429 }, { fault: "reset" }, { fault: "redirect" }, { fault: "html" }] as const)
        assert.deepEqual(await counted(script), [0, 0], JSON.stringify(script));
    });
    it("[SP2] a call that was taken counts also when no byte of its answer came", async () => {
      const empty = new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
      const other = createModelClient({
        fetch: () => Promise.resolve(new Response(empty, { headers: { "content-type": "text/event-stream" } })),
      });
      let accepted = 0;
      failed(await other.call(toFake(fake, wire, { onAccepted: () => void accepted++ }).request), "model.bad_answer", true);
      assert.equal(accepted, 1);
    });
    it("[P5] incomplete arguments in a complete answer give no call", async () => {
      const outcome = await ask({ toolCalls: [{ name: "laptop__Bash", arguments: '{"command": "rm -rf /tmp/a' }] });
      failed(outcome, "model.bad_answer", true);
      noCall(outcome);
    });
    it("[P5] an answer cut at its token limit inside a call gives no call and is not retried", async () => {
      const outcome = await ask({
        text: "Now.",
        toolCalls: [{ name: "laptop__Bash", arguments: '{"command": "rm -rf /tmp/a' }],
        stop: "length",
      });
      failed(outcome, "model.bad_answer", false);
      noCall(outcome);
    });
    it("arguments that are not JSON reach the session as invalid", async () => {
      const outcome = replied(await ask({ toolCalls: [{ id: "c1", name: "laptop__Bash", arguments: "command=ls" }] }));
      assert.deepEqual(outcome.calls[0]?.arguments, { [INVALID_ARGUMENTS]: "command=ls" });
    });
    it("arguments that are JSON but not an object are invalid", async () => {
      const outcome = replied(await ask({ toolCalls: [{ name: "laptop__Bash", arguments: '["ls"]' }] }));
      assert.deepEqual(outcome.calls[0]?.arguments, { [INVALID_ARGUMENTS]: '["ls"]' });
    });
    it("raw line breaks inside a string are read as what they are", async () => {
      const outcome = replied(await ask({ toolCalls: [{ name: "laptop__Write", arguments: '{"content": "one\ntwo"}' }] }));
      assert.deepEqual(outcome.calls[0]?.arguments, { content: "one\ntwo" });
    });
    it("missing arguments are an empty object", async () => {
      assert.deepEqual(replied(await ask({ toolCalls: [{ name: "gsv__ListFiles", arguments: "" }] })).calls[0]?.arguments, {});
    });
    it("a call of an unknown tool reaches the session, which answers it", async () => {
      assert.equal(replied(await ask({ toolCalls: [{ name: "nobody__Knows", arguments: {} }] })).calls[0]?.name, "nobody__Knows");
    });
    it("two calls with one id become two calls with two ids", async () => {
      const outcome = replied(
        await ask({
          toolCalls: [
            { id: "same", name: "laptop__Read", arguments: { path: "a" } },
            { id: "same", name: "laptop__Read", arguments: { path: "b" } },
          ],
        }),
      );
      assert.deepEqual(
        outcome.calls.map((call) => call.arguments),
        [{ path: "a" }, { path: "b" }],
      );
      assert.equal(new Set(outcome.calls.map((call) => call.providerId)).size, 2);
      assert.deepEqual(
        outcome.message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : [])),
        outcome.calls.map((call) => call.providerId),
      );
    });
    it("repeated ids of several answers are sent back as different ids", async () => {
      const turn = (n: number) => [
        {
          role: "assistant",
          content: [{ type: "toolCall", id: "call_0", name: "laptop__Read", arguments: { path: `f${n}` } }],
          api: wire,
          provider: "p",
          model: "m",
          usage: { input: 1, output: 1, total: 2 },
          stopReason: "toolUse",
          timestamp: n,
        } as const,
        {
          role: "toolResult",
          toolCallId: "call_0",
          toolName: "laptop__Read",
          content: [{ type: "text", text: `content ${n}` }],
          isError: false,
          timestamp: n,
        } as const,
      ];
      fake.enqueue({ text: "ok" });
      replied(await client.call(toFake(fake, wire, { messages: [user("go"), ...turn(1), ...turn(2)] }).request));
      const sent = JSON.stringify(fake.requests[0]?.body);
      const ids = [...sent.matchAll(/"(?:tool_use_id|tool_call_id)":"([^"]+)"/g)].map((match) => match[1]);
      assert.equal(new Set(ids).size, 2, sent);
      for (const id of ids) assert.ok(sent.includes(`"id":"${id}"`), "each result belongs to a call");
    });
    it("100 tool calls in one answer", async () => {
      const outcome = replied(
        await ask({ toolCalls: Array.from({ length: 100 }, (_, i) => ({ name: "laptop__Read", arguments: { path: `f${i}` } })) }),
      );
      assert.equal(outcome.calls.length, 100);
      assert.deepEqual(outcome.calls[99]?.arguments, { path: "f99" });
    });
    it("an answer without content is invalid", async () => {
      failed(await ask({}), "model.bad_answer", true);
    });
    it("5 MB of text", async () => {
      const text = "0123456789abcdef".repeat(327_680);
      const outcome = replied(await ask({ text: text.match(/.{1,65536}/gs) ?? [] }));
      assert.equal(textOf(outcome).length, text.length);
    });
    it("an answer over the text limit is stopped", async () => {
      const failure = failed(await ask({ text: Array.from({ length: 150 }, () => "x".repeat(65_536)) }), "model.bad_answer", false);
      assert.match(failure.error.message, /size limit/);
    });
    it("a long file in a call's arguments costs linear work", async () => {
      const content = 'line of code with "quotes"\n'.repeat(8000);
      const started = process.cpuUsage();
      const outcome = replied(await ask({ toolCalls: [{ name: "laptop__Write", arguments: { path: "a", content } }] }));
      const spent = process.cpuUsage(started);
      assert.equal(outcome.calls[0]?.arguments["content"], content);
      assert.ok(
        (spent.user + spent.system) / 1000 < 4000,
        `took ${(spent.user + spent.system) / 1000} ms; parsing at each piece takes minutes`,
      );
    });
    it("[P5] a refusal is reported as such", async () => {
      failed(await ask({ text: "I", stop: "refusal" }), "model.refused", false);
    });
    it("[P5] a context overflow is reported as such", async () => {
      failed(await ask({ status: 400, message: "overflow" }), "model.context_overflow", false);
    });
    it("wrong usage does no harm", async () => {
      const outcome = replied(await ask({ text: "hi", usage: { input: -5, output: Number.MAX_VALUE, cacheRead: 0 } }));
      for (const n of [outcome.usage.input, outcome.usage.output, outcome.usage.total])
        assert.ok(Number.isSafeInteger(n) && n >= 0, JSON.stringify(outcome.usage));
    });
    it("one byte per packet", async () => {
      assert.equal(textOf(replied(await ask({ text: "Grüße, 世界 🌍!", fault: "dribble" }))), "Grüße, 世界 🌍!");
    });
    it("bytes that are not UTF-8", async () => {
      assert.match(textOf(replied(await ask({ text: "one two three four", fault: "bad_utf8" }))), /\ufffd/);
    });
    it("lines that end with CRLF", async () => {
      assert.equal(textOf(replied(await ask({ text: "one two three", fault: "crlf" }))), "one two three");
    });
    it("[P5] no stop reason", async () => {
      const outcome = await ask({
        text: "one",
        toolCalls: [{ name: "laptop__Bash", arguments: { command: "rm -rf /tmp/a" } }],
        stop: "missing",
      });
      failed(outcome, "model.bad_answer", true);
      noCall(outcome);
    });
    it("invalid data after the end, on a connection that stays open", async () => {
      assert.equal(textOf(replied(await ask({ text: "one two three", fault: "garbage_after" }))), "one two three");
      await (await fake.request(1)).closed;
    });
    it("invalid data in the middle", async () => {
      failed(await ask({ text: "one two three", fault: "garbage_midway" }), "model.bad_answer", true);
    });
    it("a redirect is not followed", async () => {
      assert.match(failed(await ask({ fault: "redirect" }), "model.rejected", false).error.message, /redirect .*127\.0\.0\.1:9/);
    });
    it("a web page instead of an answer", async () => {
      failed(await ask({ fault: "html" }), "model.bad_answer", true);
    });
    it("JSON instead of a stream", async () => {
      failed(await ask({ fault: "json" }), "model.bad_answer", true);
    });
    it("an error in JSON with status 200", async () => {
      failed(await ask({ fault: "json", body: '{"error":{"type":"authentication_error","message":"bad key"}}' }), "model.auth", false);
    });
    it("[P14] an abort ends the call immediately and closes the connection", async () => {
      fake.enqueue({ text: "one two three four", midGate: { name: "never", after: 2 } });
      const heard = toFake(fake, wire);
      const call = client.call(heard.request);
      await heard.firstText;
      heard.abort();
      failed(await call, "run.aborted", false);
      await (await fake.request(1)).closed;
    });
    it("[P5] thinking is kept for the next request and is not part of the text", async () => {
      fake.enqueue({ thinking: "hmm, let me see", text: "Yes." });
      const heard = toFake(fake, wire);
      const outcome = replied(await client.call(heard.request));
      assert.equal(heard.text(), "Yes.");
      assert.deepEqual(outcome.message.content[0]?.type, "thinking");
    });
    it("tool names that a provider would refuse are sent in its own spelling and come back as ours", async () => {
      const name = "my.host.example__Bash";
      fake.enqueue({ text: "x" });
      await client.call(toFake(fake, wire, { tools: [tool(name)] }).request);
      const sent = /"name":"(my_host[^"]*)"/.exec(JSON.stringify(fake.requests[0]?.body))?.[1] ?? "";
      assert.match(sent, /^[A-Za-z0-9_-]{1,64}$/);
      fake.enqueue({ toolCalls: [{ name: sent, arguments: {} }] });
      assert.equal(replied(await client.call(toFake(fake, wire, { tools: [tool(name)] }).request)).calls[0]?.name, name);
    });
  });
}
