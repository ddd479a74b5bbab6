/** What a label asks about, as a table of classes, labels and modes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PolicyClassValues, type ApprovalConfig, type PolicyClass } from "../../../protocol/gen/types.ts";
import type { Decision, PolicyCall, PolicyMode } from "../ports/policy.ts";
import type { Taint, TaintLabel } from "../ports/taint.ts";
import { decide, policyOf } from "./decide.ts";
import { loadPolicyParts } from "./load.ts";
import { isNotSpared } from "./matrix.ts";

const engine = await loadPolicyParts();
const SANDBOX = "workspace";
const callOf = (policyClass: PolicyClass, sandboxed = false): PolicyCall =>
  policyClass === "exec" || policyClass === "write_files"
    ? {
        name: policyClass === "exec" ? "lap__Bash" : "lap__Write",
        tool: policyClass === "exec" ? "Bash" : "Write",
        target: { kind: "node", nodeId: "lap" },
        policyClass,
        args: policyClass === "exec" ? { command: "npm test" } : { path: "src/a.ts" },
        ...(sandboxed ? { sandbox: SANDBOX } : {}),
      }
    : { name: `gsv__${policyClass}`, tool: `gsv__${policyClass}`, target: { kind: "native" }, policyClass, args: {} };
const of = (label: TaintLabel): Taint => ({ label, source: "an e-mail from eve" });
const decided = (
  call: PolicyCall,
  label: TaintLabel | undefined,
  mode?: PolicyMode,
  isOwners = true,
  config: ApprovalConfig = {},
): Decision =>
  decide(call, {
    policy: policyOf({ ...config, ...(isOwners || mode === undefined || mode === "full" ? {} : { mode }) }, engine),
    mode,
    isOwners,
    taint: label && of(label),
  });
const allowing = (call: PolicyCall): ApprovalConfig => ({
  rules: [
    {
      id: "r",
      tool: call.name,
      decision: "allow",
      ...(call.tool === "Bash" ? { when: [{ path: "command", op: "equals", value: "npm test" }] } : {}),
    },
  ],
});
const rows: readonly (readonly [string, PolicyCall])[] = [
  ...PolicyClassValues.map((name) => [name, callOf(name)] as const),
  ["exec in a sandbox", callOf("exec", true)],
];
describe("[TA5] [S9] the label asks before the mode does", () => {
  const asked = (label: TaintLabel, isOwners: boolean, mode: PolicyMode): string =>
    rows
      .filter(([, call]) => decided(call, label, mode, isOwners).rule === `taint:${label}`)
      .map(([name]) => name)
      .join(", ");
  for (const mode of ["ask", "auto"] as const) {
    test(`mode ${mode}, the owner's conversation`, () => {
      assert.equal(asked("world", true, mode), "write_protected, exec, egress, control");
      assert.equal(asked("peer", true, mode), asked("world", true, mode));
      for (const label of ["owner", "self"] as const) assert.equal(asked(label, true, mode), "");
    });
    test(`mode ${mode}, another person's conversation`, () => {
      assert.equal(asked("world", false, mode), "write_workspace, write_protected, write_files, exec, egress, control");
      for (const label of ["owner", "self", "peer"] as const) assert.equal(asked(label, false, mode), "");
    });
  }
  test("a call that leaves the sandbox, and a tool that is not known, are not in it; commands that change nothing run", () => {
    const inside = callOf("exec", true);
    const leaves: PolicyCall = { ...inside, args: { command: "npm test", sandbox: "off" } };
    const unknown: PolicyCall = { ...inside, name: "lap__Browse", tool: "Browse" };
    for (const call of [leaves, unknown]) assert.equal(decided(call, "world", "auto").rule, "taint:world");
    const harmless: PolicyCall = { ...callOf("exec"), args: { command: "uname -a" } };
    assert.equal(decided(harmless, "world", "auto").verdict, "allow");
  });
  test("[SB17] a sandbox that reaches hosts is none that contains; commands that change nothing, and the end of a command, run", () => {
    const net = (args: PolicyCall["args"], tool = "Bash"): PolicyCall => ({
      ...callOf("exec", true),
      name: `lap__${tool}`,
      tool,
      args,
      sandbox: "workspace+net",
    });
    const hosts = { command: "npm test", sandbox: "workspace+net", hosts: ["a.org"] };
    const asks = [
      net({ command: "npm test" }),
      net({ action: "write", data: "x" }, "Process"),
      { ...net(hosts), sandbox: SANDBOX } as const,
    ];
    for (const call of asks) {
      for (const label of ["world", "peer"] as const) assert.equal(decided(call, label, "auto").rule, `taint:${label}`);
      assert.equal(decided(call, "world", "auto", false).rule, "taint:world");
    }
    const [first] = asks;
    assert.ok(first);
    assert.equal(decided(first, "self", "auto").verdict, "allow");
    const why = decided(first, "world", "auto");
    assert.match(
      why.verdict === "ask" ? why.why : "",
      /^It runs a program on lap in the sandbox, with hosts\. It may reach the hosts that lap lists in node\.toml\. Others may/,
    );
    // Input for a program that was started with hosts in the sandbox asks, too.
    const input = decided({ ...net({ action: "write", data: "x", ...hosts }, "Process"), sandbox: SANDBOX }, "world", "auto");
    assert.match(
      input.verdict === "ask" ? input.why : "",
      /^It gives input to a program on lap that has hosts\. It may reach the hosts that were allowed when it was started\. Others may/,
    );
    for (const call of [net({ command: "uname -a" }), net({ action: "kill" }, "Process"), net({ action: "log" }, "Process")])
      assert.equal(decided(call, "world", "auto").verdict, "allow");
  });
  test("[TA5] [AP10] the question says what it says without a label: where, what may be deleted, and that a file is outside the workspace", () => {
    const on = { name: "lap__Bash", tool: "Bash", target: { kind: "node", nodeId: "lap" } } as const;
    const exec = (args: Record<string, unknown>, sandbox: PolicyCall["sandbox"]): PolicyCall => ({
      ...on,
      policyClass: "exec",
      args,
      sandbox,
    });
    const write = (path: string): PolicyCall => ({ ...on, name: "lap__Write", tool: "Write", policyClass: "write_files", args: { path } });
    for (const call of [
      exec({ command: "rm -rf t" }, "off"),
      exec({ command: "rm -rf t", sandbox: "off" }, "workspace"),
      exec({ command: "rm -rf t", sandbox: "workspace+net", hosts: ["a.org"] }, "workspace"),
      exec({ command: "make" }, "off"),
      write("/etc/passwd"),
    ]) {
      const [plain, heard] = [decided(call, undefined, "auto"), decided(call, "world", "auto")];
      assert.ok(plain.verdict === "ask" && heard.verdict === "ask", JSON.stringify(call.args));
      for (const part of plain.why.split(/(?<=\.) (?=[A-Z])/)) assert.ok(heard.why.includes(part), `${part} is not in: ${heard.why}`);
    }
  });
  test("mode plan denies what it would ask about; mode full and no mode ask nothing", () => {
    for (const [name, call] of rows) {
      assert.deepEqual(decided(call, "world", "plan"), decided(call, undefined, "plan"), name);
      assert.equal(decided(call, "world", "full").verdict, "allow", name);
      // Protected files are guarded in any case (TA9).
      if (name !== "write_protected") assert.deepEqual(decided(call, "world"), decided(call, undefined), name);
    }
  });
  test("it never allows what was asked about or denied without a label", () => {
    const strict = { allow: 0, ask: 1, deny: 2 };
    for (const [name, call] of rows)
      for (const mode of ["plan", "ask", "auto", "full", undefined] as const)
        for (const isOwners of [true, false])
          for (const label of ["self", "peer", "world"] as const)
            assert.ok(
              strict[decided(call, label, mode, isOwners).verdict] >= strict[decided(call, undefined, mode, isOwners).verdict],
              `${name} ${mode} ${label}`,
            );
  });
  test("[TA9] [TA12] a change of a memory asks nothing, because it waits for the owner; a deletion asks, also where a rule allows it", () => {
    const change = (name: string, path: string): PolicyCall => ({
      name,
      tool: name,
      target: { kind: "native" },
      policyClass: "write_workspace",
      args: { path },
    });
    const rules = { rules: [{ id: "all", tool: "*", decision: "allow" as const }] };
    for (const label of ["peer", "world"] as const)
      for (const policy of [{}, rules])
        for (const path of ["MEMORY.md", "memory.MD", "memory/2026-01-31.md"]) {
          for (const tool of ["gsv__WriteFile", "gsv__EditFile"])
            assert.equal(decided(change(tool, path), label, "auto", true, policy).verdict, "allow", path);
          assert.equal(decided(change("gsv__DeleteFile", path), label, "auto", true, policy).rule, `taint:${label}`, path);
        }
    assert.equal(decided(change("gsv__DeleteFile", "memory/2026-01-31.md"), undefined, "auto").verdict, "allow");
    // Where the mode asks about protected files, it still does.
    assert.equal(decided(change("gsv__WriteFile", "MEMORY.md"), "world", "ask").rule, "mode:ask");
  });
  test("[TA9] a line for MEMORY.md asks after files of any author, as a write of the file does; one for today's file does not", () => {
    const remember = (args: object): PolicyCall => ({
      name: "gsv__Remember",
      tool: "gsv__Remember",
      target: { kind: "native" },
      policyClass: "write_workspace",
      args: { text: "x", ...args },
    });
    for (const args of [{}, { where: "long-term" }, { where: ["today"] }]) {
      assert.equal(decided(remember(args), "files", "auto").rule, "protected", JSON.stringify(args));
      for (const label of [undefined, "self", "world"] as const)
        assert.equal(decided(remember(args), label, "auto").verdict, "allow", `${label} ${JSON.stringify(args)}`);
      assert.equal(decided(remember(args), "files", "full").verdict, "allow");
    }
    assert.equal(decided(remember({ where: "today" }), "files", "auto").verdict, "allow");
  });
  test("a higher label never asks less", () => {
    for (const [name, call] of rows)
      for (const mode of ["ask", "auto"] as const)
        for (const isOwners of [true, false]) {
          const asks = (["owner", "self", "peer", "world"] as const).map((label) =>
            Number(decided(call, label, mode, isOwners).rule.startsWith("taint:")),
          );
          assert.deepEqual(asks, asks.toSorted(), `${name} ${mode}`);
        }
  });
  test("[TA7] the text of a question names the label and its source, whatever asks", () => {
    const byLabel = decided(callOf("egress"), "world", "auto");
    const byMode = decided(callOf("exec", true), "world", "ask");
    const byRule = decided(callOf("read_private"), "peer", "auto", true, { rules: [{ id: "r", tool: "*", decision: "ask" }] });
    for (const [decision, label] of [
      [byLabel, "world"],
      [byMode, "world"],
      [byRule, "peer"],
    ] as const)
      assert.match(decision.verdict === "ask" ? decision.why : "", new RegExp(`\\(${label}, from an e-mail from eve\\)`));
    const plain = decided(callOf("egress"), "self", "auto");
    assert.doesNotMatch(plain.verdict === "ask" ? plain.why : "", /Others may have written/);
  });
});

test("[TA8] the text of a question names /trust where it would spare the next one: not for the mode, a rule or another person's session", () => {
  const ask: ApprovalConfig = { rules: [{ id: "r", tool: "*", decision: "ask" }] };
  const why = (...args: Parameters<typeof decided>): string => {
    const decision = decided(...args);
    return decision.verdict === "ask" ? decision.why : assert.fail(decision.verdict);
  };
  const write: PolicyCall = { ...callOf("write_files"), args: { path: ".bashrc" } };
  assert.match(
    why(write, "world", "auto", true, allowing(write)),
    /If you have checked it, send \/trust in that conversation, and the next such calls do not ask\.$/,
  );
  for (const [call, mode, isOwners, more] of [
    [callOf("egress"), "ask", true, undefined],
    [callOf("read_private"), "auto", true, ask],
    [callOf("egress"), "auto", false, undefined],
  ] as const)
    assert.doesNotMatch(why(call, "world", mode, isOwners, more), /trust/);
});

describe("[TA6] a rule that allows", () => {
  test("does not spare the question for what leaves, for control and for protected files", () => {
    for (const mode of ["plan", "ask", "auto"] as const)
      for (const policyClass of ["egress", "control", "write_protected"] as const) {
        const call = callOf(policyClass);
        assert.equal(decided(call, "world", mode, true, allowing(call)).rule, "taint:world", `${mode} ${policyClass}`);
        assert.equal(decided(call, "self", mode, true, allowing(call)).verdict, "allow", `${mode} ${policyClass}`);
      }
  });
  test("does not spare it for a file that other programs run, or outside the workspace", () => {
    for (const path of [".bashrc", "/etc/passwd", "../x", "~/x", ".git/hooks/pre-commit", 3]) {
      const write: PolicyCall = { ...callOf("write_files"), args: { path } };
      assert.equal(decided(write, "world", "auto", true, allowing(write)).rule, "taint:world", String(path));
    }
    const ordinary = callOf("write_files");
    assert.equal(decided(ordinary, "world", "auto", true, allowing(ordinary)).verdict, "allow");
  });
  test("does not spare it for a program that it does not name, such as input for a running one", () => {
    const input: PolicyCall = { ...callOf("exec"), name: "lap__Process", tool: "Process", args: { action: "write", data: "x" } };
    assert.equal(decided(input, "world", "auto", true, allowing(input)).rule, "taint:world");
    assert.equal(decided(input, "self", "auto", true, allowing(input)).verdict, "allow");
  });
  test("spares it for a shell command, which it names, and for everything in mode full and without a mode", () => {
    const exec = callOf("exec");
    assert.equal(decided(exec, "world", "auto", true, allowing(exec)).verdict, "allow");
    for (const mode of ["full", undefined] as const) {
      const call = callOf("egress");
      assert.equal(decided(call, "world", mode, true, allowing(call)).verdict, "allow");
    }
  });
});

describe("[TA9] [S10] a change of a protected file", () => {
  const write = (path: string, tool = "gsv__WriteFile"): PolicyCall => ({
    name: tool,
    tool,
    target: { kind: "native" },
    policyClass: "write_workspace",
    args: { path, content: "x" },
  });
  const paths = ["SOUL.md", "identity.MD", "USER.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md", "skills/a/SKILL.md"];
  interface Who {
    readonly label?: TaintLabel;
    readonly mode?: PolicyMode;
    readonly byOthers?: boolean;
    readonly config?: ApprovalConfig;
  }
  test("[GR4] a question that /trust would spare says until when such calls ask", () => {
    const granted = { grants: [], agentId: "main", sandbox: "off" as const };
    const context = { policy: policyOf({}, engine), isOwners: true, granted };
    for (const label of ["files", "peer", "world"] as const) {
      const asked = decide(write("SOUL.md"), { ...context, taint: of(label) });
      assert.match(asked.verdict === "ask" ? asked.why : "", /send \/trust .* do not ask\. Until then such calls ask each time\.$/, label);
    }
    const others = decide(write("SOUL.md"), { ...context, byOthers: true });
    assert.match(others.verdict === "ask" ? others.why : "", /It can be allowed once only: such calls ask each time\.$/);
  });
  const verdict = (call: PolicyCall, { label, mode, byOthers = false, config = {} }: Who): string => {
    const { verdict, rule } = decide(call, { policy: policyOf(config, engine), mode, isOwners: true, taint: label && of(label), byOthers });
    return `${verdict} ${rule}`;
  };
  test("asks without a mode and in each mode but full, also where a rule allows it", () => {
    for (const path of paths)
      for (const tool of ["gsv__WriteFile", "gsv__EditFile", "gsv__DeleteFile"]) {
        const call = write(path, tool);
        for (const label of ["peer", "world"] as const) {
          assert.equal(verdict(call, { label }), `ask taint:${label}`, path);
          for (const mode of ["ask", "auto"] as const) assert.equal(verdict(call, { label, mode }), `ask taint:${label}`, path);
          assert.equal(verdict(call, { label, config: allowing(call) }), `ask taint:${label}`, path);
          assert.equal(verdict(call, { label, mode: "full" }), "allow mode:full", path);
          assert.equal(verdict(call, { label, mode: "plan" }), "deny mode:plan", path);
        }
        assert.equal(verdict(call, { byOthers: true }), "ask protected", path);
        assert.equal(verdict(call, { byOthers: true, config: allowing(call) }), "ask protected", path);
      }
  });
  test("[TA9] asks after files whose author no one knows, with the source; nothing else asks because of them", () => {
    for (const config of [{}, { mode: "auto" as const }, allowing(write("SOUL.md"))])
      assert.equal(verdict(write("SOUL.md"), { label: "files", config }), "ask protected");
    assert.equal(verdict(write("SOUL.md"), { label: "files", mode: "full" }), "allow mode:full");
    assert.equal(verdict(write("notes/a.md"), { label: "files", mode: "auto" }), "allow mode:auto");
  });
  test("runs without a mode when the owner alone asked for it; other files run in any case", () => {
    for (const label of [undefined, "owner", "self"] as const)
      assert.equal(verdict(write("SOUL.md"), label === undefined ? {} : { label }), "allow toolApproval.defaultDecision");
    assert.equal(verdict(write("notes/a.md"), { label: "world", byOthers: true }), "allow toolApproval.defaultDecision");
  });
  test("stays denied where it was denied", () => {
    assert.match(verdict(write("SOUL.md"), { label: "world", config: { defaultDecision: "deny" } }), /^deny/);
    const denying: ApprovalConfig = { rules: [{ id: "d", tool: "*", decision: "deny" }] };
    assert.match(verdict(write("SOUL.md"), { label: "world", config: denying }), /^deny/);
  });
});

describe("[SC11] [TA9] a call that changes jobs", () => {
  const job = (action: string, tool = "gsv__Cron"): PolicyCall => ({
    name: tool,
    tool,
    target: { kind: "native" },
    policyClass: "control",
    args: { action, name: "Weather" },
  });
  const verdict = (
    call: PolicyCall,
    more: { label?: TaintLabel; mode?: PolicyMode; byOthers?: boolean; isOwners?: boolean } = {},
  ): string => {
    const { label, mode = "auto", byOthers = false, isOwners = true } = more;
    const { verdict, rule } = decide(call, { policy: policyOf({}, engine), mode, isOwners, taint: label && of(label), byOthers });
    return `${verdict} ${rule}`;
  };
  test("runs in mode auto when the owner alone has asked for it; another call of the class asks", () => {
    for (const action of ["add", "update", "remove", "run"]) {
      assert.equal(verdict(job(action)), "allow mode:auto");
      assert.equal(verdict(job(action), { label: "self" }), "allow mode:auto");
      assert.equal(verdict(job(action), { mode: "ask" }), "ask mode:ask");
      assert.equal(verdict(job(action), { mode: "plan" }), "deny mode:plan");
    }
    assert.equal(verdict(job("add", "gsv__ConfigSet")), "ask mode:auto");
  });
  test("asks after texts of others and files, and in a run that the owner did not cause", () => {
    for (const label of ["peer", "world"] as const) assert.equal(verdict(job("add"), { label }), `ask taint:${label}`);
    assert.equal(verdict(job("add"), { label: "files" }), "ask protected");
    assert.equal(verdict(job("add"), { byOthers: true }), "ask protected");
  });
  test("to look at jobs asks nothing", () => {
    for (const action of ["list", "runs"])
      for (const label of ["world", undefined] as const)
        assert.equal(verdict(job(action), { byOthers: true, ...(label === undefined ? {} : { label }) }), "allow mode:auto");
    assert.equal(verdict(job("add", "gsv__Cron"), { label: "world", mode: "full" }), "allow mode:full");
  });
});

test("[TA6] a rule that allows spares the question except about what cannot be taken back", () => {
  const spared = PolicyClassValues.filter((name) => !isNotSpared(callOf(name), name));
  assert.deepEqual(spared, ["read_private", "read_public", "write_workspace", "write_files"]);
  const outside = { ...callOf("write_files"), args: { path: "/etc/passwd" } };
  assert.ok(isNotSpared(outside, "write_files") && !isNotSpared(outside, "read_private"));
});
