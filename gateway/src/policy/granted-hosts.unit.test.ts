import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { decide, policyOf } from "./decide.ts";
import { choiceText, scopeText } from "./grant-text.ts";
import type { Grant } from "../ports/grants.ts";
import { at, bash } from "./grant-cases.ts";
import { covers, scopeOf } from "./grants.ts";
import { askedHosts, withoutHosts } from "./hosts.ts";
import { loadPolicyParts } from "./load.ts";

const engine = await loadPolicyParts();
describe("[SB17] hosts that an answer allows", () => {
  test("[SB17] a call for hosts by its hosts, whatever its commands are; a part of them is covered, another host is not", () => {
    const asks = (hosts: unknown, more: Record<string, unknown> = {}, sandbox: SandboxProfile = "workspace") =>
      scopeOf(bash("curl $X | tar x", { sandbox: "workspace+net", hosts, ...more }), at(sandbox));
    const both = asks(["B.org", "a.org:8080", "b.org"]);
    assert.deepEqual(both?.what, { kind: "hosts", sandbox: "workspace", hosts: ["a.org:8080", "b.org"] });
    const [one, other, elsewhere] = [asks(["b.org"]), asks(["a.org"]), asks(["b.org"], {}, "workspace+net")];
    assert.ok(both && one && other && elsewhere);
    assert.deepEqual([covers(both, one), covers(one, both), covers(both, other), covers(both, elsewhere)], [true, false, false, false]);
    assert.ok(!covers({ ...both, nodeId: "nas" }, one));
    for (const hosts of [undefined, [], "a.org", ["a.org", 5], ["a b.org"], ["a.org/x"], ["\u202ea.org"], Array(21).fill("a.org")])
      assert.equal(asks(hosts), undefined, JSON.stringify(hosts));
    assert.equal(asks(["a.org"], { env: {} }), undefined);
    for (const sandbox of ["off", "strict"] as const) assert.equal(asks(["a.org"], {}, sandbox), undefined, sandbox);
    const text =
      "any command in the sandbox workspace of lap, by the agent main; it may reach a.org:8080, b.org, and send there what it reads";
    assert.equal(scopeText(both, String), `${text}; in a conversation that has read an answer of such a host, only \`session\` holds`);
    assert.equal(choiceText("session", both, undefined, String), text);
    assert.equal(
      choiceText("8h", both, undefined, String),
      `${text}; it does not hold in a conversation that has read an answer of such a host`,
    );
  });
  // The node's `HostRule` is tested with the same ones (`sb14_hosts_are_written_in_one_way` in gsv-sandbox).
  test("[SB17] a host is written as the node writes it, and one that the node refuses is not asked about", () => {
    const asks = (host: unknown) => askedHosts({ sandbox: "workspace+net", hosts: [host] }, "workspace")?.[0];
    for (const [text, host] of [
      ["Example.ORG", "example.org"],
      ["example.org.", "example.org"],
      ["example.org:0443", "example.org:443"],
      ["*.Example.org.:8080", "*.example.org:8080"],
      ["_dmarc.example.org", "_dmarc.example.org"],
      ["localhost:3000", "localhost:3000"],
      ["127.0.0.1:80", "127.0.0.1:80"],
      ["[::1]:443", "[::1]:443"],
    ])
      assert.equal(asks(text), host, text);
    for (const text of [
      "*.com",
      "*",
      "*.",
      "*.127.0.0.1",
      "a.org:0",
      "a.org:65536",
      "a.org:",
      "a.org:8o",
      "0x7f.0x1",
      "127.1",
      "256.0.0.1",
      "1.2.3.4.",
      "a..b.org",
      ".a.org",
      "-a.org",
      "a.-b.org",
      "ä.org",
      "a b.org",
      "a.org/x",
      `${"a".repeat(64)}.org`,
      `${"a.".repeat(126)}aa`,
      "",
    ])
      assert.equal(asks(text), undefined, text);
  });
  test("[SB17] a call that asks for hosts and names none is refused before anyone is asked", () => {
    const asks = (hosts: unknown, sandbox: SandboxProfile | undefined = "workspace") =>
      withoutHosts({ command: "x", sandbox: "workspace+net", hosts }, sandbox);
    for (const hosts of [undefined, [], "a.org", ["a b.org"], Array(21).fill("a.org")])
      assert.match(asks(hosts) ?? "", /a list of 1 to 20 such as \["example\.org"\]/, JSON.stringify(hosts));
    assert.equal(asks(["a.org"]), undefined);
    assert.match(asks([], "workspace+net") ?? "", /a list of 1 to 20/);
    for (const sandbox of ["off", "strict"] as const) assert.equal(asks([], sandbox), undefined, sandbox);
    assert.equal(withoutHosts({ command: "x", sandbox: "off" }, "workspace"), undefined);
    const long = Array.from({ length: 5 }, (_, at) => `${at}${"a".repeat(200)}.org`);
    assert.match(asks(long) ?? "", /more than 1000 characters together/);
    assert.match(withoutHosts({ command: "x", sandbox: null }, "workspace+net") ?? "", /`sandbox` is a text/);
    for (const named of [{}, { sandbox: "off" }, { sandbox: "read-only" }])
      for (const sandbox of ["off", "strict", "workspace", undefined] as const)
        assert.match(withoutHosts({ command: "x", hosts: ["a.org"], ...named }, sandbox) ?? "", /`hosts` needs `sandbox` set to/);
  });
  test("[SB17] the question names the hosts, a grant of them answers the next one, and a rule is not offered", () => {
    const call = { ...bash("curl $X", { sandbox: "workspace+net", hosts: ["a.org"] }), sandbox: "workspace" as const };
    const granted = { grants: [] as Grant[], agentId: "main", sandbox: "workspace" as const };
    const context = { policy: policyOf(undefined, engine), isOwners: true, unset: "auto" as const };
    const asked = decide(call, { ...context, granted });
    assert.ok(asked.verdict === "ask" && asked.offer !== undefined);
    assert.match(asked.why, /on lap in the sandbox, with hosts\. It may reach a\.org\.$/);
    assert.equal(asked.offer.always, undefined);
    const grants = [{ id: "g1", scope: asked.offer.scope, expiresAt: 1 }];
    assert.deepEqual(decide(call, { ...context, granted: { ...granted, grants } }), { verdict: "allow", rule: "grant:g1" });
    const world = { label: "world", source: "a page" } as const;
    const heard = decide(call, { ...context, taint: world, granted: { ...granted, grants } });
    assert.ok(heard.verdict === "ask" && heard.offer === undefined);
    assert.match(heard.why, /on lap in the sandbox, with hosts\. It may reach a\.org\. Others/);
    // The first command's output has this label. Without the rule, an answer for the conversation would hold once only.
    const here = [{ ...grants[0], sessionId: "s1" }] as Grant[];
    assert.deepEqual(decide(call, { ...context, taint: world, granted: { ...granted, grants: here } }), {
      verdict: "allow",
      rule: "grant:g1",
    });
    const others = { ...context, isOwners: false, taint: world, granted: { ...granted, grants: here } };
    assert.equal(decide(call, others).verdict, "ask");
    assert.equal(decide(call, { ...context, mode: "plan", taint: world, granted: { ...granted, grants: here } }).verdict, "deny");
    const other = { ...bash("curl $X", { sandbox: "workspace+net", hosts: ["b.org"] }), sandbox: "workspace" as const };
    assert.equal(decide(other, { ...context, taint: world, granted: { ...granted, grants: here } }).verdict, "ask");
    assert.equal(decide(other, { ...context, granted: { ...granted, grants } }).verdict, "ask");
    // [PO13] What a command deletes cannot be restored, with hosts or without.
    const deletes = { ...bash("rm -rf src", { sandbox: "workspace+net", hosts: ["a.org"] }), sandbox: "workspace" as const };
    const again = decide(deletes, { ...context, granted: { ...granted, grants: here } });
    assert.ok(again.verdict === "ask" && again.offer === undefined);
    assert.match(again.why, /may delete more than 50 files.* It may reach a\.org\./);
  });
  test("[SB17] whatever asks about a call with hosts, the question names them, or says that it may reach every host", () => {
    const hosts = ["b.org", "A.org"];
    const lists = "the hosts that lap lists in node.toml";
    const shell = (args: Record<string, unknown>, sandbox?: SandboxProfile) => ({ ...bash("make", args), sandbox });
    const process = (args: Record<string, unknown>, sandbox: SandboxProfile) => ({
      ...shell({ action: "write", data: "x", ...args }, sandbox),
      tool: "Process",
    });
    const cases: readonly (readonly [PolicyCall, string | undefined])[] = [
      [shell({ sandbox: "workspace+net", hosts }, "workspace"), "a.org, b.org"],
      [shell({ sandbox: "workspace+net", hosts }, "workspace+net"), `a.org, b.org, and ${lists}`],
      [shell({}, "workspace+net"), lists],
      [shell({ hosts }, "workspace"), "every host"],
      [shell({ sandbox: "workspace+net", hosts: ["a.org/x"] }, "workspace"), "every host"],
      [shell({ sandbox: "workspace+net", hosts }, "off"), "every host"],
      [shell({ sandbox: "workspace+net", hosts }), "every host"],
      [shell({ sandbox: "workspace+net" }, "strict"), "every host"],
      [process({ sandbox: "workspace+net" }, "workspace"), "the hosts that were allowed when it was started"],
      [process({ sandbox: "workspace+net" }, "workspace+net"), `the hosts that were allowed when it was started, and ${lists}`],
      ...["kill", "list", "log", "poll"].map((action) => [process({ action }, "workspace+net"), undefined] as const),
      [process({}, "workspace+net"), lists],
      [shell({}, "workspace"), undefined],
      [shell({ sandbox: "off" }, "workspace+net"), "every host"],
      [shell({}, "off"), "every host"],
      [shell({}), "every host"],
      [shell({ command: "uname -a" }), undefined],
      [process({ sandbox: "off" }, "workspace"), "every host"],
      [process({}, "off"), "every host"],
      [shell({ sandbox: "read-only" }, "workspace+net"), undefined],
      [process({}, "workspace"), undefined],
    ];
    const whose = { isOwners: true, unset: "auto" as const };
    const rules = [{ id: "r", tool: "*", decision: "ask" as const }];
    const world = { label: "world", source: "a page" } as const;
    for (const [call, reached] of cases)
      for (const [what, context] of Object.entries({
        mode: { policy: policyOf({ mode: "ask" }, engine) },
        auto: { policy: policyOf(undefined, engine) },
        rule: { policy: policyOf({ rules }, engine), mode: "full" as const },
        definition: { policy: policyOf(undefined, engine), mode: "full" as const, alwaysAsked: ["*"] },
        label: { policy: policyOf(undefined, engine), taint: world },
      })) {
        const decision = decide(call, { ...whose, ...context });
        // A rule and a definition ask about each of them; the modes and the label about some.
        if (what === "rule" || what === "definition") assert.equal(decision.verdict, "ask", what);
        if (decision.verdict !== "ask") continue;
        const said = [...decision.why.matchAll(/It may reach (.*?)\.(?= |$)/g)].map(([, hosts]) => hosts);
        assert.deepEqual(
          said,
          reached === undefined ? [] : [reached],
          `${what}: ${JSON.stringify(call.args)} in ${call.sandbox}: ${decision.why}`,
        );
      }
  });
});
