import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asNodeId, type NodeEntry, type ToolDefinition } from "../../../protocol/gen/types.ts";
import type { ToolBinding } from "../ports/run-context.ts";
import { fromNative, fromNode, toContent } from "./tool-content.ts";
import { nativeFor, offeredTools, resolveCall, type ToolTable } from "./tools.ts";
import { asCallId } from "../../../protocol/gen/types.ts";

const definition = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: "",
  inputSchema: {},
  ...more,
});
const binding = (nodeId: string, tool: string, more: Partial<ToolDefinition> = {}, ledger = true): ToolBinding => ({
  definition: definition(`${nodeId}__${tool}`, more),
  nodeId,
  ledger,
});
const entry = (nodeId: string, online: boolean): NodeEntry => ({
  nodeId: asNodeId(nodeId),
  online,
  hostCapabilities: [],
  toolCapabilities: {},
  tools: ["Bash"],
});
const table: ToolTable = {
  own: true,
  native: [definition("gsv__ReadFile", { idempotent: true }), definition("gsv__WriteFile")],
  tools: [
    binding("lap", "Bash"),
    binding("my__lap", "Bash"),
    binding("lap", "Read", { idempotent: true, timeoutMs: 5_000 }),
    binding("old", "Bash", {}, false),
  ],
  nodes: [entry("lap", true), entry("off", false)],
  toolMs: 60_000,
};

describe("[G4] names", () => {
  test("a node's tool, with its bare name", () => {
    assert.deepEqual(resolveCall("lap__Bash", {}, table), {
      kind: "node",
      nodeId: "lap",
      tool: "Bash",
      ledger: true,
      idempotent: false,
      timeoutMs: 60_000,
      deadlineMs: 60_000,
    });
    assert.deepEqual(resolveCall("my__lap__Bash", {}, table), {
      kind: "node",
      nodeId: "my__lap",
      tool: "Bash",
      ledger: true,
      idempotent: false,
      timeoutMs: 60_000,
      deadlineMs: 60_000,
    });
  });
  test("a native tool, with its whole name", () => {
    assert.deepEqual(resolveCall("gsv__ReadFile", {}, table), {
      kind: "native",
      tool: "gsv__ReadFile",
      idempotent: true,
      timeoutMs: 60_000,
      deadlineMs: 60_000,
    });
  });
  for (const [name, reason] of [
    ["nope__Bash", "tool.unknown"],
    ["lap__Nope", "tool.unknown"],
    ["off__Bash", "node.offline"],
    ["Bash", "tool.unknown"],
    ["gsv__Nope", "tool.unknown"],
    ["", "tool.unknown"],
    ["constructor", "tool.unknown"],
  ] as const) {
    test(`${JSON.stringify(name)} is ${reason}`, () => {
      const target = resolveCall(name, {}, table);
      assert.equal(target.kind === "none" && target.reason, reason);
    });
  }
  test("arguments that are no object", () => {
    for (const args of [null, [], "x", 3, undefined]) {
      const target = resolveCall("lap__Bash", args, table);
      assert.equal(target.kind === "none" && target.reason, "tool.bad_args");
    }
  });
});

describe("[G5] times", () => {
  const times = (name: string, args: unknown, more: Partial<ToolTable> = {}): unknown => {
    const target = resolveCall(name, args, { ...table, ...more });
    return target.kind === "none" ? target : [target.timeoutMs, target.deadlineMs];
  };
  test("the tool's own, else the configured one", () => {
    assert.deepEqual(times("lap__Read", {}), [5_000, 5_000]);
    assert.deepEqual(times("lap__Bash", {}, { toolMs: 7_000 }), [7_000, 7_000]);
  });
  test("for Bash the greater of that and its argument, with time for the way", () => {
    assert.deepEqual(times("lap__Bash", { timeout: 120_000 }), [120_000, 125_000]);
    assert.deepEqual(times("lap__Bash", { timeout: 1_000 }), [60_000, 60_000]);
    assert.deepEqual(times("lap__Bash", { timeout: "soon" }), [60_000, 60_000]);
    assert.deepEqual(times("lap__Bash", { timeout: 1e12 }), [86_400_000, 86_400_000]);
  });
});

test("[P4.2] the list for the model is sorted, so that it is the same bytes each time", () => {
  const names = offeredTools(table.native, table.tools).map((tool) => tool.name);
  assert.deepEqual(names, [...names].sort());
  assert.deepEqual(offeredTools(table.native, [...table.tools].reverse()), offeredTools(table.native, table.tools));
});

describe("what tools give", () => {
  test("text, blocks, and anything else as JSON", () => {
    assert.deepEqual(toContent("hi"), [{ type: "text", text: "hi" }]);
    const blocks = [
      { type: "text", text: "a" },
      { type: "image", data: "AA==", mimeType: "image/png" },
    ];
    assert.deepEqual(toContent({ content: blocks, other: 1 }), blocks);
    assert.deepEqual(toContent(blocks), blocks);
    assert.deepEqual(toContent({ exitCode: 0 }), [{ type: "text", text: '{"exitCode":0}' }]);
    assert.deepEqual(toContent({ content: [{ type: "evil" }] }), [{ type: "text", text: '{"content":[{"type":"evil"}]}' }]);
    assert.deepEqual(toContent(undefined), [{ type: "text", text: "(no output)" }]);
    assert.deepEqual(toContent([]), [{ type: "text", text: "[]" }]);
  });
  test("how a node's call ended", () => {
    const callId = asCallId("c");
    assert.deepEqual(fromNode({ callId, result: "x" }), { content: [{ type: "text", text: "x" }], outcome: "ok" });
    assert.deepEqual(fromNode({ callId, error: "bad", reason: "tool.io" }), {
      content: [{ type: "text", text: "bad" }],
      outcome: "error",
      reason: "tool.io",
    });
    assert.equal(fromNode({ callId, outcome: "unknown", error: "pid 7", result: { tail: "half" } }).content.length, 2);
    assert.equal(fromNode({ callId, outcome: "cancelled" }).outcome, "cancelled");
  });
  test("how a native call ended", () => {
    assert.deepEqual(fromNative({ ok: false, error: { reason: "path.not_found", message: "no such file" } }), {
      content: [{ type: "text", text: "no such file" }],
      outcome: "error",
      reason: "path.not_found",
    });
  });
});

describe("[G4] arguments that are no JSON object", () => {
  const problem = (raw: string, name = "gsv__ReadFile"): string => {
    const target = resolveCall(name, { $invalidArguments: raw }, table);
    assert.equal(target.kind, "none");
    assert.equal(target.kind === "none" && target.reason, "tool.bad_args");
    return target.kind === "none" ? target.message : "";
  };
  test("are not run, and the model is told what is wrong with them", () => {
    assert.match(
      problem('{"path" "x"}'),
      /^Not run: the arguments of gsv__ReadFile could not be read \(.*JSON at position 8.*\)\. Write them again/,
    );
    assert.match(problem("[1]"), /they are a list, not an object/);
    assert.match(problem('"x"', "lap__Bash"), /arguments of lap__Bash .*they are a string, not an object/);
  });
  test("a name that nothing has stays unknown", () => {
    const target = resolveCall("gsv__Nope", { $invalidArguments: "{" }, table);
    assert.equal(target.kind === "none" && target.reason, "tool.unknown");
  });
});

describe("[X7][S8] conversations that are not the owner's", () => {
  const native = { definitions: table.native, forGuests: new Set(["gsv__ReadFile"]) };
  test("are offered only what is marked as theirs", () => {
    assert.deepEqual(
      nativeFor({ isOwnersSession: false }, native).map(({ name }) => name),
      ["gsv__ReadFile"],
    );
    assert.equal(nativeFor({ isOwnersSession: true }, native), table.native);
  });
  test("a call of anything else is refused, and is told the same whether there is such a thing or not", () => {
    const guests: ToolTable = { ...table, own: false, native: nativeFor({ isOwnersSession: false }, native), tools: [], nodes: [] };
    const reply = (name: string) => {
      const target = resolveCall(name, {}, guests);
      return target.kind === "none" ? [target.reason, target.message.replaceAll(name, "NAME")] : [target.kind];
    };
    const [reason] = reply("lap__Bash");
    assert.equal(reason, "auth.forbidden");
    for (const name of ["gsv__WriteFile", "gsv__Message", "no__Such", "nothing", "recall_memory"])
      assert.deepEqual(reply(name), reply("lap__Bash"));
    assert.deepEqual(reply("gsv__ReadFile"), ["native"]);
  });
});
