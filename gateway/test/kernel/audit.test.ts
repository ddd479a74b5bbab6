import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AuditEntry } from "../../../protocol/gen/types.ts";
import { Audit } from "../../src/kernel/audit-store.ts";
import { client, eventually, fakeSessions, gateway, node, type Peer, seed, sha256 } from "../support/gateway.ts";

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
const list = (params: Record<string, unknown> = {}): Promise<{ entries: AuditEntry[]; count: number; intact: boolean }> =>
  admin.ok("audit.list", params);

test("[S16] who did what, with the arguments only as a digest", async () => {
  const params = { path: "apiKeys.anthropic", value: "sk-ant-canary-0123456789" };
  await admin.ok("config.set", params);
  await admin.refused("config.set", { path: "nope", value: 1 });
  const { entries, intact } = await list();
  expect(intact).toBe(true);
  expect(entries).toMatchObject([
    { action: "config.set", target: "*", decision: "failed", detail: "config.unknown_path" },
    {
      action: "config.set",
      target: "apiKeys.anthropic",
      decision: "allowed",
      argsHash: await sha256(JSON.stringify(params)),
      actor: expect.stringMatching(/^client:client-\d+ token:first-/),
    },
  ]);
  expect(JSON.stringify(entries)).not.toContain("canary");
});

test("[F22] [AU1] every tool call is an entry: the agent's on machines and in the gateway, and those of clients", async () => {
  const lap = await node("lap");
  const args = { command: "echo canary-0123456789" };
  const origin = { kind: "channel", channel: "test", accountId: "default", role: "owner" } as const;
  const call = { callId: "ref/r1/1/0", sessionKey: "agent:main:main", nodeId: "lap", tool: "Bash", args, timeoutMs: 60_000, origin };
  expect(await gateway().dispatchTool(call)).toBe("sent");
  await lap.event("tool.invoke");
  const actor = "session:agent:main:main";
  await gateway().audit({ actor, action: "tool.call", target: "gsv__ConfigGet", decision: "allowed", detail: "ref/r1/1/1", args: {} });
  await admin.ok("tool.invoke", { tool: "gsv__ConfigGet", args: { path: "userTimezone" } });
  // The entries of calls are written beside them.
  await eventually(async () => expect((await list({ action: "tool.call" })).entries).toHaveLength(2));
  const { entries, intact } = await list();
  expect(intact).toBe(true);
  const calls = [
    {
      actor,
      action: "tool.call",
      origin: "channel test owner",
      target: "lap__Bash",
      tool: "lap__Bash",
      decision: "allowed",
      rule: "tool.owner",
      detail: "ref/r1/1/0",
      argsHash: await sha256(JSON.stringify(args)),
    },
    { actor, action: "tool.call", target: "gsv__ConfigGet", decision: "allowed", detail: "ref/r1/1/1", argsHash: await sha256("{}") },
    {
      actor: expect.stringMatching(/^client:/),
      origin: "client",
      action: "tool.invoke",
      target: "gsv__ConfigGet",
      tool: "gsv__ConfigGet",
      decision: "allowed",
    },
  ];
  expect(entries).toEqual(expect.arrayContaining(calls.map((entry) => expect.objectContaining(entry))));
  expect(JSON.stringify(entries)).not.toContain("canary");
});

test("an action that no entry can have is refused with the nearest one; a known action without entries has none", async () => {
  await admin.ok("config.set", { path: "userTimezone", value: "UTC" });
  expect((await list({ action: "config.set" })).entries).toHaveLength(1);
  expect((await list({ action: "tokens.revoke" })).entries).toEqual([]);
  expect(await admin.refused("audit.list", { action: "config.sett" })).toMatchObject({
    reason: "protocol.invalid_params",
    message: "No entry has the action config.sett.",
    hint: expect.stringContaining("Did you mean config.set?"),
  });
  expect((await admin.refused("audit.list", { action: "zzzzzzzzz" })).hint).toContain("config.set");
});

test("[F21] a secret that was typed into a setting's name is not recorded", async () => {
  for (const path of ["sk-ant-canary-0123456789", "apiKeys.sk-ant-canary-0123456789"])
    expect((await admin.refused("config.set", { path, value: "x" })).reason).toMatch(/^config\./);
  const { entries } = await list();
  expect(entries.map(({ target }) => target)).toEqual(["apiKeys.*", "*"]);
  expect(JSON.stringify(entries)).not.toContain("canary");
});

test("[S16] denials are recorded, and a flood of denials is only counted", async () => {
  const lap = await node("lap");
  // One minute of the clock, however slow the machine is.
  const floodAt = Date.now();
  const now = vi.spyOn(Date, "now").mockReturnValue(floodAt);
  for (let at = 0; at < 30; at++) await lap.refused("config.get");
  const denied = (await list({ action: "config.get" })).entries;
  expect(denied).toHaveLength(10);
  expect(denied[0]).toMatchObject({ actor: expect.stringContaining("node:lap"), decision: "denied" });
  now.mockReturnValue(floodAt + 61_000);
  await lap.refused("config.get");
  now.mockRestore();
  expect((await list({ action: "config.get" })).entries[0]?.detail).toContain("20 more");
});

test("[S16] [AU1] a flood of denials of one tool hides no denial of another tool or by another rule", async () => {
  await runInDurableObject(gateway(), async (_gateway, { storage }) => {
    const audit = new Audit(storage, { now: () => 1_000 });
    const denied = { actor: "session:a", action: "tool.call", decision: "denied" } as const;
    for (let at = 0; at < 30; at++) audit.append({ ...denied, rule: "mode:plan", target: "gsv__Remember" });
    audit.append({ ...denied, rule: "mode:plan", target: "lap__Bash" });
    audit.append({ ...denied, rule: "rule:no-rm", target: "gsv__Remember" });
  });
  const targets = (await list({ action: "tool.call" })).entries.map(({ target, rule }) => `${target} ${rule}`);
  expect(targets).toHaveLength(12);
  expect(targets.slice(0, 2)).toEqual(["gsv__Remember rule:no-rm", "lap__Bash mode:plan"]);
});

test("[S16] each entry's hash covers the previous entry, so changes and removals are detected", async () => {
  for (let at = 0; at < 5; at++) await admin.ok("config.set", { path: "limits.stepsPerRun", value: at + 1 });
  const { entries } = await list();
  for (const [at, entry] of entries.entries()) expect(entry.prevHash).toBe(entries[at + 1]?.hash ?? "0".repeat(64));
  for (const harm of ["UPDATE audit SET actor = 'forged' WHERE seq = 3", "DELETE FROM audit WHERE seq = 3"]) {
    await runInDurableObject(gateway(), (_gateway, state) => state.storage.sql.exec(harm));
    expect((await list()).intact, harm).toBe(false);
  }
});

test("pages", async () => {
  for (let at = 0; at < 5; at++) await admin.ok("config.set", { path: "limits.stepsPerRun", value: at + 1 });
  const first = await list({ limit: 2 });
  expect(first.entries.map(({ seq }) => seq)).toEqual([5, 4]);
  expect(first.count).toBe(5);
  expect((await list({ limit: 10, beforeSeq: 4 })).entries.map(({ seq }) => seq)).toEqual([3, 2, 1]);
});

test("[S16] entries are pruned after 90 days, and the rest is still a chain", async () => {
  await runInDurableObject(gateway(), async (_gateway, state) => {
    let now = 1_000_000;
    const audit = new Audit(state.storage, { now: () => now });
    for (let day = 0; day < 100; day++) {
      now += 86_400_000;
      audit.append({ actor: "a", action: "b", decision: "allowed" });
    }
    const { count: before } = await audit.list(200, undefined, undefined);
    audit.setCopied({ seq: 100 });
    await audit.prune(now);
    const { count, intact } = await audit.list(200, undefined, undefined);
    expect(before).toBe(100);
    // And the entry that names the cut.
    expect(count).toBe(92);
    expect(intact).toBe(true);
    expect(audit.nextPrune()).toBeGreaterThan(now);
  });
});

test("entries of sessions are part of it", async () => {
  await gateway().audit({ actor: "session:agent:main:main", action: "tool.run", target: "lap__Bash", decision: "allowed" });
  expect((await list()).entries).toMatchObject([{ action: "tool.run", actor: "session:agent:main:main" }]);
});
