import { describe, expect, test } from "vitest";
import type { ApprovalEntry, AuditListResult } from "../../../../protocol/gen/types.ts";
import type { WaitingQuestion } from "../../../src/ports/approvals.ts";
import { client, connectParams, node, open, token } from "../../support/gateway.ts";
import { asked, begin, peer, report } from "./support.ts";

begin();
let serial = 0;
const newKey = (): string => `agent:main:cli:dm:ap${++serial}`;
const question = (code: string, more: Partial<WaitingQuestion> = {}): WaitingQuestion => ({
  code,
  callId: "ref/r1/1/0",
  runId: "run-1",
  name: "lap__Bash",
  target: { kind: "node", nodeId: "lap" },
  hash: "a".repeat(64),
  rule: "rule:no-rm",
  why: "It runs a program.",
  text: "rm -rf build",
  bytes: 12,
  createdAt: 1,
  expiresAt: 2,
  ...more,
});
const list = async (sessionKey?: string): Promise<readonly ApprovalEntry[]> =>
  (await peer.ok<{ approvals: ApprovalEntry[] }>("approval.list", sessionKey === undefined ? {} : { sessionKey })).approvals;
const codes = async (sessionKey: string): Promise<readonly string[]> => (await list(sessionKey)).map(({ code }) => code);

describe("[AP9] the index", () => {
  test("has what sessions report, each client is told once, and an older report changes nothing", async () => {
    const key = newKey();
    await report(key, 1, [question("K7Q2A"), question("ACDEF", { callId: "ref/r1/1/1" })]);
    await report(key, 1, [question("K7Q2A"), question("ACDEF", { callId: "ref/r1/1/1" })]);
    expect((await codes(key)).toSorted()).toEqual(["ACDEF", "K7Q2A"]);
    await report(key, 2, [question("ACDEF")], [{ code: "K7Q2A", outcome: "allowed", by: "client:me", at: 5 }]);
    await report(key, 1, [question("K7Q2A")]);
    expect(await codes(key)).toEqual(["ACDEF"]);
    const [entry] = await list(key);
    expect(entry).toMatchObject({ sessionKey: key, tool: "lap__Bash", nodeId: "lap", text: "rm -rf build", textBytes: 12 });
    await peer.event("approval", ({ sessionKey, state }) => sessionKey === key && state === "ended");
    const news = peer.events("approval").map(({ payload }) => payload as { code: string; state: string; sessionKey: string });
    expect(news.filter(({ sessionKey }) => sessionKey === key).map(({ code, state }) => `${code} ${state}`)).toEqual([
      "K7Q2A waiting",
      "ACDEF waiting",
      "K7Q2A ended",
    ]);
  });
});

describe("an answer", () => {
  test("[AP3] [AP11] goes to the session that asked, with the hash of what was shown, and is audited with code and decision", async () => {
    const key = newKey();
    await report(key, 1, [question("M3N4P")]);
    expect(await peer.ok("approval.resolve", { code: "m3n4p", decision: "deny", word: "not today" })).toEqual({ outcome: "allowed" });
    const [sent] = asked.filter(({ what, key: to }) => what === "answerApproval" && to === key);
    expect(sent?.args[0]).toMatchObject({ code: "M3N4P", answer: "deny", word: "not today", hash: "a".repeat(64) });
    const { entries } = await peer.ok<AuditListResult>("audit.list", { action: "approval.resolve" });
    expect(entries[0]).toMatchObject({ target: "m3n4p", decision: "allowed", detail: "deny: allowed" });
    expect(entries[0]?.actor).toMatch(/^client:client-\d+ token:/);
  });
  test("[AU1] with which the owner denied a call is `denied` in the audit, each one", async () => {
    for (let at = 0; at < 30; at++) {
      const code = `W${"ACDEFGHJKM"[at % 10]}${"XYZ"[Math.floor(at / 10)]}AA`;
      const key = newKey();
      await report(key, 1, [], [{ code, outcome: "denied", by: "client:me", at: 5 }]);
      await peer.ok("approval.resolve", { code: code.toLowerCase(), decision: "deny" });
    }
    const { entries } = await peer.ok<AuditListResult>("audit.list", { action: "approval.resolve", limit: 100 });
    const denied = entries.filter(({ detail }) => detail === "deny: denied");
    expect(denied).toHaveLength(30);
    expect(denied[29]).toMatchObject({ target: "waxaa", decision: "denied", rule: "approval:WAXAA" });
  });
  test("[AP3] [AP11] that came after the run was stopped has allowed nothing, and the audit says so", async () => {
    const key = newKey();
    await report(key, 1, [], [{ code: "TRRZ4", outcome: "withdrawn", at: 5 }]);
    await peer.ok("approval.resolve", { code: "TRRZ4", decision: "allow" });
    const { entries } = await peer.ok<AuditListResult>("audit.list", { action: "approval.resolve", limit: 1 });
    expect(entries[0]).toMatchObject({ target: "TRRZ4", decision: "failed", detail: "allow: withdrawn" });
  });
  test("[AP3] after the end it gets the result of the first, without asking the session", async () => {
    const key = newKey();
    await report(key, 1, [], [{ code: "PQRTW", outcome: "denied", by: "client:me", at: 5 }]);
    const before = asked.length;
    expect(await peer.ok("approval.resolve", { code: "PQRTW", decision: "allow" })).toEqual({
      outcome: "denied",
      by: "client:me",
      endedAt: 5,
    });
    expect(asked.slice(before).filter(({ what }) => what === "answerApproval")).toEqual([]);
  });
  test("[SP10] to a question about a limit says so, and it cannot be allowed for longer", async () => {
    const key = newKey();
    await report(key, 1, [question("HJKMN", { name: "limit", target: { kind: "native" }, isAboutLimit: true, rule: "limits.runCostUsd" })]);
    const longer = await peer.refused("approval.resolve", { code: "HJKMN", decision: "allow_1h" });
    expect(longer).toMatchObject({
      reason: "approval.once_only",
      message: "A question about a limit is answered for its run only.",
      hint: "For good, raise the limit: `limits.runCostUsd`.",
    });
    expect(await peer.ok("approval.resolve", { code: "HJKMN", decision: "allow" })).toEqual({ outcome: "allowed", limit: true });
  });
  test("[P-12] [P-15] [AP4] a wrong code is refused, and the same code of two conversations needs the name of one", async () => {
    const [one, two] = [newKey(), newKey()];
    await report(one, 1, [question("TWXYZ")]);
    await report(two, 1, [question("TWXYZ")]);
    for (const code of ["ZZZZZ", "ok", "", "%"])
      expect((await peer.refused("approval.resolve", { code: code || " ", decision: "allow" })).reason).toBe("approval.not_found");
    expect((await peer.refused("approval.resolve", { code: "TWXYZ", decision: "allow" })).reason).toBe("approval.ambiguous");
    await peer.ok("approval.resolve", { code: "TWXYZ", decision: "allow", sessionKey: two });
    expect(asked.filter(({ what, key }) => what === "answerApproval" && key === one)).toEqual([]);
  });
  test("[P-06] [P-07] [P-08] [AP11] [S14] nodes, channels and read-only clients may neither answer nor list", async () => {
    const key = newKey();
    await report(key, 1, [question("GHJKM")]);
    const readOnly = await client((await token("client-ro")).token);
    const machine = await node("lap");
    const channel = await open();
    await channel.ok(
      "connect",
      connectParams("channel", "test", (await token("channel", { channel: "test" })).token, {
        client: { id: "test", version: "1", platform: "t", mode: "channel", channel: "test" },
      }),
    );
    for (const other of [readOnly, machine, channel]) {
      expect((await other.refused("approval.resolve", { code: "GHJKM", decision: "allow" })).reason).toBe("auth.forbidden");
      expect((await other.refused("approval.list", {})).reason).toBe("auth.forbidden");
    }
    expect(asked.filter(({ what, key: to }) => what === "answerApproval" && to === key)).toEqual([]);
    const writer = await client((await token("client")).token);
    await writer.ok("approval.resolve", { code: "GHJKM", decision: "allow" });
  });
  test("[P-09] [AP11] [S14] without a token, and with a token that was revoked, no one may answer", async () => {
    const key = newKey();
    await report(key, 1, [question("GHJKN")]);
    const unknown = await open();
    expect((await unknown.refused("approval.resolve", { code: "GHJKN", decision: "allow" })).reason).toMatch(/^(?:auth|protocol)\./);
    const { token: secret, tokenId } = await token("client");
    const revoked = await client(secret);
    await peer.ok("tokens.revoke", { tokenId });
    await revoked.ended();
    await expect(client(secret)).rejects.toThrow();
    expect(asked.filter(({ what, key: to }) => what === "answerApproval" && to === key)).toEqual([]);
  });
});
