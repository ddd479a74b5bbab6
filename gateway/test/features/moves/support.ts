/** A home, exported and imported over the real wire. There is one gateway in a test, so it is emptied in between. */
import { env } from "cloudflare:workers";
import { reset, runInDurableObject } from "cloudflare:test";
import { vi } from "vitest";
import { parts } from "../../../src/app/compose.ts";
import { client, gateway, type Peer, seed, sha256 } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

export interface Exported {
  readonly home: Record<string, unknown> & { moveId: string; levels: Record<string, number>; secrets: string[]; hooks: string[] };
  readonly pages: readonly string[];
}
interface Part {
  readonly text: string;
  readonly parts: number;
  readonly next?: string;
}

export async function exported(peer: Peer): Promise<Exported> {
  const { home } = await peer.ok<Pick<Exported, "home">>("move.describe");
  const pages: string[] = [];
  let cursor: string | undefined;
  do {
    const at = cursor === undefined ? {} : { cursor };
    const first = await peer.ok<Part>("move.read", at);
    let text = first.text;
    for (let part = 1; part < first.parts; part++) text += (await peer.ok<Part>("move.read", { ...at, part })).text;
    pages.push(text);
    cursor = first.next;
  } while (cursor !== undefined);
  return { home, pages };
}
export const written = (peer: Peer, { home, pages }: Exported, page: number): Promise<{ pages: number }> =>
  peer.ok("move.write", { moveId: home.moveId, page, part: 0, parts: 1, text: pages[page - 1] });
export async function digest(pages: readonly string[]): Promise<string> {
  let sum = "";
  for (const page of pages) sum = await sha256(sum + (await sha256(page)));
  return sum;
}
export const ending = async ({ home, pages }: Exported) => ({ moveId: home.moveId, pages: pages.length, sha256: await digest(pages) });

/** Instead of an abort of the object, which a test can't survive: how often it was asked for. */
export function countRestarts(): { count: number } {
  const restarts = { count: 0 };
  vi.spyOn(parts, "restart").mockImplementation(() => {
    restarts.count += 1;
  });
  return restarts;
}
export async function fresh(): Promise<void> {
  await reset();
  await seed();
}
export const again = (): Promise<void> => evict(gateway(), { webSockets: "close" });

export async function imported(of: Exported): Promise<Peer> {
  let peer = await client();
  await peer.ok("move.begin", { home: of.home });
  for (let page = 1; page <= of.pages.length; page++) await written(peer, of, page);
  await peer.ok("move.finish", await ending(of));
  await again();
  peer = await client();
  const begun = await peer.ok<{ isDone: boolean }>("move.begin", { home: of.home });
  if (!begun.isDone) throw new Error("the import did not end");
  return peer;
}

export async function objects(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const { key } of (await env.STORAGE.list({ limit: 1000 })).objects) {
    if (key.startsWith("audit/")) continue;
    const object = await env.STORAGE.get(key);
    const { httpMetadata, customMetadata } = object ?? {};
    const bytes = new Uint8Array((await object?.arrayBuffer()) ?? new ArrayBuffer(0));
    const text = Array.from(bytes, (byte) => byte.toString(16)).join(" ");
    found.set(key, JSON.stringify({ http: httpMetadata, custom: customMetadata, text: await sha256(text), size: bytes.length }));
  }
  return found;
}
export const tablesOf = (): Promise<Map<string, number>> =>
  runInDurableObject(gateway(), (_gateway, { storage }) => {
    const names = storage.sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray();
    const own = names.map(({ name }) => name).filter((name) => !/^(_cf_|sqlite_|schema_version$)/.test(name));
    return new Map(own.map((name) => [name, storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM "${name}"`).one().n]));
  });

/** A key of a provider in the home, which must not leave its gateway. */
export const CANARY = "sk-canary-4711-of-the-move";
/** The conversations of the home. */
export const KEYS = ["agent:main:main", "agent:main:cli:dm:one", "agent:work:cli:dm:two"];
/** Sends a message and waits for the end of its run. */
export async function said(peer: Peer, sessionKey: string, message: string): Promise<void> {
  const runId = crypto.randomUUID();
  await peer.ok("chat.send", { sessionKey, message, runId });
  await peer.ok("session.subscribe", { sessionKey });
  const texts = async (): Promise<boolean> => {
    const { state } = await peer.ok<{ state: string }>("session.subscribe", { sessionKey });
    return state === "idle";
  };
  for (let tries = 0; !(await texts()); tries++) {
    if (tries > 500) throw new Error(`no answer to ${message}`);
    await scheduler.wait(5);
  }
}
export function rowDatabase(): D1Database {
  if (env.DB === undefined) throw new Error("the tests have a database for rows");
  return env.DB;
}
/** A file of the home that is larger than a page. */
export const BYTES = Uint8Array.from({ length: 700_001 }, (_, at) => (at * 31 + (at >> 8)) & 255);

/** A home of some variety. */
export async function home(): Promise<Peer> {
  const peer = await client();
  await peer.ok("agents.create", { agentId: "work" });
  await peer.ok("config.set", { path: "apiKeys.openai", value: CANARY });
  await peer.ok("config.set", { path: "userTimezone", value: "Europe/Amsterdam" });
  for (const key of KEYS) await said(peer, key, `say hello of ${key}`);
  await said(peer, KEYS[1] ?? "", "say more");
  await peer.ok("session.reset", { sessionKey: KEYS[1] });
  await said(peer, KEYS[1] ?? "", "say after the reset");
  await peer.ok("workspace.write", { path: "notes.md", content: "one" });
  await peer.ok("workspace.write", { path: "notes.md", content: "two" });
  await env.STORAGE.put("agents/main/picture.bin", BYTES, { httpMetadata: { contentType: "image/png" }, customMetadata: { by: "x" } });
  await env.STORAGE.put("media/agent%3Amain%3Amain/1.png", new Uint8Array([1, 2, 3]), { httpMetadata: { contentType: "image/png" } });
  await peer.ok("cron.add", {
    name: "daily",
    schedule: { kind: "cron", expr: "0 7 * * *" },
    spec: { mode: "systemEvent", text: "say good morning" },
  });
  await peer.ok("memory.add", { text: "The cat is called Minoes.", requestId: "r1" });
  return peer;
}
export async function stoppedHome(): Promise<{ peer: Peer; of: Exported }> {
  const peer = await home();
  await peer.ok("gateway.stop");
  return { peer, of: await exported(peer) };
}
