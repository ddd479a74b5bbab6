import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { asNodeId, type ChannelConfig, type NodeEntry } from "../../../protocol/gen/types.ts";
import { machineEntry } from "../../test/support/tool-entries.ts";
import { guestToolProblem, isOpenedFor, machinesFor, matches } from "./guest-tools.ts";
import { canonicalKey } from "../kernel/routing/session-keys.ts";
import type { SessionAddress } from "../ports/sessions.ts";

const addressOf = (key: string): SessionAddress => {
  const named = canonicalKey(key, "main");
  if (!named.ok) throw new Error(named.problem);
  return named.address;
};
const GUEST = addressOf("agent:main:chat:default:dm:anna");
const GROUP = addressOf("agent:main:chat:group:g1");
const opened = (guestTools: string[], address = GUEST, channel = "chat") =>
  isOpenedFor(address, { [channel]: { guestTools } satisfies ChannelConfig });
const node = (nodeId: string): NodeEntry => ({
  nodeId: asNodeId(nodeId),
  online: true,
  hostCapabilities: ["shell.exec", "filesystem.read"] as never,
  toolCapabilities: { Bash: ["shell.exec"], Read: ["filesystem.read"] } as never,
  tools: ["Bash", "Read"],
  clientPlatform: "linux",
});
const all = {
  tools: [machineEntry("lap", "Bash"), machineEntry("lap", "Read"), machineEntry("nas", "Read")],
  nodes: [node("lap"), node("nas")],
};

describe("[X7] machines' tools in sessions that are not the owner's", () => {
  test("none, unless the owner opened one", () => {
    for (const address of [GUEST, GROUP, addressOf("agent:main:chat:thread:t1"), addressOf("agent:main:dm:anna")]) {
      assert.deepEqual(machinesFor({ isOwners: false, isOpened: isOpenedFor(address, undefined) }, all), { tools: [], nodes: [] });
      assert.deepEqual(machinesFor({ isOwners: false, isOpened: isOpenedFor(address, { chat: {} }) }, all), { tools: [], nodes: [] });
    }
  });
  test("the owner's session gets all of them, unchanged", () => {
    assert.equal(machinesFor({ isOwners: true, isOpened: () => false }, all), all);
  });
  test("a guest's session gets the tools that are opened on its channel, and nothing else of the machine", () => {
    const given = machinesFor({ isOwners: false, isOpened: opened(["lap__Read"]) }, all);
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
  test("an entry of another channel opens nothing, and a session over several channels gets nothing", () => {
    assert.equal(opened(["lap__Read"], GUEST, "fax")("lap__Read"), false);
    assert.equal(opened(["*"], addressOf("agent:main:dm:anna"))("lap__Read"), false);
    assert.equal(opened(["*"], addressOf("agent:main:constructor:group:g"), "chat")("lap__Read"), false);
    assert.equal(opened(["*"], GROUP)("lap__Read"), true);
  });
  test("[S10] no entry opens a native tool", () => {
    for (const name of ["gsv__WriteFile", "gsv__EditFile", "gsv__Message", "GSV__ReadFile", "recall_memory"])
      assert.equal(opened(["*", name])(name), false);
  });
});

describe("entries of guestTools", () => {
  test("`*` stands for any characters, every other character for itself", () => {
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
  test("matching agrees with a regular expression", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "."), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (pattern, name) => {
        const spoken = new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", "[^]*")}$`);
        assert.equal(matches(pattern, name), spoken.test(name));
      }),
      { numRuns: 3000 },
    );
  });
  test("an entry that opens nothing is refused with an explanation", () => {
    assert.match(guestToolProblem("gsv__WriteFile") ?? "", /can't be opened/);
    assert.match(guestToolProblem("gsv__*") ?? "", /can't be opened/);
    assert.match(guestToolProblem("Bash") ?? "", /machine__Tool/);
    assert.match(guestToolProblem("lap Read") ?? "", /machine__Tool/);
    for (const good of ["lap__Read", "lap__*", "*__Read", "*"]) assert.equal(guestToolProblem(good), undefined);
  });
});

test("[X7] the beginning and the end of a pattern do not overlap in a name", () => {
  assert.deepEqual(
    [
      ["ab*ba", "aba"],
      ["ab*ba", "abba"],
      ["a*b*b", "ab"],
      ["a*b*b", "abb"],
      ["a*bc*c", "abc"],
      ["*", ""],
      ["a", "a"],
      ["a", "ab"],
    ].map(([pattern = "", name = ""]) => matches(pattern, name)),
    [false, true, false, true, false, true, true, false],
  );
});
