/** The session behind the real gateway, with the demo model and no fakes between them. */
import { beforeEach, describe, expect, it } from "vitest";
import { ADMIN, open, seed, type Peer } from "../support/gateway.ts";
import { until } from "./support.ts";

async function client(): Promise<Peer> {
  const peer = await open();
  await peer.ok("connect", {
    minProtocol: 1,
    maxProtocol: 1,
    client: { id: `c-${crypto.randomUUID()}`, version: "1", platform: "test", mode: "client" },
    fingerprint: "tests",
    auth: { token: ADMIN },
  });
  return peer;
}
beforeEach(seed);

describe("[C1] [C3] a conversation through the gateway", () => {
  it("is accepted, streamed, answered once, and can be followed from any point", async () => {
    const peer = await client();
    const sessionKey = `agent:main:cli:dm:${crypto.randomUUID()}`;
    const answer = await peer.ok("chat.send", { sessionKey, message: "hello there", messageId: "m1", runId: "run1" });
    expect(answer).toMatchObject({ status: "started", runId: "run1", queued: false });
    const final = await peer.event("chat", (payload) => payload["state"] === "final");
    expect(final.payload).toMatchObject({ runId: "run1", sessionSeq: 2 });
    const shown = peer.events("chat").flatMap(({ payload }) => {
      const { state, text } = payload as { state: string; text?: string };
      return state === "delta" ? [text ?? ""] : [];
    });
    const said = (final.payload as { message: { content: { text: string }[] } }).message.content[0]?.text;
    expect(shown.join("")).toBe(said);
    expect(await peer.ok("chat.send", { sessionKey, message: "hello there", messageId: "m1", runId: "run1" })).toMatchObject({
      status: "started",
      duplicate: true,
    });
    expect(await peer.ok("session.subscribe", { sessionKey, afterSeq: 0 })).toMatchObject({
      seq: 2,
      state: "idle",
      events: [{ event: "chat", payload: { state: "final" } }],
    });
    expect(await peer.ok("session.get", { sessionKey })).toMatchObject({ messageCount: 2 });
    expect(await peer.ok("chat.send", { sessionKey, message: "/status" })).toMatchObject({ status: "command", command: "status" });
    const reset = await peer.ok<{ archivedMessages: number }>("session.reset", { sessionKey });
    expect(reset.archivedMessages).toBe(2);
    await until("the reset to be told", () => peer.events("session").some(({ payload }) => (payload as { kind: string }).kind === "reset"));
  });
});

describe("[CT1] session.get names the model of the next run", () => {
  it("from the settings of the moment, with its window and what the conversation fills of it", async () => {
    const peer = await client();
    const sessionKey = `agent:main:cli:dm:${crypto.randomUUID()}`;
    await peer.ok("chat.send", { sessionKey, message: "hello", runId: "r1" });
    await peer.event("chat", (payload) => payload["state"] === "final");
    const found = await peer.ok<{ contextTokens: number; contextWindow: number }>("session.get", { sessionKey });
    expect(found).toMatchObject({ model: { provider: "demo", id: "demo" }, contextWindow: 1_000_000 });
    expect(found.contextTokens).toBeGreaterThan(0);
    await peer.ok("config.set", {
      path: "agents.list",
      value: [{ id: "main", model: { provider: "anthropic", id: "claude-sonnet-4-5" } }],
    });
    const later = await peer.ok("session.get", { sessionKey });
    expect(later, "without a message in between").toMatchObject({ model: { provider: "anthropic", id: "claude-sonnet-4-5" } });
    await peer.ok("config.unset", { path: "agents.list" });
    await peer.ok("session.patch", { sessionKey, settings: { model: { provider: "openai", id: "gpt-5" } } });
    expect(await peer.ok("session.get", { sessionKey })).toMatchObject({ model: { provider: "openai", id: "gpt-5" } });
  });
});

describe("[CT4] session.result gives what a call gave", () => {
  it("of the current conversation, and its event has the beginning", async () => {
    const peer = await client();
    const sessionKey = `agent:main:cli:dm:${crypto.randomUUID()}`;
    await peer.ok("chat.send", { sessionKey, message: "read: gsv:USER.md", runId: "r1" });
    await peer.event("chat", (payload) => payload["state"] === "final");
    const tools = peer.events("chat").flatMap(({ payload }) => {
      const { tool } = payload as { tool?: { callId: string; phase: string; output?: { head: string; lines: number } } };
      return tool?.phase === "ended" ? [tool] : [];
    });
    const [call] = tools;
    const output = call?.output;
    if (call === undefined || output === undefined) throw new Error("no call has ended");
    const found = await peer.ok<{ text: string }>("session.result", { sessionKey, callId: call.callId });
    expect(found).toMatchObject({ callId: call.callId, name: "gsv__ReadFile", outcome: "ok" });
    expect(output.lines).toBeGreaterThan(0);
    expect(found.text.startsWith(output.head)).toBe(true);
    const other = `${call.callId.slice(0, -1)}9`;
    expect((await peer.refused("session.result", { sessionKey, callId: other })).reason).toBe("run.not_found");
    expect((await peer.refused("session.result", { sessionKey: `${sessionKey}-none`, callId: other })).reason).toBe("session.not_found");
  });
});

describe("[Q4] session.prompt", () => {
  interface Prompt {
    sessionKey: string;
    agentId: string;
    sections: { id: string; layer: number; text: string; sizeBytes: number; tokens: number }[];
    tools: { name: string; tokens: number }[];
    systemTokens: number;
    toolTokens: number;
    messageCount: number;
    messageTokens: number;
    totalTokens: number;
    contextWindow: number;
    sha256: string;
  }
  it("shows the prompt of a session that does not exist yet, without creating it", async () => {
    const peer = await client();
    const sessionKey = `agent:main:cli:dm:${crypto.randomUUID()}`;
    const prompt = await peer.ok<Prompt>("session.prompt", { sessionKey });
    expect(prompt).toMatchObject({
      sessionKey,
      agentId: "main",
      model: { provider: "demo", id: "demo" },
      messageCount: 0,
      messageTokens: 0,
    });
    expect(prompt.sections[0]).toMatchObject({ id: "base", layer: 1 });
    expect(prompt.sections.at(-1)).toMatchObject({ id: "runtime", layer: 3 });
    expect(prompt.tools.map(({ name }) => name)).toContain("gsv__ReadFile");
    expect(prompt.toolTokens).toBe(prompt.tools.reduce((sum, { tokens }) => sum + tokens, 0));
    expect(prompt.totalTokens).toBe(prompt.systemTokens + prompt.toolTokens + prompt.messageTokens);
    expect(prompt.contextWindow).toBeGreaterThan(prompt.totalTokens);
    for (const { text, sizeBytes, tokens } of prompt.sections)
      expect([sizeBytes, tokens]).toEqual([new TextEncoder().encode(text).length, Math.ceil((text.length / 4) * 1.2)]);
    expect((await peer.refused("session.get", { sessionKey })).reason).toBe("session.not_found");
    expect(await peer.ok("session.prompt", { sessionKey }), "the same bytes again").toMatchObject({ sha256: prompt.sha256 });
  });
  it("shows an existing session's settings and sizes without a model call", async () => {
    const peer = await client();
    const sessionKey = `agent:main:cli:dm:${crypto.randomUUID()}`;
    await peer.ok("chat.send", { sessionKey, message: `say ${"x".repeat(4000)}`, runId: "r1" });
    await peer.event("chat", (payload) => payload["state"] === "final");
    const before = await peer.ok<Prompt>("session.prompt", { sessionKey });
    expect(before.messageCount).toBe(2);
    expect(before.messageTokens).toBeGreaterThan(2400);
    await peer.ok("session.patch", { sessionKey, settings: { systemPrompt: "# Mine\nBe a pirate." } });
    const after = await peer.ok<Prompt>("session.prompt", { sessionKey });
    expect(after.sections[0]?.text).toMatch(/### Mine\nBe a pirate\.$/);
    expect(after.sha256).not.toBe(before.sha256);
    expect(await peer.ok("session.get", { sessionKey })).toMatchObject({ messageCount: 2 });
  });
  it("[S8] a guest's session has none of the owner's notes in its prompt", async () => {
    const peer = await client();
    const of = async (sessionKey: string) => (await peer.ok<Prompt>("session.prompt", { sessionKey })).sections.map(({ id }) => id);
    expect(await of("agent:main:discord:dm:1")).not.toContain("user");
    expect(await of("main")).toContain("user");
  });
});
