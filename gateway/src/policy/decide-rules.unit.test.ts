/** What the owner's rules decide. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { ApprovalConfig, ApprovalRule } from "../../../protocol/gen/types.ts";
import { PolicyClassValues, PolicyModeValues } from "../../../protocol/gen/types.ts";
import { engine, onNode, native, bash, decided, verdict, rule, command } from "../../test/policy/decisions.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { decide, policyOf, POLICY_ERROR } from "./decide.ts";
import { policyProblems } from "./rule-problems.ts";

describe("[PO1] rules", () => {
  test("the first that applies decides, and is named", () => {
    const config = { rules: [rule("deny", "*__Write"), rule("allow", "lap__*"), rule("ask", "*")] };
    assert.equal(decided(onNode("Write", "write_files", {}), config).rule, `rule:${config.rules[0]?.id}`);
    assert.deepEqual(decided(onNode("Read", "read_private", {}), config), { verdict: "allow", rule: `rule:${config.rules[1]?.id}` });
    assert.equal(decided(native("gsv__ReadFile", "read_private"), config).verdict, "ask");
    // A rule that allows machine tools names no command.
    assert.equal(decided(bash("git status"), config).rule, `rule:${config.rules[2]?.id}`);
  });
  test("they come before the mode, in every mode", () => {
    const config = { rules: [rule("deny", "*"), rule("allow", "*")] };
    for (const mode of PolicyModeValues) assert.equal(verdict(native("gsv__ReadFile", "read_private"), config, { mode }), "deny");
  });
  test("[PO1] [PO4] a rule that may apply hides no later one that denies for certain, and gives no more than later rules and the mode", () => {
    const [rm, python, sudo] = [
      rule("deny", "*__Bash", command("startsWith", ["rm"])),
      rule("deny", "*__Bash", command("startsWith", ["python3"])),
      rule("deny", "*__Bash", command("contains", "sudo")),
    ];
    const ask = rule("ask", "*__Bash", command("startsWith", ["git", "push"]));
    const inside = (text: string): PolicyCall => ({ ...bash(text), sandbox: "workspace" });
    for (const rules of [
      [rm, python, sudo],
      [sudo, python, rm],
    ]) {
      assert.equal(decided(inside("python3 -c 1"), { rules }, { mode: "auto" }).rule, `rule:${python.id}`);
      assert.equal(verdict(inside("python3 -c 1"), { rules }, { mode: "auto" }), "deny");
      assert.equal(verdict(inside("sudo id"), { rules }, { mode: "auto" }), "deny");
      assert.equal(verdict(inside("sh -c id"), { rules }, { mode: "auto" }), "ask");
      // A rule that asks does not open what the mode denies.
      assert.equal(verdict(inside("sh -c id"), { rules }, { mode: "plan" }), "deny");
    }
    assert.equal(verdict(inside("sh -c 'sudo id'"), { rules: [ask, sudo] }, { mode: "auto" }), "deny");
    assert.equal(verdict(inside("git push"), { rules: [ask] }, { mode: "plan" }), "deny");
    const allow = rule("allow", "*__Bash", command("equals", ["sh", "-c", "id"]));
    assert.equal(verdict(inside("sh -c id"), { rules: [rm, allow] }, { mode: "full" }), "ask");
    assert.equal(verdict(inside("sh -c id"), { rules: [allow, rm] }, { mode: "plan" }), "allow");
  });
  test("the reason of a rule is in the text", () => {
    const denied = decided(bash("id"), { rules: [{ ...rule("deny", "*"), reason: "not on Sundays" }] });
    assert.match(denied.verdict === "deny" ? denied.text : "", /the owner's rule r[0-9]+ \(not on Sundays\) denies this call\./);
  });
  test("an exception is a denial", () => {
    const broken = { get: () => assert.fail("broken") };
    const context = { policy: policyOf({ rules: [rule("allow", "*", { path: "a", op: "equals", value: 1 })] }, engine), isOwners: true };
    const args = new Proxy({}, { getOwnPropertyDescriptor: broken.get });
    const found = decide(native("gsv__X", "read_private", args), context);
    assert.deepEqual([found.verdict, found.rule], ["deny", POLICY_ERROR]);
  });
});

describe("[PO3] a rule allows whole commands only", () => {
  const status = { mode: "ask", rules: [rule("allow", "lap__Bash", command("equals", ["git", "status"]))] } as const;
  const config: ApprovalConfig = { ...status, rules: [...status.rules, rule("allow", "*__Bash", command("equals", "npm test"))] };
  for (const [text, expected] of [
    ["git status", "allow"],
    ["git  'status' ", "allow"],
    ["git status 2>/dev/null", "allow"],
    ["git status && npm test; git status", "allow"],
    ["npm test | git status", "allow"],
    ["git status && id", "ask"],
    ["id; git status", "ask"],
    ["git status --x", "ask"],
    ["git", "ask"],
    ["/usr/bin/git status", "ask"],
    ["git status $X", "ask"],
    ["git status\n", "ask"],
    ["git status > x", "ask"],
    ["A=b git status", "ask"],
    ["", "ask"],
  ] as const)
    test(JSON.stringify(text), () => assert.equal(verdict(bash(text), config), expected));
  test("another folder, a command outside the sandbox and an argument that is not known are allowed only by a rule that names them", () => {
    const named = (...when: NonNullable<ApprovalRule["when"]>) => ({ mode: "ask" as const, rules: [rule("allow", "lap__Bash", ...when)] });
    const status = command("equals", ["git", "status"]);
    const call = (more: Record<string, unknown>): PolicyCall => ({ ...bash("git status"), args: { command: "git status", ...more } });
    for (const more of [{ workdir: "evil" }, { workdir: "/srv" }, { sandbox: "off" }, { shell: "/tmp/x" }])
      assert.equal(verdict(call(more), named(status)), "ask", JSON.stringify(more));
    const there = named(status, { path: "workdir", op: "equals", value: "src" });
    assert.equal(verdict(call({ workdir: "src" }), there), "allow");
    assert.equal(verdict(call({}), there), "ask");
    assert.equal(verdict(call({ workdir: "src", sandbox: "off" }), there), "ask");
    assert.equal(verdict(call({ sandbox: "off" }), named(status, { path: "sandbox", op: "equals", value: "off" })), "allow");
  });
  test("a rule without the whole command allows none", () => {
    for (const loose of [
      rule("allow", "lap__Bash"),
      rule("allow", "*"),
      rule("allow", "lap__Bash", { path: "workdir", op: "equals", value: "a" }),
      rule("allow", "lap__Bash", command("startsWith", ["git"])),
      rule("allow", "lap__Bash", command("startsWith", "git")),
      rule("allow", "lap__Bash", command("contains", "git status")),
      rule("allow", "lap__Bash", command("regex", "git status")),
      rule("allow", "lap__Bash", command("equals", "git status && npm test")),
      rule("allow", "lap__Bash", command("equals", "git status $X")),
    ])
      for (const text of ["git status", "git status && npm test", "git status $X"])
        assert.equal(
          verdict({ ...bash(text), args: { command: text, workdir: "a" } }, { mode: "ask", rules: [loose] }),
          "ask",
          JSON.stringify(loose),
        );
  });
  test("the strictest of several commands decides", () => {
    const mixed = { rules: [rule("deny", "*", command("startsWith", ["rm"])), rule("ask", "*", command("startsWith", ["git"]))] };
    assert.equal(verdict(bash("git status; ls"), mixed), "ask");
    assert.equal(verdict(bash("ls && git status | rm x"), mixed), "deny");
    assert.equal(verdict(bash("ls; pwd"), mixed), "allow");
  });
});

describe("[PO4] a rule about a program and its words is not avoided by options", () => {
  const rules = [
    ["git", "push"],
    ["rm", "-rf"],
    ["npm", "publish", "--tag"],
  ].map((value) => rule("deny", "*__Bash", command("startsWith", value)));
  for (const text of ["git -C . push", "git --no-pager push", "git -c a.b=c push x", "rm -fr x", "rm -r -f x", "rm --recursive --force x"])
    test(`asks: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "ask"));
  for (const text of ["rm -v -rf x", "/bin/rm -Rf x", "npm --access public publish --tag x", "npm publish . -t x"])
    test(`asks: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "ask"));
  for (const text of ["git status", "git pull", "git log push.md", "rm -r x", "rm x -f", "rm rf", "npm publish", "npm run publish-docs"])
    test(`is another command: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "allow"));
});

describe("[PO4] a rule about a subcommand", () => {
  const rules = [
    rule("deny", "*__Bash", command("startsWith", ["git", "push"])),
    rule("deny", "*__Bash", command("startsWith", ["npm", "publish"])),
    rule("deny", "*__Bash", command("equals", ["gh", "repo", "delete"])),
    rule("deny", "*__Bash", command("startsWith", ["git-lfs", "prune"])),
    rule("deny", "*__Bash", command("contains", "git clean")),
  ];
  for (const text of ["/usr/lib/git-core/git-push o m", "git-push", "GIT-push x", "git-lfs prune", "git lfs prune", "git-clean -fdx"])
    test(`denies: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "deny"));
  for (const text of ["npm pub", "npm publ --tag x", "npm --access public pub", "gh rep del", "/usr/bin/npm pu", "git pus"])
    test(`asks about a shortened word: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "ask"));
  for (const text of ["env git-push", "unknown git-push o", "unknown npm pub", "unknown 'git-push o'", "git-bisect run x"])
    test(`asks about what may run it: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "ask"));
  for (const text of ["npm p", "np publish", "gh rep", "gh repo delete2", "git-pull", "npm run publisher", "git log pu", "gh -re -de"])
    test(`is another command: ${text}`, () => assert.equal(verdict(bash(text), { rules }), "allow"));
});

describe("[PO4] a rule that denies is not avoided by spelling", () => {
  const config = {
    rules: [rule("deny", "*__Bash", command("startsWith", ["rm", "-rf"])), rule("deny", "*__Bash", command("contains", "curl "))],
  };
  for (const text of [
    "rm -rf /",
    "rm  -rf /",
    "'rm' -rf /",
    "r''m \"-rf\" /",
    "/bin/rm -rf /",
    "ls; rm -rf /",
    "ls | rm -rf",
    "curl x",
    "curl  x",
    "cu''rl x",
  ])
    test(`[X12] denied: ${text}`, () => assert.equal(verdict(bash(text), config), "deny"));
  for (const text of [
    "rm$IFS-rf$IFS/",
    "rm\t-rf /\n",
    "\\rm -rf /",
    "$(echo rm) -rf /",
    "A=rm; $A -rf /",
    "eval 'r''m -rf /'",
    "sh -c 'r\"m\" -rf /'",
    "env -S 'rm$x -rf /'",
    "env rm -rf /",
    "sudo rm -rf /",
    "busybox rm -rf /",
    "echo x | xargs rm -rf",
    "echo cm0gLXJm | base64 -d | sh",
    "python3 -c 'import shutil'",
    "git -c 'alias.x=!r\"m\" -rf /' x",
    "find / -delete",
    'cat <<E | bash\nr"m" -rf /\nE',
  ])
    test(`[X12] not allowed: ${JSON.stringify(text)}`, () => assert.notEqual(verdict(bash(text), config), "allow"));
  test("[X12] none of the spellings in the table is allowed", (t) => {
    const spellings = readFileSync(join(import.meta.dirname, "../../../test/tables/deny-spellings.txt"), "utf8")
      .trimEnd()
      .split("\n")
      .filter((line) => !line.startsWith("#"));
    assert.equal(new Set(spellings).size, spellings.length);
    assert.ok(spellings.length >= 300, String(spellings.length));
    const verdicts = spellings.map((text) => verdict(bash(text), { rules: [rule("deny", "*__Bash", command("startsWith", ["rm"]))] }));
    t.diagnostic(`${spellings.length} spellings: ${verdicts.filter((said) => said === "deny").length} denied, the others asked about`);
    assert.deepEqual(
      spellings.filter((_, index) => verdicts[index] === "allow"),
      [],
    );
  });
  for (const [what, value] of [
    ["a list", ["rm", "-rf", "/"]],
    ["an object", { toString: "rm -rf /" }],
    ["a number", 5],
    ["nothing", undefined],
    ["null", null],
  ] as const)
    test(`[X12] not allowed: ${what} as the command`, () => assert.notEqual(verdict(bash(value), config), "allow"));
  test("other commands run", () => {
    const ordinary =
      "ls|git status|npm test && cargo build|python3 script.py|rm x|git commit -m 'a message'|git log --oneline|git diff HEAD|" +
      "git pull --rebase|git push -u origin main|git add -u|git rebase --continue|git ls-files --exclude-standard|cargo test|npm ci|" +
      "npm run build|pnpm install|go test ./...|go build|make|make test|node script.js|ruby script.rb|perl script.pl|grep -rn TODO src|find . -name x|" +
      "tar xzf x.tgz|tar -czf x.tgz src|sort x|cp a b|mkdir -p a|pytest -q|ffmpeg -i a b|uv sync|yarn install|cat a|head -n 5 a|wc -l a|curl-config x|gcc -c a.c" +
      "|split --lines=5 a|sort --reverse --check a|zip -r --update a.zip b|pandoc --file-scope -f markdown -t html a|install -Dm755 --suffix=.b a b|" +
      "wget -qO- --no-check-certificate https://example.org|gawk --field-separator=: -f a b|gpg --armor --output a --export b|apt-get -y update|" +
      "node script.js 'rm -rf a'|sed 's/rm -rf a/b/' c|npm run build -- --name='rm -rf a'";
    for (const text of ordinary.split(/\|(?!\|)/)) assert.equal(verdict(bash(text), config), "allow", text);
  });
  test("paths are compared without detours and as disks fold them", () => {
    const paths = { rules: [rule("deny", "*__Write", { path: "path", op: "startsWith", value: "secret/" })] };
    for (const path of ["secret/a", "./secret/a", "x/../secret//a", "SECRET/a", "sec\u200bret/a", ["secret/a"], 5])
      assert.equal(verdict(onNode("Write", "write_files", { path }), paths), "deny", JSON.stringify(path));
    assert.equal(verdict(onNode("Write", "write_files", { path: "public/a" }), paths), "allow");
    // Only the machine knows where its workspace is.
    const anchored = { rules: [rule("deny", "*__Write", { path: "path", op: "regex", value: "^secret/" })] };
    for (const path of ["/ws/secret/a", "~/ws/secret/a", "../ws/secret/a", "x/../../ws/secret/a"])
      for (const rules of [paths, anchored]) assert.equal(verdict(onNode("Write", "write_files", { path }), rules), "ask", path);
    const outside = { rules: [rule("deny", "*__Write", { path: "path", op: "startsWith", value: "/etc/" })] };
    assert.equal(verdict(onNode("Write", "write_files", { path: "/etc/a" }), outside), "deny");
    for (const path of ["/srv/a", "a", "../a"]) assert.equal(verdict(onNode("Write", "write_files", { path }), outside), "allow", path);
    const open = { mode: "ask", rules: [rule("allow", "*__Write", { path: "path", op: "startsWith", value: "docs/" })] } as const;
    const written = (path: unknown): string =>
      verdict(onNode("Write", "write_files", { path }), { mode: open.mode, rules: [...open.rules] });
    assert.equal(written("docs/a"), "allow");
    for (const path of ["docs/../../etc/passwd", "docs/../a", ["docs/a"], "Docs/a", undefined])
      assert.equal(written(path), "ask", JSON.stringify(path));
  });
});

describe("[PO5] conditions", () => {
  const holds = (op: "equals" | "contains" | "startsWith" | "regex", value: unknown, given: unknown, flags?: string): boolean =>
    verdict(native("gsv__X", "read_private", { a: { b: given } }), {
      defaultDecision: "deny",
      rules: [rule("allow", "gsv__X", { path: "a.b", op, value, ...(flags === undefined ? {} : { flags }) })],
    }) === "allow";
  test("operators", () => {
    assert.ok(holds("equals", "x", "x") && holds("equals", 5, 5) && holds("equals", { k: [1] }, { k: [1] }));
    assert.ok(!holds("equals", "5", 5) && !holds("equals", [1], [1, 2]) && !holds("equals", null, undefined));
    assert.ok(holds("contains", "b", "abc") && holds("startsWith", "ab", "abc") && !holds("startsWith", "b", "abc"));
    assert.ok(holds("regex", "^a.c$", "abc") && holds("regex", "^A", "abc", "i") && !holds("regex", "^A", "abc"));
    assert.ok(!holds("contains", "b", ["b"]) && !holds("regex", "", "abc") && !holds("regex", "(", "("));
  });
  test("own properties only", () => {
    const inherited = { rules: [rule("deny", "*", { path: "constructor.name", op: "equals", value: "Object" })] };
    assert.equal(verdict(native("gsv__X", "read_private", {}), inherited), "allow");
  });
  test("[X12] a pattern that stops other engines is answered, and the time does not grow with the pattern's shape", () => {
    const pattern = { rules: [rule("deny", "*", { path: "t", op: "regex", value: "^(([a-z])+.)+[A-Z]([a-z])+$" })] };
    assert.equal(verdict(native("gsv__X", "read_private", { t: "a".repeat(50_000) }), pattern), "allow");
    const nested = { rules: [rule("deny", "*", { path: "t", op: "regex", value: "(a*)*b" })] };
    assert.equal(verdict(native("gsv__X", "read_private", { t: "a".repeat(50_000) }), nested), "allow");
  });
  test("a pattern that cannot be used leaves a rule that denies unsure", () => {
    for (const value of ["(", "(?=a)", "a".repeat(1025), 5])
      assert.equal(
        verdict(native("gsv__X", "read_private", { t: "x" }), { rules: [rule("deny", "*", { path: "t", op: "regex", value })] }),
        "ask",
      );
  });
});

describe("[PO3] [PO10] for any rules", () => {
  const text = fc.oneof(
    fc.constantFrom("git status", "git status && id", "rm -rf /", "ls *", "sh -c id", "$(id)", "git  status", "a;b|c", ""),
    fc.string({ maxLength: 20 }),
  );
  const condition = fc.record({
    path: fc.constantFrom("command", "path", "workdir", "a.b", ""),
    op: fc.constantFrom("equals" as const, "contains" as const, "startsWith" as const, "regex" as const),
    value: fc.oneof(text, fc.array(text, { maxLength: 3 }), fc.jsonValue(), fc.constantFrom(".*", "git", ["git", "status"])),
  });
  const anyRule = fc.record(
    {
      id: fc.constant("r"),
      tool: fc.constantFrom("*", "lap__*", "*__Bash", "lap__Bash", "gsv__*", "lap__Write"),
      decision: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
      when: fc.array(condition, { maxLength: 2 }),
    },
    { requiredKeys: ["id", "tool", "decision"] },
  );
  const anyConfig = fc.record(
    {
      mode: fc.constantFrom("plan" as const, "ask" as const, "auto" as const),
      defaultDecision: fc.constantFrom("ask" as const, "deny" as const),
      rules: fc.array(anyRule, { maxLength: 5 }),
    },
    { requiredKeys: ["rules"] },
  );
  const anyCall = fc.oneof(
    fc.oneof(text, fc.jsonValue()).map(bash),
    fc.record({ path: fc.oneof(text, fc.jsonValue()) }).map((args) => onNode("Write", "write_files", args)),
    fc.constantFrom(...PolicyClassValues).map((policyClass) => native("gsv__X", policyClass, { a: { b: 1 } })),
  );
  test("a Bash call runs only by rules that name each of its commands, or by the mode", () => {
    fc.assert(
      fc.property(text, anyConfig, (command, config) => {
        const found = decided(bash(command), { defaultDecision: "ask", ...config });
        // In mode auto a command such as `id` needs no rule.
        if (found.verdict !== "allow" || found.rule === "mode:auto") return;
        const by = config.rules.filter(
          ({ tool, decision }) => decision === "allow" && ["*", "lap__*", "*__Bash", "lap__Bash"].includes(tool),
        );
        assert.ok(by.some(({ when = [] }) => when.some(({ path, op }) => path === "command" && op === "equals")));
      }),
      { numRuns: 5_000 },
    );
  });
  test("another person's session gets nothing by a rule that it would not get without rules, and nothing by a session's mode", () => {
    fc.assert(
      fc.property(anyCall, anyConfig, fc.constantFrom(...PolicyModeValues, undefined), (call, config, mode) => {
        const isOwners = false;
        if (decide(call, { policy: policyOf(config, engine), mode, isOwners }).verdict !== "allow") return;
        assert.equal(decide(call, { policy: policyOf({ ...config, rules: [] }, engine), isOwners }).verdict, "allow");
      }),
      { numRuns: 5_000 },
    );
  });
  test("every call and every rule gets a decision", () => {
    fc.assert(
      fc.property(anyCall, anyConfig, (call, config) => assert.notEqual(decided(call, config).rule, POLICY_ERROR)),
      { numRuns: 5_000 },
    );
  });
});

test("[AD7] a tool of which the definition asks each time is asked about, whatever allows it, and no answer is kept", () => {
  const call = onNode("Read", "read_private", { path: "a" });
  for (const mode of ["ask", "auto", "full"] as const) {
    const context = { policy: policyOf({ rules: [rule("allow", "*")] }, engine), mode, isOwners: true };
    assert.equal(decide(call, context).verdict, "allow");
    const asked = decide(call, { ...context, alwaysAsked: ["lap__*"] });
    assert.deepEqual(asked, {
      verdict: "ask",
      rule: "autonomy.requires_approval",
      why: "The agent's definition asks about each call of this tool.",
    });
  }
  const deletes = decide(
    { ...onNode("Bash", "exec", { command: "rm -rf src" }), sandbox: "workspace" },
    {
      policy: policyOf({}, engine),
      mode: "auto",
      isOwners: true,
      taint: { label: "world", source: "a page" },
      granted: { grants: [], agentId: "main", sandbox: "workspace" },
      alwaysAsked: ["lap__*"],
    },
  );
  assert.ok(deletes.verdict === "ask" && !("offer" in deletes));
  assert.match(
    deletes.why,
    /asks about each call of this tool\. The command `rm` may delete more than 50 files.*Others may have written.*from a page\)\..*once only/s,
  );
  const denied = decide(call, { policy: policyOf({ rules: [rule("deny", "*")] }, engine), isOwners: true, alwaysAsked: ["lap__*"] });
  assert.equal(denied.verdict, "deny");
  assert.equal(decided(call, { rules: [rule("allow", "*")] }).verdict, "allow");
});

test("[PO4] [SB21] a rule that names the command and its sandbox `read-only` can be saved, and allows exactly that call", () => {
  const when = [
    { path: "command", op: "equals" as const, value: ["ls"] },
    { path: "sandbox", op: "equals" as const, value: "read-only" },
  ];
  const config = { rules: [{ id: "look", tool: "*__Bash", decision: "allow" as const, when }] };
  assert.deepEqual(policyProblems(config, engine.regex, { native: [], machines: [], machineNames: ["lap__Bash"] }), []);
  const verdictOf = (args: Record<string, unknown>): string =>
    decide(onNode("Bash", "exec", args), { policy: policyOf(config, engine), mode: "ask", isOwners: true }).verdict;
  assert.equal(verdictOf({ command: "ls", sandbox: "read-only" }), "allow");
  assert.equal(verdictOf({ command: "ls", sandbox: "off" }), "ask");
  assert.equal(verdictOf({ command: "ls -l", sandbox: "read-only" }), "ask");
});
