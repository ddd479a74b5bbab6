import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { tool, user } from "../../test/models/support.ts";
import type { Message } from "../ports/messages.ts";
import { parseArguments } from "./answer.ts";
import { toolNamesOf, wireName } from "./tool-names.ts";
import { TranscriptWriter } from "./transcript.ts";

describe("tool names on the wire", () => {
  it("fit every provider and stay distinct", () => {
    const ours = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,63}__[A-Za-z0-9_.-]{1,100}$/);
    fc.assert(
      fc.property(fc.uniqueArray(ours, { maxLength: 30 }), (names) => {
        const wire = names.map(wireName);
        for (const name of wire) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
        assert.equal(new Set(wire).size, names.length);
        const back = toolNamesOf(names);
        assert.deepEqual(wire.map(back), names);
      }),
    );
  });
});
describe("transcript", () => {
  const long: Message[] = [];
  for (let i = 0; i < 500; i++) {
    long.push(user(`question ${i}`));
    long.push({
      role: "assistant",
      content: [
        { type: "text", text: "x" },
        { type: "toolCall", id: `c${i}`, name: "a__B", arguments: { command: "y".repeat(200) } },
      ],
      api: "a",
      provider: "p",
      model: "m",
      usage: { input: 1, output: 1, total: 2 },
      stopReason: "toolUse",
      timestamp: 1,
    });
    long.push({
      role: "toolResult",
      toolCallId: `c${i}`,
      toolName: "a__B",
      content: [{ type: "text", text: "z".repeat(1000) }],
      isError: false,
      timestamp: 1,
    });
    long.push({
      role: "assistant",
      content: [{ type: "text", text: "done" }],
      api: "a",
      provider: "p",
      model: "m",
      usage: { input: 1, output: 1, total: 2 },
      stopReason: "stop",
      timestamp: 1,
    });
  }
  it("shares texts and arguments with the history", () => {
    const out = new TranscriptWriter().write("s", long, []).messages;
    const assistant = out[2];
    assert.ok(assistant?.role === "assistant");
    const [ours, theirs] = [long[1]?.content[1], assistant.content[1]];
    assert.ok(typeof ours === "object" && ours.type === "toolCall" && theirs?.type === "toolCall");
    assert.equal(theirs.arguments, ours.arguments);
  });
  it("[F60] of a conversation that has grown, only the new messages are converted", () => {
    let reads = 0;
    const counted = long.map((message) =>
      Object.defineProperty({ ...message }, "timestamp", {
        enumerable: true,
        get: () => {
          reads += 1;
          return 1;
        },
      }),
    );
    const writer = new TranscriptWriter();
    writer.write("s", counted.slice(0, -4), []);
    assert.equal(reads, counted.length - 4);
    const whole = writer.write("s", counted, []);
    assert.equal(reads, counted.length);
    writer.write("s", counted, []);
    assert.equal(reads, counted.length, "the same conversation again");
    assert.deepEqual(whole, new TranscriptWriter().write("s", long, []));
  });
  it("[F60] whatever becomes of the conversation, the transcript is the one that a new writer makes", () => {
    const change = fc.record({ keep: fc.nat({ max: 40 }), from: fc.nat({ max: 30 }), add: fc.nat({ max: 9 }) });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 6 }), (changes) => {
        const writer = new TranscriptWriter();
        let messages: readonly Message[] = [];
        for (const { keep, from, add } of changes) {
          // The same ids again and again, so that calls are renamed.
          messages = [...messages.slice(from % 3, keep), ...long.slice(from, from + add)];
          assert.deepEqual(writer.write("s", messages, []), new TranscriptWriter().write("s", messages, []));
        }
      }),
    );
  });
  it("[W7] results follow their calls: each to its own, and two of one call to the same", () => {
    const [, answer, result] = long;
    assert.ok(answer?.role === "assistant" && result);
    const [text, one] = answer.content;
    assert.ok(text && one);
    const idsOf = (calls: number): readonly string[] => {
      const twice = { ...answer, content: [text, ...Array.from({ length: calls }, () => one)] };
      const messages = [user("a"), answer, result, user("b"), twice, result, result];
      const out = new TranscriptWriter().write("s", messages, []).messages;
      return out.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []));
    };
    assert.deepEqual(idsOf(1), ["c0", "c0_2", "c0_2"]);
    assert.deepEqual(idsOf(2), ["c0", "c0_2", "c0_3"]);
  });
  it("[P4.2] the order of tools does not depend on the order in which machines connect", () => {
    const write = (...names: readonly string[]): unknown =>
      new TranscriptWriter().write(
        "s",
        [],
        names.map((name) => tool(name)),
      );
    assert.deepEqual(write("b__X", "a__X"), write("a__X", "b__X"));
  });
});
describe("arguments", () => {
  it("[P5] a text that ends in the middle was cut off; one that is closed and wrong is invalid", () => {
    const kindOf = (raw: string): string => parseArguments(raw).kind;
    for (const raw of ['{"a":"b', '{"a":"b\\"}', '{"a":[1', "[", '{"a":"}]}', '{"a":"\\\\\\"}', '{"ab\\'])
      assert.equal(kindOf(raw), "cut", raw);
    for (const raw of ['{"a":"\\\\"]', "{a}", "a", '{"a":"b"}}', '"]"', "[1]", '{"a":b]']) assert.equal(kindOf(raw), "invalid", raw);
    assert.deepEqual(parseArguments("  "), { kind: "valid", value: {} });
  });
  it("[P5] a value that fits no frame is invalid", () => {
    const nested = (levels: number): string => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;
    assert.deepEqual(
      [60, 200, 5_000].map((levels) => parseArguments(nested(levels)).kind),
      ["valid", "invalid", "invalid"],
    );
  });
  it("[P5] no prefix of an object is ever accepted as an object", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), fc.nat(), (value, at) => {
        const whole = JSON.stringify(value);
        const cut = whole.slice(0, 1 + (at % (whole.length - 1)));
        assert.notEqual(parseArguments(cut).kind, "valid");
        assert.deepEqual(parseArguments(whole), { kind: "valid", value: JSON.parse(whole) });
      }),
      { numRuns: 2000 },
    );
  });
});
