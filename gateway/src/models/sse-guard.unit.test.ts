import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ModelWire } from "../../../protocol/gen/types.ts";
import { SseGuard } from "./sse-guard.ts";

function run(wire: ModelWire, chunks: readonly string[]): { out: string; guard: SseGuard } {
  const guard = new SseGuard(wire);
  const out = [...chunks.flatMap((chunk) => guard.push(chunk)), ...guard.end()].join("");
  return { out, guard };
}
const anthropic = (type: string, data: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
const piece = (index: number, partial_json: string) =>
  anthropic("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } });
const openai = (delta: object, more: object = {}) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;
const parsed = (
  out: string,
): {
  choices: { delta: { tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[]; content?: string } }[];
}[] =>
  out
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice(6)));

describe("sse guard", () => {
  it("joins the pieces of arguments and passes them on before the block ends", () => {
    const { out } = run("anthropic-messages", [
      piece(0, '{"a"'),
      anthropic("ping"),
      piece(0, ":1}"),
      anthropic("content_block_stop", { index: 0 }),
    ]);
    assert.equal(out, piece(0, '{"a":1}') + anthropic("content_block_stop", { index: 0 }));
  });
  it("[SP2] tells the length of each piece of arguments when it comes, in every format that it holds back", () => {
    const told = (wire: ModelWire, ...chunks: string[]): number[] => {
      const lengths: number[] = [];
      const guard = new SseGuard(wire, (length) => lengths.push(length));
      for (const chunk of chunks) assert.deepEqual(guard.push(chunk), []);
      return lengths;
    };
    assert.deepEqual(told("anthropic-messages", piece(0, '{"a"'), piece(1, ":1")), [4, 2]);
    const call = (args: string) => openai({ tool_calls: [{ index: 0, id: "c", function: { name: "t", arguments: args } }] });
    assert.deepEqual(told("openai-completions", call('{"a"'), call(":1")), [4, 2]);
    const delta = `data: ${JSON.stringify({ type: "response.function_call_arguments.delta", output_index: 0, delta: '{"a":' })}\n\n`;
    assert.deepEqual(told("openai-responses", delta, delta), [5, 5]);
  });
  it("ends at the answer's end event and ignores what follows", () => {
    const { out, guard } = run("anthropic-messages", [`${anthropic("message_stop")}event: error\ndata: {}\n\n`]);
    assert.equal(out, anthropic("message_stop"));
    assert.deepEqual([guard.finished, guard.fault], [true, undefined]);
    assert.equal(run("openai-completions", ["data: [DONE]\n\ndata: {oops\n\n"]).guard.fault, undefined);
  });
  it("turns an error event into a fault with its data", () => {
    assert.deepEqual(run("anthropic-messages", ['event: error\ndata: {"type":"error"}\n\n']).guard.fault, {
      kind: "in_band",
      body: '{"type":"error"}',
    });
    assert.equal(run("openai-completions", ['data: {"error":{"message":"no"}}\n\n']).guard.fault?.kind, "in_band");
  });
  it("does not treat the word error in a text as an error", () => {
    assert.equal(
      run("openai-completions", [openai({ content: 'say "error" or {"error":"x"}' }), 'data: {"choices":[],"error":null}\n\n']).guard.fault,
      undefined,
    );
  });
  it("accepts events without a name, comments, a byte order mark and CRLF", () => {
    const { out } = run("anthropic-messages", ['\ufeff: hello\r\ndata: {"type":"message_stop"}\r\n\r\n']);
    assert.equal(out, anthropic("message_stop"));
  });
  it("separates calls that share one index, as some servers send them", () => {
    const call = (id: string, args: string) => openai({ tool_calls: [{ index: 0, id, function: { name: "t", arguments: args } }] });
    const calls =
      parsed(run("openai-completions", [`${call("a", "{}") + call("b", '{"x":1}')}data: [DONE]\n\n`]).out)[0]?.choices[0]?.delta
        .tool_calls ?? [];
    assert.deepEqual(
      calls.map((entry) => [entry.index, entry.id, entry.function.arguments]),
      [
        [0, "a", "{}"],
        [1, "b", '{"x":1}'],
      ],
    );
  });
  it("accepts calls without ids and indexes", () => {
    const { out } = run("openai-completions", [
      openai({ tool_calls: [{ function: { name: "t", arguments: '{"a":' } }] }),
      openai({ tool_calls: [{ function: { arguments: "1}" } }] }),
      openai({ tool_calls: [{ function: { name: "u", arguments: {} } }] }),
      "data: [DONE]\n\n",
    ]);
    const calls = parsed(out)[0]?.choices[0]?.delta.tool_calls ?? [];
    assert.deepEqual(
      calls.map((entry) => [entry.function.name, entry.function.arguments]),
      [
        ["t", '{"a":1}'],
        ["u", "{}"],
      ],
    );
    assert.equal(new Set(calls.map((entry) => entry.id)).size, 2);
  });
  it("keeps text that comes in the same chunk as a call", () => {
    const { out } = run("openai-completions", [
      openai(
        { content: "hi", tool_calls: [{ index: 0, id: "a", function: { name: "t", arguments: "{}" } }] },
        { finish_reason: "tool_calls" },
      ),
      "data: [DONE]\n\n",
    ]);
    assert.match(out, /"content":"hi"/);
    assert.match(out, /"finish_reason":"tool_calls"/);
  });
  it("keeps the data that a provider expects back with a call", () => {
    const { guard } = run("openai-completions", [
      openai({
        tool_calls: [
          { index: 0, id: "a", function: { name: "t", arguments: "{}" }, extra_content: { google: { thought_signature: "s" } } },
        ],
      }),
    ]);
    assert.deepEqual(guard.extras.get("a"), { google: { thought_signature: "s" } });
  });
  it("a refusal in OpenAI's own field is shown as text", () => {
    assert.equal(
      parsed(run("openai-completions", [openai({ refusal: "I can't help with that." })]).out)[0]?.choices[0]?.delta.content,
      "I can't help with that.",
    );
  });
  it("stops at an endless line", () => {
    const guard = new SseGuard("anthropic-messages");
    const chunk = "x".repeat(1024 * 1024);
    for (let i = 0; i < 9; i++) guard.push(chunk);
    assert.equal(guard.fault?.kind, "too_large");
  });
  it("OpenAI's responses: whole arguments once, errors as faults, and an end", () => {
    const event = (type: string, data: object = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
    const item = { type: "function_call", arguments: '{"a":1}' };
    const calls = (...events: string[]): string[] => run("openai-responses", events).out.match(/"type":"[a-z_.]+"/g) ?? [];
    const delta = event("response.function_call_arguments.delta", { output_index: 0, delta: '{"a"' });
    const done = event("response.function_call_arguments.done", { output_index: 0, arguments: '{"a":1}' });
    const closed = event("response.output_item.done", { output_index: 0, item });
    const said = ['"type":"response.function_call_arguments.done"', '"type":"response.output_item.done"', '"type":"function_call"'];
    assert.deepEqual(calls(delta, done, closed), said);
    assert.deepEqual(calls(delta, closed), said, "a server that sends no end of the arguments");
    assert.deepEqual(run("openai-responses", [event("response.completed"), "data: <junk>\n\n"]).guard.fault, undefined);
    const failed = event("response.failed", { response: { error: { code: "rate_limit_exceeded", message: "slow" } } });
    assert.deepEqual(run("azure-openai-responses", [failed]).guard.fault, {
      kind: "in_band",
      body: '{"error":{"type":"rate_limit_exceeded","message":"slow"}}',
    });
    assert.equal(run("openai-responses", ["data: nonsense\n\n"]).guard.fault?.kind, "garbage");
  });
  it("Gemini: errors inside the stream are faults", () => {
    assert.equal(run("google-vertex", ['data: {"error":{"code":503}}\n\n']).guard.fault?.kind, "in_band");
    assert.equal(run("google-generative-ai", ["data: nonsense\n\n"]).guard.fault?.kind, "garbage");
    assert.equal(run("google-generative-ai", ['data: {"candidates": []}\r\n\r\n']).out, 'data: {"candidates":[]}\n\n');
  });
  it("older models of Workers AI answer in OpenAI's format afterwards", () => {
    const { out } = run("openai-completions", [
      'data: {"response":"Hel","p":"abc"}\n\n',
      'data: {"response":"lo"}\n\n',
      'data: {"response":"","usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}\n\ndata: [DONE]\n\n',
    ]);
    const chunks = out.split("\n\n").map((text) => text.slice("data: ".length));
    assert.equal(chunks[0], '{"choices":[{"index":0,"delta":{"content":"Hel"}}]}');
    assert.match(chunks[2] ?? "", /"finish_reason":"stop".*"total_tokens":7/);
    assert.equal(chunks[3], "[DONE]");
  });
  it("returns the same events however the bytes are split", () => {
    const streams = {
      "anthropic-messages":
        anthropic("message_start", { message: {} }) +
        anthropic("content_block_delta", { index: 0, delta: { type: "text_delta", text: "ünï\n🌍" } }) +
        piece(1, '{"a"') +
        piece(1, ":1}") +
        anthropic("content_block_stop", { index: 1 }) +
        anthropic("message_stop"),
      "openai-completions":
        openai({ content: "ünï\n🌍" }) +
        openai({ tool_calls: [{ index: 0, id: "a", function: { name: "t", arguments: "{" } }] }) +
        openai({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }) +
        openai({}, { finish_reason: "tool_calls" }) +
        "data: [DONE]\n\n",
    };
    for (const wire of ["anthropic-messages", "openai-completions"] as const) {
      const text = streams[wire];
      const whole = run(wire, [text]).out;
      fc.assert(
        fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), fc.boolean(), (cuts, crlf) => {
          const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
          const chunks = at.slice(1).map((end, i) => text.slice(at[i], end));
          assert.equal(run(wire, crlf ? chunks.map((chunk) => chunk.replaceAll("\n", "\r\n")) : chunks).out, whole);
        }),
        { numRuns: 300 },
      );
    }
  });
  it("never throws, whatever comes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<ModelWire>("anthropic-messages", "openai-completions"),
        fc.array(
          fc.oneof(
            fc.string(),
            fc.constantFrom(
              "data: ",
              "event: error\n",
              "\n\n",
              '{"choices":[{"delta":{"tool_calls":[{}]}}]}',
              '{"choices":[{"delta":{"tool_calls":[null,{"index":"x","function":1}]}}]}',
              "event: content_block_delta\n",
              '"input_json_delta"',
            ),
          ),
        ),
        (wire, chunks) => {
          run(wire, chunks);
        },
      ),
      { numRuns: 2000 },
    );
  });
  it("[F21] an event of endless lines is refused before it takes much memory, however short the lines are", () => {
    for (const line of ["data:\n", "data: x\n"]) {
      const guard = new SseGuard("openai-completions");
      let lines = 0;
      for (; guard.fault === undefined && lines < 2_000_000; lines += 10_000) guard.push(line.repeat(10_000));
      assert.deepEqual(guard.fault, { kind: "too_large" });
      assert.ok(lines <= 600_000, `${lines} lines were held`);
    }
    // Lines of separate events do not add up.
    const guard = new SseGuard("anthropic-messages");
    for (let n = 0; n < 60; n++) guard.push("data: {}\n\n".repeat(10_000));
    assert.equal(guard.fault, undefined);
  });

  const MOST = 8 * 1024 * 1024;
  const DELTA = 'data: {"choices":[{"delta":{"content":"a"}}]}';
  it("an event without its closing blank line counts at the end of the bytes, after a fault nothing does", () => {
    for (const last of ["data: [DONE]", "data: [DONE]\r", "data: [DONE]\n", "data: [DONE]\r\n"]) {
      const { out, guard } = run("openai-completions", [last]);
      assert.deepEqual([out, guard.finished], ["data: [DONE]\n\n", true], JSON.stringify(last));
    }
    const guard = new SseGuard("openai-completions");
    guard.push(`${DELTA}\n${"x".repeat(MOST + 1)}`);
    assert.deepEqual([guard.fault, guard.end()], [{ kind: "too_large" }, []]);
    const done = new SseGuard("openai-completions");
    done.push(`data: [DONE]\n\n${DELTA}`);
    assert.deepEqual(done.end(), []);
  });
  it("[F21] the limits of a line, of an event and of all arguments are exact", () => {
    const isTooLarge = (wire: ModelWire, chunk: string): boolean => {
      const guard = new SseGuard(wire);
      guard.push(chunk);
      return guard.fault?.kind === "too_large";
    };
    assert.deepEqual(
      [0, 1].map((more) => isTooLarge("openai-completions", "x".repeat(MOST + more))),
      [false, true],
    );
    const line = (length: number): string => `data:${"x".repeat(length - 5)}\n`;
    assert.deepEqual(
      [16, 15].map((less) => isTooLarge("openai-completions", line(MOST - less))),
      [false, true],
    );
    const half = piece(0, "x".repeat(MOST / 2));
    assert.deepEqual(
      [half, half + piece(0, "x")].map((more) => isTooLarge("anthropic-messages", half + more)),
      [false, true],
    );
  });
  it("a byte order mark is taken off the first line only", () => {
    assert.equal(run("openai-completions", ["\ufeffdata: [DONE]\n\n"]).guard.finished, true);
    assert.equal(run("openai-completions", [`\n\ufeff${DELTA}\n\n`]).out, "");
  });
  it("an event may have several lines of data", () => {
    assert.equal(run("google-generative-ai", ['data: {"a":\ndata: 1}\n\n']).out, 'data: {"a":1}\n\n');
  });
  it("Anthropic: only pieces of arguments are read; broken ones are a fault, other events pass as they are", () => {
    const start = anthropic("message_start", { message: { id: "input_json_delta" } });
    const broken = "event: content_block_delta\ndata: {broken\n\n";
    const said = anthropic("content_block_delta", { index: 0, delta: { type: "text_delta", text: "input_json_delta" } });
    assert.equal(run("anthropic-messages", [start, broken, said]).out, start + broken + said);
    const cut = 'event: content_block_delta\ndata: {"delta":{"type":"input_json_delta"\n\n';
    assert.equal(run("anthropic-messages", [cut]).guard.fault?.kind, "garbage");
  });
  it("OpenAI's responses: [DONE] is an end, and an event without a type is none", () => {
    assert.equal(run("openai-responses", ["data: [DONE]\n\n"]).guard.finished, true);
    assert.equal(run("openai-responses", ['data: {"a":1}\n\n']).guard.fault?.kind, "garbage");
    assert.equal(run("openai-responses", ['data: {"type":"response.failed"\n\n']).guard.fault?.kind, "garbage");
    assert.equal(run("openai-responses", ['data: {"type":"response.created"\n\n']).guard.fault, undefined);
  });
  it("OpenAI: invalid JSON is a fault before the stop reason, and is ignored after it", () => {
    assert.equal(run("openai-completions", ["data: oops\n\n"]).guard.fault?.kind, "garbage");
    assert.equal(run("openai-completions", ["data:  \n\n"]).guard.fault, undefined);
    const stopped = openai({ content: "hi" }, { finish_reason: "stop" });
    const { out, guard } = run("openai-completions", [`${stopped}data: oops\n\ndata: [DONE]\n\n`]);
    assert.deepEqual([out, guard.fault], [`${stopped}data: [DONE]\n\n`, undefined]);
  });
  it("OpenAI: an error is an event of that name, an object or a text", () => {
    const faultOf = (event: string): unknown => run("openai-completions", [`${event}\n\n`]).guard.fault?.kind;
    assert.equal(faultOf('event: error\ndata: {"message":"no"}'), "in_band");
    assert.equal(faultOf('data: {"error":"no"}'), "in_band");
    assert.equal(faultOf('data: {"error":"","choices":[]}'), undefined);
  });
  it("Workers AI: only its own chunks are converted, and an empty one is left out", () => {
    const usage = 'data: {"id":"x","usage":{"total_tokens":7}}\n\n';
    assert.equal(run("openai-completions", [usage]).out, usage);
    assert.equal(run("openai-completions", ['data: {"response":""}\n\n']).out, "");
  });
  it("OpenAI: of a chunk with calls the rest passes when it says something", () => {
    const call = { tool_calls: [{ index: 0, id: "a", function: { name: "t", arguments: "{}" } }] };
    const said = (delta: object, more: object = {}): readonly (object | undefined)[] =>
      parsed(run("openai-completions", [openai({ ...delta, ...call }, more), "data: [DONE]\n\n"]).out).map(({ choices }) =>
        choices[0]?.delta.tool_calls === undefined ? choices[0]?.delta : undefined,
      );
    for (const silent of [
      {},
      { role: "assistant" },
      { content: null },
      { content: "" },
      { annotations: [] },
      { role: "assistant", content: null },
    ])
      assert.deepEqual(said(silent), [undefined], JSON.stringify(silent));
    assert.deepEqual(said({ reasoning: "hm" }), [undefined, { reasoning: "hm" }]);
    assert.deepEqual(said({ annotations: [1] }), [undefined, { annotations: [1] }]);
    assert.deepEqual(said({}, { finish_reason: "tool_calls" }), [undefined, {}]);
    assert.deepEqual(said({ content: "hi", refusal: "no" }), [undefined, { content: "hi", refusal: "no" }]);
    assert.deepEqual(said({ refusal: "", reasoning: "hm" }), [undefined, { refusal: "", reasoning: "hm" }]);
  });
  it("an answer has at most 1,024 calls, and a server's id names its call also without an index", () => {
    const calls = (count: number): string =>
      openai({ tool_calls: Array.from({ length: count }, (_, index) => ({ index, id: `c${index}`, function: { name: "t" } })) });
    assert.equal(run("openai-completions", [calls(1024)]).guard.fault, undefined);
    assert.equal(run("openai-completions", [calls(1025)]).guard.fault?.kind, "too_large");
    const part = (id: string, args: string): string => openai({ tool_calls: [{ id, function: { name: "t", arguments: args } }] });
    const { out } = run("openai-completions", [part("a", '{"x":'), part("b", "{}"), part("a", "1}"), "data: [DONE]\n\n"]);
    const found = parsed(out)[0]?.choices[0]?.delta.tool_calls ?? [];
    assert.deepEqual(
      found.map((entry) => [entry.id, entry.function.arguments]),
      [
        ["a", '{"x":1}'],
        ["b", "{}"],
      ],
    );
  });
});
