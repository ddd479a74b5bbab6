import type { DefinedAgent } from "../ports/agents.ts";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ToolEntry } from "../ports/tool-entry.ts";
import { type ApprovalConfig, asAgentId, asCallId, asCapability, asNodeId, type NodeEntry } from "../../../protocol/gen/types.ts";
import { machineEntry, nativeEntry } from "../../test/support/tool-entries.ts";
import { policyOf } from "../policy/decide.ts";
import { loadPolicyParts } from "../policy/load.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { fromNative, fromNode, toContent } from "./tool-content.ts";
import { resolveCall, runTools, type ToolTable } from "./tools.ts";

const entry = (nodeId: string, online: boolean): NodeEntry => ({
  nodeId: asNodeId(nodeId),
  online,
  hostCapabilities: [],
  toolCapabilities: {},
  tools: ["Bash"],
});
const parts = await loadPolicyParts();
const { deletions } = parts;
const native = [nativeEntry("gsv__ReadFile", { idempotent: true }, "always"), nativeEntry("gsv__WriteFile")];
const machines = [
  machineEntry("lap", "Bash"),
  machineEntry("my__lap", "Bash"),
  machineEntry("lap", "Read", { idempotent: true, timeoutMs: 5_000 }),
  machineEntry("old", "Bash", {}, false),
];
const table: ToolTable = {
  isOwners: true,
  tools: new ToolRegistry(native, machines),
  nodes: [entry("lap", true), entry("off", false)],
  toolMs: 60_000,
  policy: { policy: { rules: [], mode: undefined, defaultDecision: undefined, deletions } },
  grants: { agentId: "main", held: [] },
};

describe("[G4] names", () => {
  test("a machine's tool resolves to its name at the machine", () => {
    assert.deepEqual(resolveCall("lap__Bash", {}, table), {
      kind: "node",
      rule: "toolApproval.defaultDecision",
      nodeId: "lap",
      tool: "Bash",
      ledger: true,
      idempotent: false,
      timeoutMs: 60_000,
      deadlineMs: 65_000,
      taint: { label: "world", source: "the output of lap__Bash" },
    });
    assert.deepEqual(resolveCall("my__lap__Bash", {}, table), {
      kind: "node",
      rule: "toolApproval.defaultDecision",
      nodeId: "my__lap",
      tool: "Bash",
      ledger: true,
      idempotent: false,
      timeoutMs: 60_000,
      deadlineMs: 65_000,
      taint: { label: "world", source: "the output of my__lap__Bash" },
    });
  });
  test("a native tool resolves to its full name", () => {
    assert.deepEqual(resolveCall("gsv__ReadFile", {}, table), {
      kind: "native",
      rule: "toolApproval.defaultDecision",
      tool: "gsv__ReadFile",
      idempotent: true,
      timeoutMs: 60_000,
      deadlineMs: 60_000,
      taint: { label: "world", source: "the output of gsv__ReadFile" },
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
  test("a name that is none is told what there is", () => {
    const told = (name: string, nodes = table.nodes): string => {
      const target = resolveCall(name, {}, { ...table, nodes });
      return target.kind === "none" ? target.message : "";
    };
    assert.equal(told("lap__Nope"), "The machine lap has no tool Nope. It has: Bash.");
    assert.equal(told("bare__Nope", [{ ...entry("bare", true), tools: [] }]), "The machine bare has no tool Nope. It has: none.");
    assert.equal(told("gsv__Nope"), "There is no native tool gsv__Nope. Use one of the tools that you were given.");
    assert.equal(told("Bash"), "There is no tool Bash. Names are machine__Tool; connected machines: lap.");
    assert.equal(told("Bash", []), "There is no tool Bash. Names are machine__Tool; connected machines: none.");
  });
  test("arguments that are not an object are refused", () => {
    for (const args of [null, [], "x", 3, undefined]) {
      const target = resolveCall("lap__Bash", args, table);
      assert.equal(target.kind === "none" && target.reason, "tool.bad_args");
    }
  });
});

test("[AP17] a call that its machine refuses in any case is refused where it would be asked about, and else left to the machine", () => {
  const nodes = [{ ...entry("lap", true), toolCapabilities: { Read: [asCapability("filesystem.read")] }, fileRoots: ["/home/user/work"] }];
  const read = (defaultDecision: "ask" | undefined) => {
    const { policy } = table.policy;
    const tools = new ToolRegistry(native, [machineEntry("lap", "Read", {}, true)]);
    return resolveCall(
      "lap__Read",
      { path: "/etc/passwd" },
      { ...table, tools, nodes, policy: { policy: { ...policy, defaultDecision } } },
    );
  };
  const asked = read("ask");
  assert.equal(asked.kind === "none" && asked.reason, "tool.bad_args");
  assert.equal(read(undefined).kind, "node");
});
test("[G5] a call's time comes from its tool's entry and its arguments", () => {
  const target = resolveCall("lap__Bash", { timeout: 120_000 }, { ...table, toolMs: 7_000 });
  assert.deepEqual(target.kind === "node" && [target.timeoutMs, target.deadlineMs], [125_000, 130_000]);
});

describe("[PO7] [GR1] the policy's word about a call", () => {
  const withSandbox = { ...entry("lap", true), sandbox: { profile: "workspace" } } as NodeEntry;
  const asking = { policy: { rules: [], mode: "auto", defaultDecision: undefined, deletions } } as const;
  const exec = new ToolRegistry(native, [{ ...machineEntry("lap", "Bash"), policyClass: "exec" }]);
  test("knows the sandbox of the call's own machine", () => {
    const ruleOf = (nodes: readonly NodeEntry[]) => {
      const target = resolveCall("lap__Bash", { command: "make" }, { ...table, tools: exec, policy: asking, nodes });
      return target.kind === "node" ? (target.rule ?? target.ask?.rule) : target.kind;
    };
    const isAsked = (nodes: readonly NodeEntry[]): boolean => {
      const target = resolveCall("lap__Bash", { command: "make" }, { ...table, tools: exec, policy: asking, nodes });
      return target.kind === "node" && target.ask !== undefined;
    };
    assert.equal(ruleOf([withSandbox]), "mode:auto");
    assert.equal(isAsked([entry("other", true), withSandbox]), false);
    assert.equal(isAsked([{ ...withSandbox, nodeId: asNodeId("other") }, entry("lap", true)]), true);
  });
  test("a question has an offer where one can be made, and a denial its reason", () => {
    const askOf = (command: string) => {
      const target = resolveCall("lap__Bash", { command }, { ...table, tools: exec, policy: asking });
      return target.kind === "node" ? target.ask : undefined;
    };
    assert.ok(askOf("ls")?.offer);
    assert.ok(!("offer" in (askOf("ls $HOME") ?? {})));
    const denies = { policy: { rules: [], mode: "plan", defaultDecision: undefined, deletions } } as const;
    const target = resolveCall("lap__Bash", { command: "make" }, { ...table, tools: exec, policy: denies });
    assert.deepEqual(target.kind === "none" && [target.reason, target.rule], ["policy.denied", "mode:plan"]);
    const failing = { ...table, tools: exec, policy: { policy: undefined as unknown as typeof asking.policy } };
    const failed = resolveCall("lap__Bash", { command: "make" }, failing);
    assert.deepEqual(failed.kind === "none" && [failed.reason, failed.rule], ["policy.error", "policy.error"]);
  });
});

describe("tool results", () => {
  test("text and blocks stay, anything else becomes JSON", () => {
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
  test("the outcome of a machine's call", () => {
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
  test("the outcome of a native call", () => {
    assert.deepEqual(
      fromNative({ ok: false, error: { reason: "path.not_found", message: "no such file" } }, (text) => text),
      {
        content: [{ type: "text", text: "no such file" }],
        outcome: "error",
        reason: "path.not_found",
      },
    );
  });
});

describe("[G4] arguments that are not a JSON object", () => {
  const problem = (raw: string, name = "gsv__ReadFile"): string => {
    const target = resolveCall(name, { $invalidArguments: raw }, table);
    assert.equal(target.kind, "none");
    assert.equal(target.kind === "none" && target.reason, "tool.bad_args");
    return target.kind === "none" ? target.message : "";
  };
  test("are refused, and the model is told what is wrong", () => {
    assert.match(
      problem('{"path" "x"}'),
      /^Not run: the arguments of gsv__ReadFile could not be read \(.*JSON at position 8.*\)\. Write them again/,
    );
    assert.match(problem("[1]"), /they are a list, not an object/);
    const deep = `{"a":${"[".repeat(100)}${"]".repeat(100)}}`;
    assert.match(problem(deep), /could not be read \(they have more than \d+ lists and objects in each other\)\. Write them again/);
    assert.match(problem('"x"', "lap__Bash"), /arguments of lap__Bash .*they are a string, not an object/);
  });
  test("an unknown tool stays unknown, whatever its arguments", () => {
    const target = resolveCall("gsv__Nope", { $invalidArguments: "{" }, table);
    assert.equal(target.kind === "none" && target.reason, "tool.unknown");
  });
});

test("[TF11] a tool that works between machines is offered only with a machine", () => {
  const entries = [...native, { ...nativeEntry("gsv__Transfer"), needsMachine: true as const }];
  const names = (tools: readonly ToolEntry[]) =>
    runTools({ isOwnersSession: true }, { entries }, { tools }).definitions.map(({ name }) => name);
  assert.ok(!names([]).includes("gsv__Transfer"));
  assert.ok(names(machines).includes("gsv__Transfer"));
});

describe("[X7][S8] sessions that are not the owner's", () => {
  const context = { tools: machines };
  const offered = (isOwnersSession: boolean, tools = context) =>
    runTools({ isOwnersSession }, { entries: native }, tools).definitions.map(({ name }) => name);
  test("get only the native tools that guests may always use, and the machines' tools that the gateway gave them", () => {
    assert.deepEqual(offered(false, { tools: [] }), ["gsv__ReadFile"]);
    assert.deepEqual(offered(false, { tools: machines.slice(0, 1) }), ["gsv__ReadFile", "lap__Bash"]);
    assert.deepEqual(offered(true), ["gsv__ReadFile", "gsv__WriteFile", "lap__Bash", "lap__Read", "my__lap__Bash", "old__Bash"]);
  });
  test("get the same refusal for a forbidden tool and for one that does not exist", () => {
    const guests: ToolTable = {
      ...table,
      isOwners: false,
      tools: runTools({ isOwnersSession: false }, { entries: native }, { tools: [] }),
      nodes: [],
    };
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

describe("[OM1] machines that are not connected", () => {
  const ruled = (rules: NonNullable<ApprovalConfig["rules"]>): ToolTable["policy"] => ({
    policy: policyOf({ rules, defaultDecision: "allow" }, parts),
  });
  const away: ToolTable = { ...table, tools: new ToolRegistry([{ ...machineEntry("off", "Bash"), isAway: true }], machines) };
  const waitOf = (name: string, args: object, on: ToolTable): unknown => {
    const target = resolveCall(name, args, on);
    if (target.kind !== "node") return target.kind === "none" ? target.reason : target.kind;
    return [target.waitMs, target.withoutWait === true, target.isAway === true];
  };
  test("a call waits as long as it asks, else as long as its run says, else not at all", () => {
    assert.equal(waitOf("off__Bash", { command: "ls" }, away), "node.offline");
    assert.deepEqual(waitOf("off__Bash", { command: "ls", wait: "1m" }, away), [60_000, true, true]);
    assert.deepEqual(waitOf("off__Bash", { command: "ls" }, { ...away, waitMs: 7 }), [7, false, true]);
    assert.equal(waitOf("off__Bash", { command: "ls", wait: "0" }, { ...away, waitMs: 7 }), "node.offline");
    assert.equal(waitOf("off__Bash", { command: "ls", wait: "soon" }, away), "tool.bad_args");
    assert.deepEqual(waitOf("lap__Bash", { command: "ls", wait: "1m" }, away), [60_000, true, false]);
    assert.deepEqual(waitOf("lap__Bash", { command: "ls" }, { ...away, waitMs: 7 }), [7, false, false]);
  });
  test("the policy does not look at the argument, and denies before the wait", () => {
    const byArgument = ruled([{ id: "r", tool: "*", decision: "deny", when: [{ path: "wait", op: "equals", value: "1m" }] }]);
    assert.deepEqual(waitOf("off__Bash", { command: "ls", wait: "1m" }, { ...away, policy: byArgument }), [60_000, true, true]);
    const never = { ...away, policy: ruled([{ id: "r", tool: "off__*", decision: "deny" }]) };
    assert.equal(waitOf("off__Bash", { command: "ls", wait: "1m" }, never), "policy.denied");
    const asked = { ...away, policy: ruled([{ id: "r", tool: "*", decision: "ask" }]) };
    assert.deepEqual(waitOf("off__Bash", { wait: "1m" }, asked), [60_000, true, true]);
  });
  test("[S8] another person's calls do not wait, whatever they say", () => {
    assert.deepEqual(waitOf("lap__Bash", { command: "ls", wait: "1m" }, { ...away, isOwners: false, waitMs: 7 }), [
      undefined,
      false,
      false,
    ]);
    assert.equal(waitOf("off__Bash", { command: "ls", wait: "1m" }, { ...away, isOwners: false, waitMs: 7 }), "node.offline");
  });
});

describe("[DG1] [DG7] handing on tasks", () => {
  const defined: DefinedAgent = {
    definition: {
      metadata: { id: asAgentId("triage"), name: "triage" },
      core_context: { system_prompt: "x" },
      tools: { allowed: [] },
      sub_agents: ["refund", "gone"],
    },
    coreSha256: "",
    subAgents: [{ name: "refund" }],
  };
  const tools = (isOwnersSession: boolean) => runTools({ isOwnersSession }, { entries: native }, { tools: machines, defined });
  const resolved = (mode: "plan" | "ask" | "auto") =>
    resolveCall("delegate_to_refund", { instructions: "x" }, { ...table, tools: tools(true), policy: { ...table.policy, mode } });
  test("is offered in the owner's own conversation, for agents that exist", () => {
    assert.deepEqual(
      tools(true).definitions.map(({ name }) => name),
      ["delegate_to_refund"],
    );
    assert.deepEqual(tools(false).definitions, []);
  });
  test("is not done in the mode `plan`; in others it waits for the task, for as long as a run may take", () => {
    assert.equal(resolved("plan").kind, "none");
    for (const mode of ["ask", "auto"] as const)
      assert.deepEqual(partOf(resolved(mode)), { kind: "native", tool: "delegate", idempotent: true, isWait: true, timeoutMs: 86_400_000 });
  });
});
function partOf(target: ReturnType<typeof resolveCall>): object {
  if (target.kind !== "native" || target.ask !== undefined) return target;
  const { kind, tool, idempotent, isWait, timeoutMs } = target;
  return { kind, tool, idempotent, isWait, timeoutMs };
}
