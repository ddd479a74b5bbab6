import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { asNodeId, type ChannelConfig, type NodeEntry } from "../../../../protocol/gen/types.ts";
import type { ToolBinding } from "../../ports/run-context.ts";
import { guestToolProblem, isOpenedFor, machinesFor, matches } from "./guest-tools.ts";
import { canonicalKey, type SessionAddress } from "./session-keys.ts";

const addressOf = (key: string): SessionAddress => {
  const named = canonicalKey(key, "main");
  if (!named.ok) throw new Error(named.problem);
  return named.address;
};
const GUEST = addressOf("agent:main:chat:default:dm:anna");
const GROUP = addressOf("agent:main:chat:group:g1");
const opened = (guestTools: string[], address = GUEST, channel = "chat") =>
  isOpenedFor(address, { [channel]: { guestTools } satisfies ChannelConfig });
const binding = (nodeId: string, tool: string): ToolBinding => ({
  definition: { name: `${nodeId}__${tool}`, description: "", inputSchema: {} },
  nodeId,
  ledger: true,
});
const node = (nodeId: string): NodeEntry => ({
  nodeId: asNodeId(nodeId),
  online: true,
  hostCapabilities: ["shell.exec", "filesystem.read"] as never,
  toolCapabilities: { Bash: ["shell.exec"], Read: ["filesystem.read"] } as never,
  tools: ["Bash", "Read"],
  clientPlatform: "linux",
});
const all = { tools: [binding("lap", "Bash"), binding("lap", "Read"), binding("nas", "Read")], nodes: [node("lap"), node("nas")] };

describe("[X7] tools of machines in other people's conversations", () => {
  test("none, unless the owner opened one", () => {
    for (const address of [GUEST, GROUP, addressOf("agent:main:chat:thread:t1"), addressOf("agent:main:dm:anna")]) {
      assert.deepEqual(machinesFor(false, isOpenedFor(address, undefined), all), { tools: [], nodes: [] });
      assert.deepEqual(machinesFor(false, isOpenedFor(address, { chat: {} }), all), { tools: [], nodes: [] });
    }
  });
  test("the owner's own conversation has them all, as they are", () => {
    assert.equal(
      machinesFor(true, () => false, all),
      all,
    );
  });
  test("what is opened on the conversation's channel, and of the machine nothing else", () => {
    const given = machinesFor(false, opened(["lap__Read"]), all);
    assert.deepEqual(
      given.tools.map(({ definition }) => definition.name),
      ["lap__Read"],
    );
    assert.deepEqual(given.nodes, [
      {
        nodeId: "lap",
        online: true,
        tools: ["Read"],
        toolCapabilities: { Read: ["filesystem.read"] },
        hostCapabilities: ["filesystem.read"],
      },
    ]);
  });
  test("another channel's are not this one's, and a person on several channels has none", () => {
    assert.equal(opened(["lap__Read"], GUEST, "fax")("lap__Read"), false);
    assert.equal(opened(["*"], addressOf("agent:main:dm:anna"))("lap__Read"), false);
    assert.equal(opened(["*"], addressOf("agent:main:constructor:group:g"), "chat")("lap__Read"), false);
    assert.equal(opened(["*"], GROUP)("lap__Read"), true);
  });
  test("[S10] no entry opens the gateway's own tools", () => {
    for (const name of ["gsv__WriteFile", "gsv__EditFile", "gsv__Message", "GSV__ReadFile", "recall_memory"])
      assert.equal(opened(["*", name])(name), false);
  });
});

describe("entries", () => {
  test("`*` is any characters, all others are themselves", () => {
    const rows: readonly (readonly [string, string, boolean])[] = [
      ["lap__Read", "lap__Read", true],
      ["lap__Read", "lap__ReadAll", false],
      ["lap__*", "lap__Read", true],
      ["*__Read", "nas__Read", true],
      ["l*p__*d", "lap__Read", true],
      ["l*p__*d", "lap__Reader", false],
      ["a*a", "a", false],
      ["*", "", true],
      ["**", "x", true],
      ["lap.__Read", "lapX__Read", false],
      ["lap__read", "lap__Read", false],
    ];
    for (const [pattern, name, expected] of rows) assert.equal(matches(pattern, name), expected, `${pattern} ${name}`);
  });
  test("as a regular expression would have it", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "."), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (pattern, name) => {
        const spoken = new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", "[^]*")}$`);
        assert.equal(matches(pattern, name), spoken.test(name));
      }),
      { numRuns: 3000 },
    );
  });
  test("what can never be opened, or names nothing, is refused in words", () => {
    assert.match(guestToolProblem("gsv__WriteFile") ?? "", /can't be opened/);
    assert.match(guestToolProblem("gsv__*") ?? "", /can't be opened/);
    assert.match(guestToolProblem("Bash") ?? "", /machine__Tool/);
    assert.match(guestToolProblem("lap Read") ?? "", /machine__Tool/);
    for (const good of ["lap__Read", "lap__*", "*__Read", "*"]) assert.equal(guestToolProblem(good), undefined);
  });
});
