/** Sessions and agents are deleted with all that is theirs, also after a failure or a crash in the middle: real objects, demo model. */
import { env } from "cloudflare:workers";
import { abortAllDurableObjects, reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { parts } from "../../../src/app/compose.ts";
import type { SessionPort, SessionSend } from "../../../src/ports/session.ts";
import { client, gateway, type Peer, seed, eventually } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

let peer: Peer;
let key: string;
let serial = 0;
beforeEach(async () => {
  await reset();
  await seed();
  peer = await client();
  key = `agent:main:cli:dm:d${++serial}`;
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function says(text: string, to = key): Promise<void> {
  const runId = `run-${++serial}`;
  expect(await peer.ok("chat.send", { sessionKey: to, message: `say ${text}`, runId })).toMatchObject({ status: "started" });
  await peer.event("chat", (payload) => payload["runId"] === runId && payload["state"] === "final");
}
const refOf = (of: string): Promise<string> =>
  runInDurableObject(gateway(), (_gateway, { storage }) =>
    String(storage.sql.exec("SELECT ref FROM sessions WHERE key = ?", of).toArray()[0]?.["ref"]),
  );
const stored = async (prefix: string): Promise<readonly string[]> =>
  (await env.STORAGE.list({ prefix })).objects.map((object) => object.key);
const listed = async (): Promise<readonly string[]> =>
  (await peer.ok<{ sessions: { sessionKey: string }[] }>("sessions.list")).sessions.map(({ sessionKey }) => sessionKey);
const found = async (query: string): Promise<number> => (await peer.ok<{ hits: unknown[] }>("search.query", { query })).hits.length;
const open = (): Promise<number> =>
  runInDurableObject(gateway(), (_gateway, { storage }) => storage.sql.exec("SELECT key FROM session_deletions").toArray().length);
/** Everything in memory is lost, at once and everywhere; then the gateway's alarm fires. */
async function crashAndAlarm(): Promise<void> {
  await abortAllDurableObjects();
  const now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now + 60_000);
  await runInDurableObject(gateway(), (object) => object.alarm());
  peer = await client();
}
/** From now on this method of sessions fails. The gateway forgets its stubs of them, as after a wake. */
async function failing(name: keyof SessionPort): Promise<void> {
  const real = parts.session;
  vi.spyOn(parts, "session").mockImplementation(
    (of, sessionKey) =>
      new Proxy(real(of, sessionKey), {
        get(target, member) {
          if (member === name) return () => Promise.reject(new Error("it does not answer"));
          const method: unknown = Reflect.get(target, member, target);
          return typeof method === "function" ? (...args: unknown[]): unknown => Reflect.apply(method, target, args) : method;
        },
      }),
  );
  await evict(gateway(), { webSockets: "hibernate" });
}

describe("[SD1] a deleted session", () => {
  test("leaves no message, transcript, result, file or search entry, but its audit; the name begins a new session", async () => {
    await says("the zebra is striped");
    await peer.ok("session.reset", { sessionKey: key });
    await says("the okapi is shy");
    const other = `${key}-other`;
    await says("the zebra of others", other);
    await env.STORAGE.put(`agents/main/results/${await refOf(key)}-r1-1-0.txt`, "long");
    await env.STORAGE.put(`agents/main/results/${await refOf(other)}-r1-1-0.txt`, "long");
    await env.STORAGE.put(`media/${key}/${crypto.randomUUID()}.png`, "picture");
    expect(await stored("agents/main/sessions/")).toHaveLength(1);
    expect(await found("okapi")).toBeGreaterThan(0);
    const zebras = await found("zebra");

    expect(await peer.ok("session.delete", { sessionKey: key })).toEqual({ ok: true, sessionKey: key, done: true, archives: 1, files: 1 });
    expect((await peer.refused("session.get", { sessionKey: key })).reason).toBe("session.not_found");
    expect(await listed()).toEqual([other]);
    expect(await stored("agents/main/sessions/")).toEqual([]);
    expect(await stored("agents/main/results/")).toEqual([`agents/main/results/${await refOf(other)}-r1-1-0.txt`]);
    expect(await stored(`media/${key}/`)).toEqual([]);
    expect(await found("okapi")).toBe(0);
    expect(await found("zebra")).toBeLessThan(zebras);
    expect(await found("zebra")).toBeGreaterThan(0);
    const tables = await runInDurableObject(env.SESSION.getByName(key), (_session, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('log', 'parts', 'queue', 'seen')").toArray(),
    );
    expect(tables).toEqual([]);
    const { entries } = await peer.ok<{ entries: { target: string }[] }>("audit.list", { action: "session.delete" });
    expect(entries).toMatchObject([{ target: key, decision: "allowed" }]);
    await peer.event("session", ({ sessionKey, text }) => sessionKey === key && /was deleted/.test(String(text)));

    await says("again");
    expect(await peer.ok("session.get", { sessionKey: key })).toMatchObject({ messageCount: 2, previousSessionIds: [] });
    expect((await peer.refused("session.delete", { sessionKey: "agent:main:cli:dm:never" })).reason).toBe("session.not_found");
  });
});

describe("[SD2] [SD3] a deletion that is interrupted", () => {
  test.each(["end", "history", "erase"] as const)("before `%s` is finished after a crash; a message meanwhile is refused", async (step) => {
    await says("the zebra is striped");
    await peer.ok("session.reset", { sessionKey: key });
    await failing(step);
    expect(await peer.ok("session.delete", { sessionKey: key })).toEqual({ ok: true, sessionKey: key, done: false });
    const refused = await peer.refused("chat.send", { sessionKey: key, message: "say hello" });
    expect(refused).toMatchObject({ reason: "session.deleting", retryable: true });
    vi.restoreAllMocks();
    await crashAndAlarm();
    expect(await open()).toBe(0);
    expect(await listed()).toEqual([]);
    expect(await stored("agents/main/sessions/")).toEqual([]);
    await says("hello");
    expect(await peer.ok("session.get", { sessionKey: key })).toMatchObject({ messageCount: 2 });
  });
  test("after the session was emptied is finished after a crash, with the transcripts that only the session knew", async () => {
    await says("the zebra is striped");
    const { archivedTo } = await peer.ok<{ archivedTo: string }>("session.reset", { sessionKey: key });
    // A transcript of an early version: nothing in it names its session.
    const bytes = await (await env.STORAGE.get(archivedTo))?.arrayBuffer();
    await env.STORAGE.put(archivedTo, bytes ?? "");
    vi.spyOn(parts, "search").mockImplementation(() => ({
      query: () => Promise.reject(new Error("it does not answer")),
      forget: () => Promise.reject(new Error("it does not answer")),
      memoriesWillChange: () => Promise.resolve(),
      memoriesChanged: () => Promise.resolve(),
    }));
    expect(await peer.ok("session.delete", { sessionKey: key })).toMatchObject({ done: false });
    // As if the crash had come before the transcript was deleted.
    await env.STORAGE.put(archivedTo, bytes ?? "");
    expect((await peer.refused("chat.send", { sessionKey: key, message: "say hello" })).reason).toBe("session.deleting");
    vi.restoreAllMocks();
    await crashAndAlarm();
    expect(await open()).toBe(0);
    expect(await stored("agents/main/sessions/")).toEqual([]);
    expect(await listed()).toEqual([]);
  });
});

describe("[SD4] a session with waiting messages", () => {
  test("is refused, also when the message is accepted while the deletion looks at the session", async () => {
    await says("hello");
    await peer.ok("gateway.stop");
    const late: SessionSend = {
      identity: { key, ref: await refOf(key), agentId: "main", isOwnersSession: true },
      messageId: "late",
      runId: "late",
      text: "say not lost",
      origin: { kind: "client", clientId: "c" },
      held: true,
    };
    const real = parts.session;
    let sent = false;
    vi.spyOn(parts, "session").mockImplementation(
      (of, sessionKey) =>
        new Proxy(real(of, sessionKey), {
          get(target, member) {
            const method: unknown = Reflect.get(target, member, target);
            if (typeof method !== "function") return method;
            return async (...args: unknown[]): Promise<unknown> => {
              const answer: unknown = await Reflect.apply(method, target, args);
              if (member === "stats" && !sent) {
                sent = true;
                expect((await target.send(late)).ok).toBe(true);
              }
              return answer;
            };
          },
        }),
    );
    await evict(gateway(), { webSockets: "hibernate" });
    expect((await peer.refused("session.delete", { sessionKey: key })).reason).toBe("session.running");
    expect(await open()).toBe(0);
    await peer.ok("gateway.resume");
    await eventually(async () => {
      const { messageCount } = await peer.ok<{ messageCount: number }>("session.get", { sessionKey: key });
      expect(messageCount).toBe(4);
    });
  });
  test("is refused, and with `stop` deleted with them", async () => {
    await says("hello");
    await peer.ok("gateway.stop");
    expect(await peer.ok("chat.send", { sessionKey: key, message: "say later" })).toMatchObject({ status: "started", stopped: true });
    const refused = await peer.refused("session.delete", { sessionKey: key });
    expect(refused).toMatchObject({ reason: "session.running", hint: expect.stringContaining(`gsv session delete ${key} --stop`) });
    expect(await listed()).toEqual([key]);
    expect(await peer.ok("session.delete", { sessionKey: key, stop: true })).toMatchObject({ done: true });
    await peer.ok("gateway.resume");
    await says("fresh");
    expect(await peer.ok("session.get", { sessionKey: key })).toMatchObject({ messageCount: 2 });
  });
});

describe("[SD6] an agent", () => {
  const create = (agentId: string) => peer.ok("agents.create", { agentId });
  test("is deleted with its sessions in one step; its files stay", async () => {
    await create("work");
    await says("hello", "agent:work:cli:dm:a");
    await says("hello", "agent:work:cli:dm:b");
    const files = await stored("agents/work/");
    const refused = await peer.refused("agents.delete", { agentId: "work" });
    expect(refused).toMatchObject({ reason: "agent.in_use", message: expect.stringContaining("agent:work:cli:dm:b") });
    expect(await peer.ok("agents.delete", { agentId: "work", sessions: true })).toEqual({ ok: true, agentId: "work", sessions: 2 });
    expect((await peer.refused("agents.get", { agentId: "work" })).reason).toBe("agent.unknown");
    expect((await peer.refused("chat.send", { sessionKey: "agent:work:cli:dm:a", message: "hi" })).reason).toBe("agent.unknown");
    for (let left = await listed(); left.length > 0; left = await listed()) await scheduler.wait(2);
    expect(await stored("agents/work/")).toEqual(files);
    expect((await peer.refused("agents.delete", { agentId: "work" })).reason).toBe("agent.unknown");
  });
  test("is refused as the default one, as `main`, and while a route names it", async () => {
    await create("work");
    expect((await peer.refused("agents.delete", { agentId: "main" })).reason).toBe("agent.kept");
    await peer.ok("config.set", { path: "agents.list[0].default", value: true });
    expect((await peer.refused("agents.delete", { agentId: "work" })).reason).toBe("agent.kept");
    await peer.ok("config.set", { path: "agents.list[0].default", value: false });
    await peer.ok("config.set", { path: "agents.bindings", value: [{ agentId: "work", match: { channel: "discord" } }] });
    const refused = await peer.refused("agents.delete", { agentId: "work" });
    expect(refused).toMatchObject({ reason: "agent.in_use", message: expect.stringContaining("agents.bindings[0]") });
    await peer.ok("config.unset", { path: "agents.bindings" });
    expect(await peer.ok("agents.delete", { agentId: "work" })).toMatchObject({ sessions: 0 });
  });
});
