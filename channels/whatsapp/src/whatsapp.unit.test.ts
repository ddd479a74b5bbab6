/** The platform without a WhatsApp server: retries, stops and requests that cannot be met. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Boom } from "@hapi/boom";
import type { PlatformHost } from "../../kit/src/platform.ts";
import { AuthStore } from "./auth-store.ts";
import { reasonOf } from "./link.ts";
import { WhatsApp } from "./whatsapp.ts";

function setUp(linked: boolean) {
  const values = new Map<string, string>();
  const timers: { readonly ms: number; readonly work: () => void }[] = [];
  const watchers = new Set<() => void>();
  const host: PlatformHost = {
    accountId: "default",
    now: () => Date.now(),
    kv: {
      get: <T>(name: string) => {
        const text = values.get(name);
        return text === undefined ? undefined : (JSON.parse(text) as T);
      },
      put: (name, value) => void values.set(name, JSON.stringify(value)),
      delete: (name) => void values.delete(name),
      keys: (prefix) => [...values.keys()].filter((name) => name.startsWith(prefix)),
    },
    transaction: (work) => work(),
    take: () => true,
    readFile: async () => null,
    changed: () => {
      for (const watcher of watchers) watcher();
    },
    after: (ms, work) => {
      const timer = { ms, work };
      timers.push(timer);
      return () => void timers.splice(timers.indexOf(timer), 1);
    },
    log: () => {},
  };
  if (linked) {
    const store = new AuthStore(host);
    store.creds.me = { id: "15550001111:7@s.whatsapp.net", lid: "900000001111@lid" };
    store.creds.account = { details: new Uint8Array([1]) };
    store.saveCreds();
  }
  // No server listens on port 1.
  const platform = new WhatsApp(host, { url: "ws://127.0.0.1:1/ws/chat", selfChat: false, random: () => 0.5 });
  const mode = async (wished: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (platform.status().mode !== wished) return;
        watchers.delete(look);
        resolve();
      };
      watchers.add(look);
      look();
    });
  return { platform, timers, mode, host };
}

test("[P12] an unreachable server is retried later; a stop ends the retries, also a timer that is already set", async () => {
  const { platform, timers, mode } = setUp(true);
  await platform.ensureConnected();
  await mode("waiting");
  const status = platform.status();
  assert.deepEqual([status.connected, status.authenticated, status.extra?.["phone"]], [false, true, "+15550001111"]);
  assert.match(status.error ?? "", /reconnecting/);
  const retry = timers.find(({ ms }) => ms === 2_020);
  assert(retry, JSON.stringify(timers.map(({ ms }) => ms)));
  await platform.disconnect();
  retry.work();
  await platform.disconnect();
  assert.equal(platform.status().mode, "idle");
});

test("[P12] a network failure has no WhatsApp status code", () => {
  const broken = new Boom("WebSocket Error (the connection broke)", { statusCode: 500, data: new Error("the connection broke") });
  assert.equal(reasonOf(broken), undefined);
  assert.equal(reasonOf(new Boom("Stream Errored", { statusCode: 515, data: { tag: "stream:error" } })), 515);
  assert.equal(reasonOf(new Boom("Connection Failure", { statusCode: 401, data: { reason: "401" } })), 401);
  for (const other of [undefined, new Error("x"), { output: { statusCode: "401" } }, null]) assert.equal(reasonOf(other), undefined);
});

test("[P12] a permanent stop survives a restart until a person starts it; nothing stays in memory meanwhile", async () => {
  const { platform, host, mode } = setUp(true);
  assert.equal(platform.isAtRest(), false);
  host.kv.put("stopped", "WhatsApp refuses this number (403).");
  const next = new WhatsApp(host, { url: "ws://127.0.0.1:1/ws/chat", selfChat: false, random: () => 0.5 });
  await next.ensureConnected();
  assert.deepEqual([next.status().mode, next.status().error, next.isAtRest()], ["stopped", "WhatsApp refuses this number (403).", true]);
  await next.ensureConnected(true);
  assert.deepEqual([next.isAtRest(), host.kv.get("stopped")], [false, undefined]);
  await next.disconnect();
  await mode("idle");
});

test("[P12] without a linked device there is no socket, and the status says so", async () => {
  const { platform } = setUp(false);
  await platform.ensureConnected();
  assert.deepEqual([platform.status().mode, platform.status().authenticated, platform.isConnected()], ["idle", false, false]);
  assert.equal(platform.isAtRest(), true);
});

test("[P9] without a connection nothing is sent and nothing is lost", async () => {
  const { platform } = setUp(true);
  const part = {
    partId: "d/0",
    nonce: "N",
    peer: { kind: "dm", id: "15550002222@s.whatsapp.net" },
    text: "x",
    attempt: 1,
    firstTriedAt: 0,
  } as const;
  assert.equal((await platform.send(part)).kind, "retry");
  await platform.typing(part.peer, true);
  await platform.react(part.peer, "A1", undefined, "👍");
  platform.settled({ receipt: { remoteJid: part.peer.id, id: "A1" } });
  await platform.acknowledged();
  assert.equal(platform.status().extra?.["receiptsWaiting"], 1);
});

test("[P12] a login that cannot reach WhatsApp says so; an invalid number is refused first", async () => {
  const { platform } = setUp(false);
  const failed = await platform.login({ force: false });
  assert.deepEqual([failed.state, failed.qr], ["failed", undefined]);
  for (const phone of ["", "abc", "123", "+31 6x", "1".repeat(20)])
    assert.match((await platform.login({ force: false, phone })).message, /not a phone number/, phone);
});
