/** The session behind the real gateway, with the demo model: the parts fit each other. */
import { beforeEach, describe, expect, it } from "vitest";
import { ADMIN, open, seed, type Peer } from "../gateway/support.ts";
import { until } from "./support.ts";

async function client(): Promise<Peer> {
  const peer = await open();
  await peer.ok("connect", {
    minProtocol: 1,
    maxProtocol: 1,
    client: { id: `c-${crypto.randomUUID()}`, version: "1", platform: "test", mode: "client" },
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
