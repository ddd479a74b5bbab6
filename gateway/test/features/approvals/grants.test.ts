/** Grants in the gateway: made by an answer, listed, used, revoked; and the rule that "always" saves. */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import type { ApprovalEntry, ApprovalGrant, AuditListResult } from "../../../../protocol/gen/types.ts";
import type { ApprovalReport, WaitingQuestion } from "../../../src/ports/approvals.ts";
import type { GrantChoice } from "../../../src/ports/grants.ts";
import { client, gateway, node, port, token } from "../../support/gateway.ts";
import { asked, begin, peer, report } from "./support.ts";

begin();
let serial = 0;
const newKey = (): string => `agent:main:cli:dm:gr${++serial}`;
const scope = (program: string) => ({
  agentId: "main",
  tool: "Bash",
  nodeId: "lap",
  what: { kind: "commands" as const, sandbox: "workspace" as const, folder: "", commands: [{ program }] },
});
const question = (code: string, program = "python3", more: Partial<WaitingQuestion> = {}): WaitingQuestion => ({
  code,
  callId: `ref/r1/1/${code}`,
  runId: "run-1",
  name: "lap__Bash",
  target: { kind: "node", nodeId: "lap" },
  hash: code.padEnd(64, "0"),
  rule: "mode:ask",
  why: "It runs a program.",
  text: `${program} a`,
  bytes: 9,
  offer: { scope: scope(program), sessionId: "s1" },
  createdAt: 1,
  expiresAt: 2,
  ...more,
});
const allowed = (code: string, choice: GrantChoice): ApprovalReport["ended"][number] => ({
  code,
  outcome: "allowed",
  by: "client:me",
  choice,
  at: 5,
});
const grants = async (): Promise<readonly ApprovalGrant[]> => (await peer.ok<{ grants: ApprovalGrant[] }>("approval.grants")).grants;
const made = async (code: string): Promise<ApprovalGrant | undefined> => (await grants()).find((grant) => grant.code === code);
const entries = async (action: string) => (await peer.ok<AuditListResult>("audit.list", { action })).entries;
const held = async (sessionKey: string): Promise<readonly string[]> =>
  ((await port().runContext(sessionKey, undefined))?.grants ?? []).map(({ id }) => id);

describe("[GR1] an answer", () => {
  test("with a choice goes to the session with it; a question lists its choices with their exact scope", async () => {
    const key = newKey();
    await report(key, 1, [question("K7Q2A")]);
    const { approvals } = await peer.ok<{ approvals: ApprovalEntry[] }>("approval.list", { sessionKey: key });
    const text = "`python3` with any arguments, in the workspace of lap, in the sandbox workspace, by the agent main";
    expect(approvals[0]?.choices).toEqual(["allow_session", "allow_1h", "allow_8h", "allow_30d"].map((answer) => ({ answer, text })));
    await peer.ok("approval.resolve", { code: "K7Q2A", decision: "allow_8h" });
    const [sent] = asked.filter(({ what, key: to }) => what === "answerApproval" && to === key);
    expect(sent?.args[0]).toMatchObject({ code: "K7Q2A", answer: "allow", choice: "8h", hash: "K7Q2A".padEnd(64, "0") });
    // The grant comes with the session's report, and not with the answer.
    expect(await made("K7Q2A")).toBeUndefined();
  });
  test("[P-21] that is not offered is refused, and changes nothing", async () => {
    const key = newKey();
    const { offer: _offer, ...plain } = question("M3N4P");
    await report(key, 1, [plain, question("M3N4Q")]);
    for (const [code, decision] of [
      ["M3N4P", "allow_8h"],
      ["M3N4Q", "allow_always"],
    ])
      expect((await peer.refused("approval.resolve", { code, decision })).reason).toBe("approval.once_only");
    expect(asked.filter(({ what, key: to }) => what === "answerApproval" && to === key)).toEqual([]);
  });
  test("grants once: a report that comes again, and an end without a choice, make no grant", async () => {
    const key = newKey();
    await report(key, 1, [question("ACDEF"), question("ACDEG")]);
    const ended = [allowed("ACDEF", "8h"), { code: "ACDEG", outcome: "allowed", by: "client:me", at: 5 } as const];
    await report(key, 2, [], ended);
    await report(key, 2, [], ended);
    await report(key, 3, [], ended);
    expect((await grants()).filter(({ code }) => code.startsWith("ACDE")).map(({ code }) => code)).toEqual(["ACDEF"]);
    const grant = await made("ACDEF");
    expect(grant).toMatchObject({ agentId: "main", by: "client:me", uses: 0 });
    expect((grant?.expiresAt ?? 0) - (grant?.createdAt ?? 0)).toBe(8 * 3_600_000);
    expect((await entries("approval.grant"))[0]).toMatchObject({
      actor: "client:me",
      decision: "allowed",
      detail: `ACDEF grant:${grant?.id} 8h`,
    });
  });
  test("[GR6] also answers the other questions that it covers, and no other", async () => {
    const [one, two] = [newKey(), newKey()];
    await report(one, 1, [question("GHJKM"), question("GHJKN"), question("GHJKP", "ruby")]);
    await report(two, 1, [question("GHJKQ")]);
    await report(one, 2, [question("GHJKN"), question("GHJKP", "ruby")], [allowed("GHJKM", "session")]);
    const grant = await made("GHJKM");
    await vi.waitUntil(() => asked.some(({ args }) => (args[0] as { code?: string }).code === "GHJKN"));
    const answered = asked.filter(({ what, key }) => what === "answerApproval" && (key === one || key === two)).map(({ args }) => args[0]);
    expect(answered).toMatchObject([{ code: "GHJKN", answer: "allow", by: `grant:${grant?.id}`, hash: "GHJKN".padEnd(64, "0") }]);
  });
});

describe("[GR5] a grant", () => {
  test("belongs to its agent, one for the conversation to it alone; use is counted, and revoked it holds for no call", async () => {
    const [key, other] = [newKey(), newKey()];
    await report(key, 1, [question("PQRTW"), question("PQRTX")]);
    await report(key, 2, [], [allowed("PQRTW", "session"), allowed("PQRTX", "30d")]);
    const [own, wide] = [(await made("PQRTW"))?.id ?? "", (await made("PQRTX"))?.id ?? ""];
    expect((await held(key)).toSorted()).toEqual(expect.arrayContaining([own, wide]));
    expect(await held(other)).toContain(wide);
    expect(await held(other)).not.toContain(own);
    expect(await port().useGrants(other, [own, wide, "none"])).toEqual([wide]);
    expect(await port().useGrants(key, [own])).toEqual([own]);
    expect(await made("PQRTW")).toMatchObject({ uses: 1, sessionKey: key });
    const before = (await port().runContext(key, undefined))?.version;
    expect(await peer.ok("approval.revoke", { id: own })).toEqual({ ok: true, revoked: true });
    expect(await peer.ok("approval.revoke", { id: own })).toEqual({ ok: true, revoked: false });
    expect(await port().useGrants(key, [own])).toEqual([]);
    expect((await port().runContext(key, before))?.version).not.toBe(before);
    expect(await held(key)).not.toContain(own);
    expect((await entries("approval.revoke"))[0]).toMatchObject({ target: own, decision: "allowed" });
    expect((await peer.refused("approval.revoke", { id: "nothing" })).reason).toBe("approval.grant_not_found");
  });
  test("[GR7] for a conversation ends with it, also when the answer is reported after the reset", async () => {
    const key = newKey();
    const [one, two] = [{ conversation: { sessionId: "s1" } }, { conversation: { sessionId: "s2" } }];
    await report(key, 1, [question("RTWXA"), question("RTWXC"), question("RTWXD")], [], one);
    await report(key, 2, [question("RTWXD")], [allowed("RTWXA", "session"), allowed("RTWXC", "8h")], one);
    const [own, wide] = [(await made("RTWXA"))?.id ?? "", (await made("RTWXC"))?.id ?? ""];
    expect(await held(key)).toEqual(expect.arrayContaining([own, wide]));
    const before = (await port().runContext(key, undefined))?.version;
    await report(key, 3, [], [allowed("RTWXD", "session")], two);
    expect([await made("RTWXA"), await made("RTWXD"), (await made("RTWXC"))?.id]).toEqual([undefined, undefined, wide]);
    expect((await port().runContext(key, before))?.version).not.toBe(before);
    expect(await held(key)).not.toContain(own);
    expect(await port().useGrants(key, [own])).toEqual([]);
    expect(await peer.ok("approval.revoke", { id: own })).toEqual({ ok: true, revoked: false });
  });
  test("[AP11] machines and read-only clients neither list nor revoke", async () => {
    const readOnly = await client((await token("client-ro")).token);
    const machine = await node("lap");
    for (const other of [readOnly, machine]) {
      expect((await other.refused("approval.grants")).reason).toBe("auth.forbidden");
      expect((await other.refused("approval.revoke", { id: "x" })).reason).toBe("auth.forbidden");
    }
  });
  test("whose time is over holds no longer, and is listed no longer", async () => {
    const key = newKey();
    await report(key, 1, [question("TWXYZ")]);
    await report(key, 2, [], [allowed("TWXYZ", "1h")]);
    const id = (await made("TWXYZ"))?.id ?? "";
    await runInDurableObject(gateway(), (_object, state) => {
      state.storage.sql.exec("UPDATE grants SET expires_at = 5 WHERE id = ?", id);
    });
    expect(await port().useGrants(key, [id])).toEqual([]);
    expect(await made("TWXYZ")).toBeUndefined();
  });
});

test("[GR1] [PO6] always saves the rule that was shown, after the call was allowed", async () => {
  const key = newKey();
  const always = {
    tool: "lap__Bash",
    decision: "allow" as const,
    when: [{ path: "command", op: "equals" as const, value: ["git", "status"] }],
  };
  await report(key, 1, [question("WXYZA", "git", { offer: { scope: scope("git"), sessionId: "s1", always } })]);
  const { approvals } = await peer.ok<{ approvals: ApprovalEntry[] }>("approval.list", { sessionKey: key });
  expect(approvals[0]?.choices?.at(-1)).toEqual({
    answer: "allow_always",
    text: "a rule that allows `lap__Bash` where command is `git status`, in the folder of the workspace, in the sandbox of the machine, or without one where it has none, for every agent and in each of your own conversations, in each mode, until you remove it; `gsv approval grants` lists it",
  });
  await peer.ok("approval.resolve", { code: "WXYZA", decision: "allow_always" });
  expect((await peer.ok<{ value?: unknown }>("config.get", { path: "toolApproval.rules" })).value).toBeUndefined();
  await report(key, 2, [], [allowed("WXYZA", "always")]);
  const { value: rules } = await peer.ok<{ value: { id: string }[] }>("config.get", { path: "toolApproval.rules" });
  expect(rules).toMatchObject([{ ...always, reason: "Your answer to WXYZA" }]);
  expect((await peer.ok<{ rules: unknown }>("approval.grants")).rules).toEqual([
    {
      id: rules[0]?.id,
      setting: "toolApproval.rules.0",
      text: "`lap__Bash` where command is `git status`, in the folder of the workspace, in the sandbox of the machine, or without one where it has none",
    },
  ]);
  expect((await entries("approval.grant"))[0]?.detail).toBe(`WXYZA rule ${rules[0]?.id}`);
  await peer.ok("config.unset", { path: "toolApproval.rules" });
});

test("[GR8] a rule that allows is removed by its id, as a change of the configuration; another one is not", async () => {
  const rules = [
    { id: "no-rm", tool: "*__Bash", decision: "deny", when: [{ path: "command", op: "startsWith", value: ["rm"] }] },
    { id: "reads", tool: "*__Read", decision: "allow" },
    { id: "lists", tool: "*__List", decision: "allow" },
  ];
  await peer.ok("config.set", { path: "toolApproval.rules", value: rules });
  const stored = async () => (await peer.ok<{ value?: { id: string }[] }>("config.get", { path: "toolApproval.rules" })).value;
  for (const [id, message] of [
    ["rule:none", /There is no rule with this id/],
    ["rule:", /There is no rule with this id/],
    ["rule:no-rm", /does not allow calls/],
  ] as const)
    expect(await peer.refused("approval.revoke", { id })).toMatchObject({
      reason: "approval.grant_not_found",
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/`gsv /),
    });
  expect(await stored()).toHaveLength(3);
  const before = (await port().runContext(newKey(), undefined))?.version;
  expect(await peer.ok("approval.revoke", { id: "rule:reads" })).toEqual({ ok: true, revoked: true });
  expect((await stored())?.map(({ id }) => id)).toEqual(["no-rm", "lists"]);
  expect((await port().runContext(newKey(), before))?.version).not.toBe(before);
  expect((await entries("config.unset"))[0]).toMatchObject({
    actor: expect.stringMatching(/^client:/),
    origin: "client",
    target: "toolApproval.rules.1",
    decision: "allowed",
  });
  expect((await entries("approval.revoke"))[0]).toMatchObject({ target: "rule:reads", decision: "allowed" });
  expect((await peer.refused("approval.revoke", { id: "rule:reads" })).reason).toBe("approval.grant_not_found");
  await peer.ok("config.set", { path: "toolApproval.rules", value: [rules[2]] });
  await peer.ok("approval.revoke", { id: "rule:lists" });
  expect(await stored()).toBeUndefined();
});
