import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineEntry, nativeEntry } from "../../test/support/tool-entries.ts";
import type { ApprovalConfig, ApprovalRule } from "../../../protocol/gen/types.ts";
import { loadRegexEngine } from "./load.ts";
import { type KnownTools, newFatalProblem, policyProblems } from "./rule-problems.ts";

const engine = await loadRegexEngine();
const schema = (...names: string[]) => ({
  inputSchema: { type: "object", properties: Object.fromEntries(names.map((name) => [name, {}])) },
});
const known: KnownTools = {
  native: [nativeEntry("gsv__WriteFile", schema("path", "content")), nativeEntry("gsv__Message", schema("to", "text"))],
  machines: [machineEntry("lap", "Bash", schema("command", "workdir", "sandbox")), machineEntry("lap", "Read", schema("path"))],
  machineNames: ["lap__Bash", "lap__Read", "away__Read"],
};
const problems = (config: ApprovalConfig) => policyProblems(config, engine, known);
let rules = 0;
const rule = (more: Partial<ApprovalRule>): ApprovalRule => ({ id: `r${++rules}`, tool: "lap__Read", decision: "deny", ...more });
const when = (path: string, op: "equals" | "contains" | "startsWith" | "regex", value: unknown, flags?: string) => [
  { path, op, value, ...(flags === undefined ? {} : { flags }) },
];

describe("[PO6] a rule that can never apply", () => {
  for (const [what, more, text] of [
    ["names no native tool", { tool: "gsv__WritFile" }, /there is no tool gsv__WritFile\. Did you mean gsv__WriteFile\?/],
    ["names no machine", { tool: "Edit" }, /"Edit" names no tool\. Write machine__Tool, with \* for any characters, such as \*__Edit$/],
    ["names nothing", { tool: "" }, /"" names no tool\. .* such as \*__Bash$/],
    [
      "allows a command and compares a part of it",
      { tool: "lap__Bash", decision: "allow", when: [...when("command", "equals", ["ls"]), ...when("command", "contains", "l")] },
      /^contains compares a part of a command/,
    ],
    [
      "has a condition on an argument that a native tool does not have",
      { tool: "gsv__WriteFile", when: when("file", "equals", "x") },
      /has no argument file\. It has path, content/,
    ],
    ["has an invalid pattern", { when: when("path", "regex", "(") }, /regular expression on path is not valid/],
    ["looks around", { when: when("path", "regex", "(?=x)") }, /no look-around/],
    ["has a long pattern", { when: when("path", "regex", "a".repeat(1025)) }, /longer than 1024/],
    ["has other flags", { when: when("path", "regex", "a", "g") }, /flags are i, m and s/],
    ["has flags without a pattern", { when: when("path", "equals", "a", "i") }, /flags are for regex/],
    ["contains no text", { when: when("path", "contains", 5) }, /the value of contains on path is a text/],
    ["starts with no text", { when: when("path", "startsWith", ["a"]) }, /the value of startsWith on path is a text(?! or)/],
    [
      "a command starts with nothing",
      { when: when("command", "startsWith", []) },
      /the value of startsWith on command is a text or a list of words/,
    ],
    ["names no argument", { when: when("a..b", "equals", 5) }, /names no argument/],
    [
      "allows commands that it does not name",
      { tool: "lap__Bash", decision: "allow", when: when("cmd", "equals", "ls") },
      /it has no condition on command\. A rule that allows Bash names the whole command: /,
    ],
    [
      "allows a part of a command",
      { tool: "*__Bash", decision: "allow", when: when("command", "startsWith", "git") },
      /^startsWith compares a part of a command\. A rule/,
    ],
    [
      "allows a complex command",
      { tool: "*__Bash", decision: "allow", when: when("command", "equals", "ls *") },
      /^"ls \*" is no plain command: it has a variable, a pattern, a redirection, or more than one command\. /,
    ],
    [
      "wants two values of one argument",
      { when: [...when("path", "equals", "a"), ...when("path", "equals", "b")] },
      /^no call has "a" and "b" as its path\. Write a rule for each$/,
    ],
    [
      "wants a sandbox that no call asks for",
      { tool: "lap__Bash", when: when("sandbox", "equals", "offf") },
      /^no call has "offf" as its sandbox\. It is off, workspace\+net, read-only$/,
    ],
    [
      "allows hosts outside the sandbox",
      {
        tool: "lap__Bash",
        decision: "allow",
        when: [...when("command", "equals", ["npm", "ci"]), ...when("hosts", "equals", ["a.org"]), ...when("sandbox", "equals", "off")],
      },
      /^a rule that allows Bash with hosts also names the sandbox/,
    ],
    [
      "allows hosts without the sandbox that a call for hosts names",
      {
        tool: "lap__Bash",
        decision: "allow",
        when: [...when("command", "equals", ["npm", "ci"]), ...when("hosts", "equals", ["registry.npmjs.org"])],
      },
      /^a rule that allows Bash with hosts also names the sandbox of such a call\. Add \{"path": "sandbox", "op": "equals", "value": "workspace\+net"\}$/,
    ],
  ] as const)
    test(what, () => {
      const [found] = problems({ rules: [rule(more as Partial<ApprovalRule>)] });
      assert.ok(found?.isFatal === true && found.setting === "toolApproval.rules[0]", JSON.stringify(found));
      assert.match(found.problem, text);
    });
  test("has the id of another one: the audit would name both", () => {
    const twice = ["x", "y"].map((path) => rule({ id: "a", decision: "ask", when: when("path", "equals", path) }));
    const [found, ...more] = problems({ rules: twice });
    assert.deepEqual([found?.setting, found?.isFatal, more], ["toolApproval.rules[1]", true, []]);
    assert.match(found?.problem ?? "", /rules\[0\] has the id a, too/);
  });
  test("stands after one that applies to the same calls", () => {
    const shadowed = (first: Partial<ApprovalRule>, second: Partial<ApprovalRule>): boolean =>
      problems({ rules: [rule(first), rule(second)] }).some(({ setting, isFatal }) => isFatal && setting === "toolApproval.rules[1]");
    const condition = when("path", "equals", "x");
    assert.ok(shadowed({}, { when: condition }) && shadowed({ tool: "*" }, {}) && shadowed({ tool: "lap__*" }, { tool: "lap__R*" }));
    assert.ok(shadowed({ when: condition }, { when: condition, decision: "ask" }));
    assert.ok(!shadowed({ when: condition }, {}) && !shadowed({ tool: "lap__R*" }, { tool: "lap__*" }));
    // A rule that allows leaves commands to later rules.
    assert.ok(!shadowed({ tool: "*", decision: "allow" }, { tool: "lap__Bash" }));
    assert.ok(!shadowed({ tool: "*", decision: "allow" }, { tool: "lap__*" }));
    assert.ok(shadowed({ tool: "*", decision: "allow" }, { tool: "lap__Read" }));
    assert.ok(shadowed({ tool: "*", decision: "allow" }, { tool: "*__Read" }));
    const whole = when("command", "equals", ["git", "status"]);
    assert.ok(shadowed({ tool: "*__Bash", decision: "allow", when: whole }, { tool: "lap__Bash", when: whole }));
  });
  test("was stored before: it blocks no other change", () => {
    const before = problems({ rules: [rule({ tool: "Bash" })] }).map(({ problem }) => problem);
    assert.equal(newFatalProblem(before, problems({ rules: [rule({ tool: "gsv__Message" }), rule({ tool: "Bash" })] })), undefined);
    assert.match(
      newFatalProblem(before, problems({ rules: [rule({ tool: "Edit" })] })) ?? "",
      /^toolApproval\.rules\[0\]: "Edit" names no tool/,
    );
  });
});

describe("[PO6] settings", () => {
  test("that are right have no problem", () => {
    const rules = [
      rule({ tool: "lap__Bash", decision: "allow", when: when("command", "equals", ["git", "status"]) }),
      rule({ tool: "lap__Bash", decision: "allow", when: when("command", "equals", "npm test") }),
      rule({ decision: "ask", when: [...when("path", "equals", "src/a"), ...when("path", "equals", "./src/a")] }),
      rule({ tool: "lap__Bash", decision: "allow", when: [...when("command", "equals", "ls"), ...when("workdir", "contains", "a")] }),
      rule({ tool: "*__Bash", when: when("command", "startsWith", ["rm"]) }),
      rule({ tool: "away__Read" }),
      rule({ tool: "gsv__Message", decision: "ask", when: when("to", "regex", "^discord/", "i") }),
    ];
    assert.deepEqual(problems({ mode: "auto", rules }), []);
    assert.deepEqual(policyProblems(undefined, engine, known), []);
  });
  test("do less than they seem to: stored, with a warning", () => {
    const warning = (more: Partial<ApprovalRule>): string => {
      const [found] = problems({ rules: [rule(more)] });
      return found?.isFatal === false ? found.problem : JSON.stringify(found);
    };
    assert.match(warning({ tool: "box__Bash" }), /no machine that is known has a tool box__Bash/);
    assert.match(warning({ when: when("file", "equals", "x") }), /lap__Read has no argument file\. It has path/);
    assert.match(warning({ tool: "lap__*", decision: "allow" }), /it allows no command of Bash/);
    const outside = (command: string) => ({
      tool: "lap__Bash",
      decision: "allow" as const,
      when: [...when("command", "equals", command), ...when("sandbox", "equals", "off")],
    });
    assert.match(warning(outside("git fetch")), /^outside the sandbox git may start or write what a file of its folder says, and /);
    assert.deepEqual(problems({ rules: [rule(outside("rm a"))] }), []);
  });
  test("compare absolute paths or relative ones only: stored, with what to add", () => {
    const warnings = (...given: Partial<ApprovalRule>[]): readonly string[] =>
      problems({ rules: given.map(rule) }).map(({ isFatal, problem }) => (isFatal ? `FATAL ${problem}` : problem));
    const absolute = /^its path is not compared with relative paths of a call\. .* such as "src"$/;
    for (const decision of ["allow", "deny", "ask"] as const)
      for (const condition of [
        when("path", "equals", "/srv/a"),
        when("path", "startsWith", "~/a"),
        when("path", "regex", "^(/srv|/opt)/"),
      ]) {
        const [found, ...others] = warnings({ decision, when: condition });
        assert.match(found ?? "", absolute);
        assert.deepEqual(others, []);
      }
    const [allows] = warnings({ decision: "allow", when: when("path", "startsWith", "src/") });
    assert.equal(allows, 'it allows no absolute path of a call. To allow it too, add a rule with "/FOLDER/OF/WORKSPACE/src/"');
    const [denies] = warnings({ when: when("path", "regex", "^src/") });
    assert.equal(denies, 'a call with an absolute path asks instead. To deny it too, add a rule with "^/FOLDER/OF/WORKSPACE/src/"');
    // Both are written, a question is what is wanted anyway, or the condition names both.
    assert.deepEqual(warnings({ when: when("path", "equals", "a") }, { when: when("path", "equals", "/srv/a") }), []);
    assert.deepEqual(warnings({ decision: "ask", when: when("path", "equals", "a") }), []);
    assert.deepEqual(warnings({ tool: "gsv__WriteFile", when: when("path", "equals", "a") }), []);
    for (const condition of [when("path", "contains", "/srv"), when("path", "regex", "secret"), when("path", "regex", "^.*/a")])
      assert.deepEqual(warnings({ when: condition }), []);
  });
  test("full is not configured, and a mode and a default decision exclude each other", () => {
    assert.match(problems({ mode: "full" })[0]?.problem ?? "", /gsv chat '\/mode full 2h'/);
    assert.match(problems({ mode: "auto", defaultDecision: "ask" })[0]?.problem ?? "", /config unset toolApproval\.defaultDecision/);
  });
});
test("[PO6] a default that asks nothing is named when it is set, and blocks nothing", () => {
  const known = { native: [], machines: [], machineNames: [] };
  const [problem, ...others] = policyProblems({ defaultDecision: "allow" }, engine, known);
  assert.ok(problem !== undefined && others.length === 0 && !problem.isFatal);
  assert.match(problem.problem, /^allow asks nothing: .*`gsv config unset toolApproval\.defaultDecision`$/);
  for (const config of [{ defaultDecision: "ask" }, { defaultDecision: "deny" }, { mode: "auto" }, {}] as const)
    assert.deepEqual(policyProblems(config, engine, known), []);
});
