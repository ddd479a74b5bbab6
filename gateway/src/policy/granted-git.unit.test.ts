import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { decide, policyOf } from "./decide.ts";
import { at, bash, commands } from "./grant-cases.ts";
import { offerOf, onlyReads, scopeOf } from "./grants.ts";
import { loadPolicyParts } from "./load.ts";

const engine = await loadPolicyParts();
describe("[GR3] git and other programs that start what a configuration in the folder names", () => {
  const GIT = [
    "git status",
    "git log --oneline",
    "git diff",
    "git push",
    "git -C sub status",
    "Git status",
    "/usr/bin/git fetch",
    "git-lfs pull",
  ];
  const WRAPPED = ["env git status", "nice git log", "timeout 5 git diff", "ls && git status", "echo x | xargs git add"];
  const OTHERS = [
    "gh pr list",
    "hg status",
    "svn up",
    "direnv allow",
    "docker compose up",
    "docker-compose up",
    "terraform plan",
    "cargo build",
  ];
  const MORE = [
    "go build",
    "rustc a.rs",
    "eslint .",
    "mypy x",
    "wrangler deploy",
    "code .",
    "vim a",
    "cargo-nextest run",
    "ansible-lint x",
  ];
  const out = (command: string) => ({ ...bash(command, { sandbox: "off" }), sandbox: "workspace" as const });
  const context = { policy: policyOf(undefined, engine), isOwners: true, unset: "auto" as const };
  for (const command of [...GIT, ...WRAPPED, ...OTHERS, ...MORE])
    test(`outside a sandbox only once: ${command}`, () => {
      assert.equal(scopeOf(out(command), at("workspace")), undefined);
      assert.equal(scopeOf(bash(command), at("off")), undefined);
      const decision = decide(out(command), { ...context, granted: { ...at("workspace"), grants: [] } });
      assert.ok(decision.verdict === "ask" && decision.offer === undefined);
      assert.match(decision.why, /It can be allowed once only/);
    });
  test("a grant that was made before does not answer, and neither one for the sandbox, also in this conversation", () => {
    for (const what of [{ program: "git", subcommand: "status" }, { program: "git", words: ["git", "status"] }, { program: "git" }])
      for (const sandbox of ["off", "workspace"] as const) {
        const scope = {
          agentId: "main",
          tool: "Bash",
          nodeId: "lap",
          what: { kind: "commands", sandbox, folder: "", commands: [what] },
        } as const;
        const granted = { ...at("workspace"), grants: [{ id: "g1", scope, expiresAt: 1, sessionId: "s1" }] };
        assert.equal(decide(out("git status"), { ...context, granted }).verdict, "ask", JSON.stringify(what));
        const off = { ...bash("git status"), sandbox: "off" as const };
        assert.equal(decide(off, { ...context, granted: { ...granted, sandbox: "off" } }).verdict, "ask", JSON.stringify(what));
        assert.equal(onlyReads(scope, off), false);
      }
  });
  test("in a sandbox git has its subcommands, and no rule is offered, which would hold without one", () => {
    assert.deepEqual(commands("git log -3", "workspace"), [["git", "log"]]);
    assert.deepEqual(commands("gh pr list", "workspace"), [["gh", "pr list"]]);
    assert.equal(offerOf(bash("git log"), at("workspace"))?.always, undefined);
    assert.ok(offerOf(bash("git log"), at("workspace")));
  });
  test("a question about git outside the sandbox says what git starts, in every mode and after a rule, and no other question does", () => {
    const why = (call: PolicyCall & { sandbox?: SandboxProfile }, config = {}): string => {
      const decision = decide(call, { ...context, policy: policyOf(config, engine), granted: { ...at("workspace"), grants: [] } });
      return decision.verdict === "ask" ? decision.why : decision.verdict;
    };
    const SAYS =
      / Git runs the hooks and programs that the repository's configuration names, and an earlier command may have changed which\./;
    const rules = [{ id: "r", tool: "*", decision: "ask" as const }];
    for (const command of ["git status", "env git status", "cd x; git push $Y", "/usr/bin/g'i't log", "sh -c 'git log'"]) {
      assert.match(why(out(command)), SAYS, command);
      assert.match(why(out(command), { mode: "ask" }), SAYS, command);
      assert.match(why(out(command), { rules }), SAYS, command);
      assert.match(why({ ...bash(command), sandbox: "off" }), SAYS, command);
      assert.doesNotMatch(why({ ...bash(command), sandbox: "workspace" }, { mode: "ask" }), SAYS, command);
    }
    for (const command of ["cat .git/config", "cat .gitignore", "ls legit", "curl x.org/a.git", "scp git@x.org:a b"])
      assert.doesNotMatch(why(out(command)), SAYS, command);
  });
  test("what a rule of the owner allows stays the owner's word", () => {
    const when = [
      { path: "command", op: "equals" as const, value: ["git", "fetch"] },
      { path: "sandbox", op: "equals" as const, value: "off" },
    ];
    const policy = policyOf({ rules: [{ id: "f", tool: "lap__Bash", decision: "allow", when }] }, engine);
    assert.deepEqual(decide(out("git fetch"), { ...context, policy }), { verdict: "allow", rule: "rule:f" });
  });
});
