import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { definition, machineEntry, nativeEntry } from "../../test/support/tool-entries.ts";
import { machineEntries, machineOf, mayUse, NativeToolList, ToolRegistry } from "./registry.ts";
import type { Tool } from "./tool.ts";

const native = (name: string): Tool => ({
  definition: definition(name),
  policyClass: "read_private",
  guests: "none",
  run: () => Promise.resolve({ ok: true, result: name }),
});

describe("[G4] native tools", () => {
  test("keep the order of registration and name their feature", () => {
    const tools = new NativeToolList()
      .add("b", [native("gsv__B")])
      .add("a", [native("gsv__A"), native("recall")])
      .close();
    assert.deepEqual(
      tools.map(({ entry }) => [entry.definition.name, entry.feature, entry.target.kind]),
      [
        ["gsv__B", "b", "native"],
        ["gsv__A", "a", "native"],
        ["recall", "a", "native"],
      ],
    );
  });
  test("a name that is used twice or reserved for machines is refused at composition", () => {
    const list = new NativeToolList().add("a", [native("gsv__A")]);
    assert.throws(() => list.add("b", [native("gsv__A")]), /gsv__A is registered twice/);
    assert.throws(() => list.add("b", [native("laptop__Bash")]), /reserved for a machine/);
  });
  test("after close nothing can be added", () => {
    const list = new NativeToolList().add("a", [native("gsv__A")]);
    const tools = list.close();
    assert.throws(() => list.add("b", [native("gsv__B")]), /closed/);
    assert.equal(tools.length, 1);
    assert.ok(Object.isFrozen(tools));
  });
});

describe("[G4] the registry", () => {
  test("resolves exact names only", () => {
    const registry = new ToolRegistry([nativeEntry("gsv__ReadFile")], [machineEntry("lap", "Bash")]);
    assert.deepEqual(registry.find("lap__Bash")?.target, { kind: "node", nodeId: "lap" });
    assert.deepEqual(registry.find("gsv__ReadFile")?.target, { kind: "native" });
    for (const name of ["Bash", "lap", "lap__", "__Bash", "", "constructor", "LAP__Bash"])
      assert.equal(registry.find(name), undefined, name);
  });
  test("a native tool keeps its name, whatever machines offer", () => {
    const shadow = { ...machineEntry("x", "y"), definition: definition("gsv__ReadFile") };
    const registry = new ToolRegistry([nativeEntry("gsv__ReadFile")], [shadow]);
    assert.deepEqual(registry.find("gsv__ReadFile")?.target, { kind: "native" });
    assert.equal(registry.entries.length, 1);
  });
  test("[W7] of two machines with one full name the same one always keeps it, in any order", () => {
    const a = { nodeId: "a", tools: [definition("b__Bash")], ledger: true };
    const ab = { nodeId: "a__b", tools: [definition("Bash")], ledger: false };
    for (const machines of [
      [a, ab],
      [ab, a],
    ]) {
      const registry = new ToolRegistry(machineEntries(machines));
      assert.equal(registry.entries.length, 1);
      const found = registry.find("a__b__Bash");
      assert.deepEqual([found?.target, found?.tool, found?.ledger], [{ kind: "node", nodeId: "a" }, "b__Bash", true]);
    }
  });
  test("a full name leads back to its machine and tool, whatever their names", () => {
    const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.-]{0,8}$/);
    fc.assert(
      fc.property(name, name, (nodeId, tool) => {
        const [entry] = machineEntries([{ nodeId, tools: [definition(tool)], ledger: true }]);
        const found = new ToolRegistry([nativeEntry("gsv__ReadFile")], entry ? [entry] : []).find(`${nodeId}__${tool}`);
        assert.deepEqual([found?.target, found?.tool], [{ kind: "node", nodeId }, tool]);
      }),
      { numRuns: 2_000 },
    );
  });
  test("[P4.2] the list for the model is sorted, so that it is the same bytes each time", () => {
    const entries = [nativeEntry("gsv__B"), machineEntry("lap", "Bash"), nativeEntry("gsv__A"), machineEntry("box", "Read")];
    const names = new ToolRegistry(entries).definitions.map(({ name }) => name);
    assert.deepEqual(names, ["box__Read", "gsv__A", "gsv__B", "lap__Bash"]);
    assert.deepEqual(new ToolRegistry([...entries].reverse()).definitions, new ToolRegistry(entries).definitions);
  });
  test("a machine's tool has a policy class and guests' allowance; an unknown tool counts as a command", () => {
    const classes = ["Bash", "Read", "Write", "constructor", "Launch"].map((tool) => machineEntry("lap", tool).policyClass);
    assert.deepEqual(classes, ["exec", "read_private", "write_files", "exec", "exec"]);
    assert.equal(machineEntry("lap", "Read").guests, "opened");
  });
  test("a machine cannot choose the policy class of its tools", () => {
    const sent = (tool: string) => ({ ...definition(tool), policyClass: "read_public", guests: "always" });
    const entries = machineEntries([{ nodeId: "lap", tools: ["Launch", "Write"].map(sent), ledger: true }]);
    assert.deepEqual(
      entries.map(({ policyClass, guests }) => [policyClass, guests]),
      [
        ["exec", "opened"],
        ["write_files", "opened"],
      ],
    );
  });
});

test("[X7] guests' allowances", () => {
  const isOpened = (name: string): boolean => name === "lap__Read";
  const guest = { isOwners: false, isOpened };
  assert.equal(mayUse(nativeEntry("gsv__A", {}, "none"), guest), false);
  assert.equal(mayUse(nativeEntry("gsv__A", {}, "always"), guest), true);
  assert.equal(mayUse(machineEntry("lap", "Read"), guest), true);
  assert.equal(mayUse(machineEntry("lap", "Bash"), guest), false);
  assert.equal(mayUse(nativeEntry("lap__Read", {}, "none"), guest), false);
  assert.equal(mayUse(nativeEntry("gsv__A", {}, "none"), { isOwners: true, isOpened }), true);
});

test("[G4] an error names the machine that a wrong name seems to mean", () => {
  const nodes = [{ nodeId: "a__b" }, { nodeId: "a" }];
  assert.equal(machineOf("a__b__C", nodes)?.nodeId, "a");
  assert.equal(machineOf("b__C", nodes), undefined);
  assert.equal(machineOf("ab__C", nodes), undefined);
});
