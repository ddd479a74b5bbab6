/** The settings of the policy, and the calls of clients under them. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AuditEntry } from "../../../protocol/gen/types.ts";
import { client, eventually, fakeSessions, node, type Peer, port, seed } from "../support/gateway.ts";

let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const set = (path: string, value: unknown): Promise<Record<string, unknown>> => admin.ok("config.set", { path, value });
const deny = (tool: string, more: Record<string, unknown> = {}) => ({ id: "r", tool, decision: "deny", ...more });

describe("[PO6] toolApproval", () => {
  test("[F1] is served: rules and modes are stored, shown, and reach runs with a new version", async () => {
    const before = await port().runContext("agent:main:main", undefined);
    await set("toolApproval.rules", [deny("lap__Bash", { when: [{ path: "command", op: "regex", value: "^rm" }] })]);
    expect(await admin.ok("config.get", { path: "toolApproval.rules" })).toMatchObject({ value: [{ tool: "lap__Bash" }] });
    const after = await port().runContext("agent:main:main", before?.version);
    expect(after?.config.toolApproval?.rules).toHaveLength(1);
    await set("toolApproval.mode", "auto");
    expect((await admin.ok("config.get")).config).toMatchObject({ toolApproval: { mode: "auto" } });
    expect((await admin.ok("config.get"))["notInForce"]).toBeUndefined();
  });

  test("a rule that can never apply is refused with the reason, whatever part is set", async () => {
    const refusal = async (path: string, value: unknown) => {
      const { reason, message } = await admin.refused("config.set", { path, value });
      return `${reason} ${message}`;
    };
    expect(await refusal("toolApproval.rules", [deny("gsv__WritFile")])).toMatch(
      /^config\.invalid toolApproval\.rules\[0\]: there is no tool gsv__WritFile\. Did you mean gsv__WriteFile/,
    );
    expect(
      await refusal("toolApproval", { rules: [deny("gsv__WriteFile", { when: [{ path: "file", op: "equals", value: "x" }] })] }),
    ).toMatch(/gsv__WriteFile has no argument file/);
    expect(await refusal('["toolApproval"].rules[0]', deny("*", { when: [{ path: "a", op: "regex", value: "(a" }] }))).toMatch(
      /regular expression/,
    );
    expect(await refusal("toolApproval.rules", [deny("*"), deny("lap__Bash", { id: "s" })])).toMatch(
      /rules\[1\]: it never applies, because toolApproval\.rules\[0\]/,
    );
    expect(await refusal("toolApproval.mode", "full")).toMatch(/gsv chat '\/mode full 2h'/);
    await set("toolApproval.rules", [deny("*", { when: [{ path: "path", op: "equals", value: "x" }] }), deny("lap__Bash", { id: "s" })]);
    expect((await admin.refused("config.unset", { path: "toolApproval.rules[0].when" })).message).toMatch(/rules\[1\]: it never applies/);
  });

  test("[PO6] after a rule is unset, the remaining rules have their warnings", async () => {
    await set("toolApproval.rules", [deny("gsv__WriteFile", { id: "first" }), deny("nowhere__Bash", { id: "second" })]);
    const { warnings } = await admin.ok<{ warnings?: string[] }>("config.unset", { path: "toolApproval.rules[0]" });
    expect(warnings).toEqual([expect.stringMatching(/^toolApproval\.rules\[0\]: /)]);
  });

  test("[PO6] a list that is set names the rules that it removes", async () => {
    const rules = [deny("*", { id: "no-rm" }), deny("gsv__WriteFile", { id: "no-write", decision: "ask" })];
    await set("toolApproval.rules", rules.toReversed());
    expect(await set("toolApproval.rules", rules.toReversed())).not.toHaveProperty("warnings");
    expect(await set("toolApproval.rules", [rules[1]])).toMatchObject({
      warnings: ['toolApproval.rules: removed "no-rm" (deny). To keep a rule, include it in the new list.'],
    });
  });
  test("a rule for a machine that is not known is stored with a warning", async () => {
    const rules = [deny("lap__Bash")];
    expect(await set("toolApproval.rules", rules)).toMatchObject({
      warnings: ["toolApproval.rules[0]: no machine that is known has a tool lap__Bash, so the rule applies to nothing now"],
    });
    await node("lap");
    expect(await set("toolApproval.rules", rules)).toEqual({ ok: true, path: "toolApproval.rules" });
  });
});

describe("[PO1] [X11] a client's call", () => {
  test("is denied as a run's is, reaches no machine, and is an entry of the audit with its rule", async () => {
    const lap = await node("lap");
    await set("toolApproval.rules", [deny("lap__Bash", { reason: "not today" }), deny("gsv__ConfigGet", { id: "s" })]);
    for (const [method, params] of [
      ["tool.invoke", { tool: "lap__Bash", args: { command: "id" } }],
      ["tool.invoke", { tool: "lap__Bash" }],
      ["tool.invoke", { tool: "gsv__ConfigGet", args: {} }],
      ["tool.request", { tool: "lap__Bash", args: {}, callId: "mine", sessionKey: "main" }],
    ] as const) {
      const { reason, message } = await admin.refused(method, params);
      expect(reason).toBe("policy.denied");
      expect(message).toMatch(/the owner's rule [rs] /);
    }
    // [PO11] Such a call can not be made, so its rule is not what is wrong with it.
    await set("toolApproval.rules", [deny("gsv__ReadFile", { decision: "ask" })]);
    const wrong = await admin.refused("tool.invoke", { tool: "gsv__ReadFile", args: { file: "notes.txt" } });
    expect([wrong.reason, wrong.message]).toEqual([
      "tool.bad_args",
      "The tool gsv__ReadFile needs `path`. It does not have `file`: correct the name, or leave it out.",
    ]);
    // A tool that no rule denies is handed over, and nothing before it was.
    const id = admin.ask("tool.invoke", { tool: "lap__Read", args: { path: "a" } });
    const { callId, tool } = (await lap.event("tool.invoke")).payload as { callId: string; tool: string };
    expect(tool).toBe("Read");
    await lap.ok("tool.result", { callId, result: "x" });
    expect(await admin.answer(id)).toMatchObject({ ok: true });
    expect(lap.events("tool.invoke")).toHaveLength(1);
    await eventually(async () => {
      const { entries } = await admin.ok<{ entries: AuditEntry[] }>("audit.list", { action: "tool.invoke" });
      expect(entries.filter(({ decision }) => decision === "denied")).toHaveLength(3);
      expect(entries.find(({ decision }) => decision === "denied")).toMatchObject({
        rule: "policy.denied",
        detail: expect.stringMatching(/the owner's rule .+ denies this call/),
      });
    });
  });

  test("that needs the owner's word is denied with the way to allow it", async () => {
    const lap = await node("lap");
    await set("toolApproval.mode", "ask");
    const { reason, message } = await admin.refused("tool.invoke", { tool: "lap__Bash", args: { command: "git status" } });
    expect(reason).toBe("policy.denied");
    expect(message).toMatch(/needs your approval\. It runs a program on lap, which has no sandbox\..*toolApproval\.rules/);
    await set("toolApproval.rules", [
      { id: "status", tool: "*__Bash", decision: "allow", when: [{ path: "command", op: "equals", value: ["git", "status"] }] },
    ]);
    admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "git  status" } });
    expect((await lap.event("tool.invoke")).payload).toMatchObject({ args: { command: "git  status" } });
    expect((await admin.refused("tool.invoke", { tool: "lap__Bash", args: { command: "git status; id" } })).reason).toBe("policy.denied");
  });
});
