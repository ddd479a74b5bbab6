/** `search.query` over a socket, with the real gateway, sessions, index and bucket. */
import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import type { SearchHit } from "../../../../protocol/gen/types.ts";
import { client, node, type Peer, seed, token } from "../../support/gateway.ts";

let peer: Peer;
let names = 0;
const fresh = (): string => `agent:main:cli:dm:search${++names}`;
interface Answer {
  readonly hits: SearchHit[];
  readonly more: boolean;
  readonly notes: string[];
}
const ask = (query: string, more: Record<string, unknown> = {}): Promise<Answer> => peer.ok<Answer>("search.query", { query, ...more });
/** Sends it to the demo model and waits for the answer. */
async function say(sessionKey: string, message: string): Promise<void> {
  const { runId } = await peer.ok<{ runId: string }>("chat.send", { sessionKey, message });
  await peer.event("chat", (payload) => payload["runId"] === runId && payload["state"] === "final");
}
beforeAll(async () => {
  await seed();
  peer = await client();
});

describe("[SE12] search.query", () => {
  it("finds files, recent messages and transcripts, with their locations", async () => {
    const sessionKey = fresh();
    await peer.ok("workspace.write", { path: "notes/boat.md", content: "one\n\nThe quagmire lies east.\n" });
    await say(sessionKey, "say the quagmire is deep");
    const found = await ask("quagmire");
    expect(found.notes).toEqual([]);
    expect(found.hits.find(({ source }) => source === "workspace")).toMatchObject({
      path: "notes/boat.md",
      position: 3,
      snippet: "one The \ue000quagmire\ue001 lies east.",
    });
    const inSession = found.hits.filter(({ source }) => source === "sessions");
    expect(inSession.map(({ role }) => role).sort()).toEqual(["assistant", "user"]);
    expect(inSession.every((hit) => hit.sessionKey === sessionKey && hit.path === undefined)).toBe(true);
    await peer.ok("session.reset", { sessionKey });
    const after = await ask("quagmire", { sessionKey });
    expect(after.hits.map(({ source, position }) => [source, position]).sort()).toEqual([
      ["archives", 0],
      ["archives", 1],
    ]);
    expect(after.hits[0]?.path).toMatch(/^sessions\/.*\.jsonl\.gz$/);
  });
  it("pages, sources and invalid requests", async () => {
    await peer.ok("workspace.write", {
      path: "many.md",
      content: Array.from({ length: 40 }, () => `${"pad ".repeat(500)} ostrich\n`).join(""),
    });
    const one = await ask("ostrich", { limit: 15 });
    const two = await ask("ostrich", { limit: 30, offset: 15 });
    expect([one.hits.length, one.more, two.hits.length, two.more]).toEqual([15, true, 25, false]);
    expect((await ask("ostrich", { sources: ["sessions", "archives"] })).hits).toEqual([]);
    expect((await peer.refused("search.query", { query: " !! " })).reason).toBe("search.bad_query");
    expect((await peer.refused("search.query", { query: "-x" })).reason).toBe("search.bad_query");
    expect((await peer.refused("search.query", { query: "x", sessionKey: "no key" })).reason).toBe("session.bad_key");
    expect((await peer.refused("search.query", { query: "x", agentId: "other", sessionKey: "agent:main:main" })).reason).toBe(
      "session.bad_key",
    );
    expect((await peer.refused("search.query", { query: "x", limit: 1_000 })).reason).toBe("protocol.invalid_params");
  });
  it("a conversation that does not exist is not searched", async () => {
    const refused = await peer.refused("search.query", { query: "x", sessionKey: "agent:main:cli:dm:never" });
    expect([refused.reason, refused.message]).toEqual(["session.not_found", "There is no conversation agent:main:cli:dm:never."]);
  });
  it("agents have separate indexes", async () => {
    await peer.ok("workspace.write", { path: "mine.md", content: "platypus" });
    expect((await peer.refused("search.query", { query: "platypus", agentId: "other" })).reason).toBe("agent.unknown");
    await peer.ok("agents.create", { agentId: "other" });
    await peer.ok("workspace.write", { agentId: "other", path: "theirs.md", content: "platypus too" });
    expect((await ask("platypus")).hits.map(({ path }) => path)).toEqual(["mine.md"]);
    expect((await ask("platypus", { agentId: "other" })).hits.map(({ path }) => path)).toEqual(["theirs.md"]);
  });
  it("[S5] a stored secret is never shown, in any source", async () => {
    const secret = "sk-very-secret-value-42";
    await peer.ok("config.set", { path: "apiKeys.openai", value: secret });
    await peer.ok("workspace.write", { path: "leak.md", content: `my key for wombats is ${secret} ok` });
    for (const query of ["wombats", `"${secret}"`, "secret value"]) {
      const { hits } = await ask(query, { sources: ["workspace"] });
      expect(hits.map(({ snippet }) => snippet.replace(/[\ue000\ue001]/g, ""))).toEqual(["my key for wombats is [redacted] ok"]);
    }
  });
  it("[X8] only clients with the operate scope may search", async () => {
    const readOnly = await client((await token("client-ro")).token);
    expect((await readOnly.refused("search.query", { query: "boat" })).reason).toBe("auth.forbidden");
    const machine = await node("searcher", (await token("node", { nodeId: "searcher" })).token);
    expect((await machine.refused("search.query", { query: "boat" })).reason).toBe("auth.forbidden");
    const plain = await client((await token("client")).token);
    expect(await plain.ok("search.query", { query: "boat" })).toHaveProperty("hits");
  });
  it("[D1] costs nothing without searches: messages create no index", async () => {
    await peer.ok("agents.create", { agentId: "silent" });
    await say("agent:silent:main", "say hello");
    await runInDurableObject(env.SEARCH.getByName("silent"), (_index, ctx) => {
      expect(ctx.storage.sql.exec("SELECT count(*) AS n FROM sqlite_master WHERE name = 'sources'").one()["n"]).toBe(0);
    });
  });
});
