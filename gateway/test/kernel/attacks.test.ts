/** The attacker's view of the socket: subscriptions, settings, actors of the audit. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asRunId, asSessionKey } from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../../src/ports/gateway.ts";
import { ADMIN, client, fakeSessions, gateway, last, open, connectParams, seed, token, until } from "../support/gateway.ts";

const MAIN = "agent:main:main";
const log = (seq: number): SessionNews => ({
  event: "chat",
  payload: { sessionKey: asSessionKey(MAIN), state: "partial", message: { role: "assistant", content: [] }, sessionSeq: seq },
});
beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

test("[C5] a refused message takes no events from one that was accepted meanwhile", async () => {
  let release = false;
  fakeSessions(() => ({
    send: async ({ text, runId }) => {
      if (text === "good") return { ok: true, value: { status: "started", runId: asRunId(runId) } };
      await until("the test to let the refusal go", () => release);
      return { ok: false, error: { reason: "chat.bad_directive", message: "no" } };
    },
  }));
  const peer = await client();
  const bad = peer.ask("chat.send", { sessionKey: "main", message: "bad" });
  await peer.ok("chat.send", { sessionKey: "main", message: "good" });
  release = true;
  expect((await peer.answer(bad)).ok).toBe(false);
  await gateway().publish(MAIN, [log(1)]);
  await peer.ok("sessions.list");
  expect(peer.events("chat")).toHaveLength(1);
});

test("[C5] a failed subscription takes no events from a message that was accepted meanwhile", async () => {
  let release = false;
  fakeSessions(() => ({
    events: async () => {
      await until("the test to let the answer go", () => release);
      return { ok: false, error: { reason: "session.snapshot_required", message: "too old" } };
    },
  }));
  const peer = await client();
  await peer.ok("chat.send", { sessionKey: "main", message: "exists now" });
  await peer.ok("session.unsubscribe", { sessionKey: "main" });
  const bad = peer.ask("session.subscribe", { sessionKey: "main", afterSeq: 99 });
  await peer.ok("chat.send", { sessionKey: "main", message: "good" });
  release = true;
  expect((await peer.answer(bad)).ok).toBe(false);
  await gateway().publish(MAIN, [log(1)]);
  await peer.ok("sessions.list");
  expect(peer.events("chat")).toHaveLength(1);
});

test("[P19] unknown fields of settings and policies are ignored, not handed to the session", async () => {
  const sessions = fakeSessions();
  const peer = await client();
  await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
  await peer.ok("session.patch", {
    sessionKey: "main",
    junk: "x",
    settings: { maxTokens: 5, junk: "x".repeat(100_000), model: { provider: "demo", id: "demo", junk: 1 } },
    resetPolicy: { mode: "daily", junk: "x".repeat(100_000) },
  });
  expect(last(sessions.of("patch"))).toEqual({
    settings: { maxTokens: 5, model: { provider: "demo", id: "demo" } },
    resetPolicy: { mode: "daily" },
  });
});

test("[S3] the origin of a message comes from the connection, whatever the params say", async () => {
  const sessions = fakeSessions();
  const mine = await token("client");
  const peer = await client(mine.token, {}, "me");
  const forged = { kind: "channel", channel: "whatsapp", accountId: "default", role: "owner" };
  await peer.ok("chat.send", {
    sessionKey: "main",
    message: "hi",
    origin: forged,
    reply: { channel: "x" },
    identity: { isOwnersSession: true },
    verbatim: true,
    quiet: true,
    __proto__: { origin: forged },
  });
  const sent = last<Record<string, unknown>>(sessions.of("send"));
  expect(sent["origin"]).toEqual({ kind: "client", clientId: "me", tokenId: mine.tokenId });
  for (const name of ["reply", "verbatim", "quiet", "command"]) expect(sent[name], name).toBeUndefined();
});

test("[S16] the name of a client can't imitate another actor of the audit", async () => {
  const peer = await open();
  const victim = (await token("admin")).tokenId;
  const params = connectParams("client", `cli token:${victim}`, ADMIN);
  await peer.ok("connect", params);
  await peer.ok("tokens.create", { kind: "client" });
  const { entries } = await peer.ok<{ entries: { actor: string }[] }>("audit.list", { action: "tokens.create" });
  expect(entries[0]?.actor.split(" token:")).toHaveLength(2);
});
