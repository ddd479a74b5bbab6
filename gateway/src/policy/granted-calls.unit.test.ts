import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import { SandboxProfileValues } from "../../../protocol/gen/types.ts";
import type { Decision, PolicyCall } from "../ports/policy.ts";
import { decide, policyOf } from "./decide.ts";
import type { Grant } from "../ports/grants.ts";
import { at, bash, native, write } from "./grant-cases.ts";
import { covers, offerOf, scopeOf } from "./grants.ts";
import { loadPolicyParts } from "./load.ts";

const engine = await loadPolicyParts();
test("[GR4] nothing is offered when the conversation has read text of others; a grant still has its scope", () => {
  for (const label of ["peer", "world"] as const) {
    const heard = at("workspace", { taint: { label, source: "a document" } });
    assert.equal(offerOf(bash("ls"), heard), undefined);
    assert.ok(scopeOf(bash("ls"), heard));
  }
  assert.ok(offerOf(bash("ls"), at("workspace", { taint: { label: "self", source: "a file" } })));
});
test("[GR2] a message is covered where it goes to the same place, and a scope without commands covers none", () => {
  const scope = (args: Record<string, unknown>) => {
    const found = scopeOf(native("gsv__Message", args), at());
    assert.ok(found);
    return found;
  };
  const granted = scope({ to: "discord/me", text: "a" });
  assert.ok(covers(granted, scope({ text: "b", to: "discord/me" })));
  assert.ok(!covers(granted, scope({ to: "discord/eve", text: "a" })));
  assert.ok(!covers(granted, scope({ to: "discord/me", account: "b", text: "a" })));
  const none = { ...granted, what: { kind: "commands", sandbox: "off", folder: "", commands: [] } } as const;
  assert.ok(!covers(none, none));
});
test("[GR4] nothing is offered and no grant counts in another person's session", () => {
  const guest = at("workspace", { isOwners: false });
  for (const call of [bash("ls"), write("a"), native("gsv__Message", { to: "x" })]) assert.equal(offerOf(call, guest), undefined);
});

describe("[GR2] a grant covers nothing else", () => {
  const program = fc.constantFrom("git", "ls", "python3", "rm", "npm", "curl", "date");
  const argument = fc.constantFrom("push", "log", "-f", "run.py", "--all", "x.org", "build");
  const call = fc.record({
    words: fc.tuple(program, fc.array(argument, { maxLength: 3 })).map(([name, args]) => [name, ...args]),
    workdir: fc.constantFrom(undefined, "a", "a/b", "/srv/a/b"),
    nodeId: fc.constantFrom("lap", "nas"),
    agentId: fc.constantFrom("main", "other"),
    sandbox: fc.constantFrom(...SandboxProfileValues),
  });
  // The second call takes most of its parts from the first.
  const pair = fc
    .tuple(call, call, fc.array(fc.constantFrom("words", "workdir", "nodeId", "agentId", "sandbox"), { maxLength: 2 }))
    .map(
      ([left, other, differs]) =>
        [left, { ...left, ...Object.fromEntries(differs.map((name) => [name, Reflect.get(other, name)])) }] as const,
    );
  const scope = ({
    words,
    workdir,
    nodeId,
    agentId,
    sandbox,
  }: {
    readonly words: readonly string[];
    readonly workdir: string | undefined;
    readonly nodeId: string;
    readonly agentId: string;
    readonly sandbox: SandboxProfile;
  }) => scopeOf(bash(words.join(" "), workdir === undefined ? {} : { workdir }, nodeId), at(sandbox, { agentId }));
  test("a call with another program, subcommand, folder, sandbox, machine or agent is never covered", () => {
    let covered = 0;
    fc.assert(
      fc.property(pair, ([left, right]) => {
        const [granted, wanted] = [scope(left), scope(right)];
        if (granted === undefined || wanted === undefined || !covers(granted, wanted)) return;
        covered += 1;
        assert.equal(left.words[0], right.words[0]);
        for (const name of ["workdir", "nodeId", "agentId", "sandbox"] as const) assert.equal(left[name], right[name], name);
        const [one, two] = [granted.what, wanted.what];
        assert.ok(one.kind === "commands" || one.kind === "line");
        assert.deepEqual(one, two);
        if (left.sandbox === "off" && ["rm", "curl"].includes(left.words[0] ?? "")) assert.deepEqual(left.words, right.words);
        if (left.sandbox === "off") assert.ok(!["git", "python3", "npm"].includes(left.words[0] ?? ""));
      }),
      { numRuns: 5_000, seed: 7 },
    );
    assert.ok(covered > 500, `${covered} pairs were covered`);
  });
  test("a call covers itself, and a folder of files those below it only", () => {
    const files = (path: string) => scopeOf(write(path), at());
    const [src, deep, other, named, root, absolute] = ["src/a", "src/b/c", "lib/a", "src2/a", "a", "/srv/x/src/a"].map(files);
    assert.ok(src && deep && other && named && root && absolute);
    assert.deepEqual(
      [src, deep, other, named, root, absolute].map((wanted) => covers(src, wanted)),
      [true, true, false, false, false, false],
    );
    assert.deepEqual(
      [src, absolute].map((wanted) => covers(root, wanted)),
      [true, false],
    );
    assert.equal(covers(src, { ...src, tool: "Edit" }), false);
  });
});

describe("decide", () => {
  const grant = (call: PolicyCall, context = at(), id = "g1"): Grant => {
    const scope = scopeOf(call, context);
    assert.ok(scope);
    return { id, scope, expiresAt: 1 };
  };
  const decided = (call: PolicyCall, grants: readonly Grant[], config = {}, context = at()): Decision =>
    decide(call, { policy: policyOf({ mode: "ask", ...config }, engine), isOwners: context.isOwners, granted: { ...context, grants } });

  test("[GR5] a grant answers the mode's question, and its id is the rule", () => {
    const grants = [grant(bash("du"))];
    assert.deepEqual(decided(bash("du -s"), grants), { verdict: "allow", rule: "grant:g1" });
    assert.equal(decided(bash("df"), grants).verdict, "ask");
    assert.equal(decided(bash("rm -f pull"), grants).verdict, "ask");
    assert.equal(decided(bash("du && rm -f pull"), grants).verdict, "ask");
    assert.deepEqual(decided(bash("du && ls"), [...grants, grant(bash("ls"), at(), "g2")]), {
      verdict: "allow",
      rule: "grant:g1 grant:g2",
    });
  });
  test("[GR5] rules come first, a denial of the mode stays, and a sandbox that is gone asks again", () => {
    const grants = [grant(bash("rm -f push"))];
    const rules = (decision: "ask" | "deny") => ({ rules: [{ id: "r", tool: "*", decision }] });
    assert.equal(decided(bash("rm -f push"), grants, rules("deny")).verdict, "deny");
    assert.equal(decided(bash("rm -f push"), grants, rules("ask")).verdict, "ask");
    assert.equal(decided(bash("rm -f push"), grants, { mode: "plan" }).verdict, "deny");
    const confined = [grant(bash("python3 a.py"), at("workspace"))];
    assert.equal(decided(bash("python3 b.py"), confined, {}, at("workspace")).verdict, "allow");
    assert.equal(decided(bash("python3 b.py"), confined, {}, at("off")).verdict, "ask");
    assert.equal(decided(bash("rm -f push"), grants, {}, at("off", { isOwners: false })).verdict, "ask");
  });
  test("[GR4] a question offers what can be granted, and nothing when a rule asks or the command is complex", () => {
    const offer = (call: PolicyCall, config = {}, context = at()): unknown => {
      const decision = decided(call, [], config, context);
      return decision.verdict === "ask" ? decision.offer : "no question";
    };
    assert.deepEqual(offer(bash("ping -c 1 db")), {
      scope: {
        agentId: "main",
        tool: "Bash",
        nodeId: "lap",
        what: { kind: "commands", sandbox: "off", folder: "", commands: [{ program: "ping", words: ["ping", "-c", "1", "db"] }] },
      },
      always: { tool: "lap__Bash", decision: "allow", when: [{ path: "command", op: "equals", value: ["ping", "-c", "1", "db"] }] },
    });
    assert.equal(offer(bash("rm -f push"), { rules: [{ id: "r", tool: "*", decision: "ask" }] }), undefined);
    assert.equal(offer(bash("rm -f push $X")), undefined);
    assert.equal(offer(bash("python3 a.py")), undefined);
    const confined = offer(bash("python3 a.py"), {}, at("workspace"));
    assert.ok(confined && !("always" in (confined as object)), "a rule names no sandbox");
  });
  test("[GR4] the offered rule allows the call, and no other", () => {
    for (const call of [bash("ping db"), write("/srv/a/b/c"), native("gsv__Message", { to: "discord/me", text: "x" })]) {
      const decision = decided(call, []);
      assert.ok(decision.verdict === "ask" && decision.offer?.always, JSON.stringify(decision));
      const rules = [{ id: "a", ...decision.offer.always }];
      assert.equal(decided(call, [], { rules }).verdict, "allow");
      const [name = ""] = Object.keys(call.args);
      if (call.tool === "Bash") {
        // The owner was not shown another folder, and not that the command leaves the sandbox.
        for (const more of [{ workdir: "evil" }, { workdir: 5 }, { sandbox: "off" }, { env: {} }])
          assert.equal(decided({ ...call, args: { ...call.args, ...more } }, [], { rules }).verdict, "ask", JSON.stringify(more));
        for (const more of [{ workdir: "" }, { workdir: "." }, { timeout: 5, background: true, yieldMs: 1 }])
          assert.equal(decided({ ...call, args: { ...call.args, ...more } }, [], { rules }).verdict, "allow", JSON.stringify(more));
      }
      assert.equal(decided({ ...call, args: { ...call.args, [name]: `${String(call.args[name])}2` } }, [], { rules }).verdict, "ask");
    }
  });
});
