/** Secrets that a command has read: they reach no session, client, log or progress (promises S5). */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Asked, ADMIN, client, fakeSessions, gateway, last, node, type Peer, seed, token, until } from "../../support/gateway.ts";

let sessions: { readonly asked: Asked[]; of(what: string): Asked[] };
let admin: Peer;
beforeEach(async () => {
  await reset();
  sessions = fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const KEY = "provider-key-that-no-one-may-see";
const HIDDEN = "[redacted]";

test("[F10] [S5] stored secrets and tokens are hidden in what a node reports, before anything is stored or answered", async () => {
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: KEY });
  const mine = (await token("admin")).token;
  const leak = `key=${KEY}\ntoken = "${mine}"`;
  const clean = `key=${HIDDEN}\ntoken = "${HIDDEN}"`;
  const lap = await node("lap");
  await admin.ok("chat.send", { sessionKey: "main", message: "hi" });
  const { ref } = last<{ identity: { ref: string } }>(sessions.of("send")).identity;
  const callId = `${ref}/r1/1/0`;
  await gateway().dispatchTool({ callId, sessionKey: "agent:main:main", nodeId: "lap", tool: "Bash", args: {}, timeoutMs: 1000 });

  await lap.ok("tool.progress", { callId, phase: "output", chunk: leak });
  expect((await admin.event("tool.progress")).payload).toMatchObject({ chunk: clean });
  const image = { type: "image", mimeType: "image/png", data: `AAAA${KEY}` };
  await lap.ok("tool.result", {
    callId,
    result: { content: [{ type: "text", text: leak }, image], deep: [{ [mine]: mine }] },
    error: leak,
  });
  expect(sessions.of("toolResult").at(-1)?.args[1]).toEqual({
    callId,
    result: { content: [{ type: "text", text: clean }, image], deep: [{ [HIDDEN]: HIDDEN }] },
    error: clean,
  });
  await lap.ok("node.exec.event", { eventId: "e", sessionId: "p", event: "finished", callId, outputTail: leak });
  expect(sessions.of("execEvent").at(-1)?.args[1]).toMatchObject({ outputTail: clean });

  const asked = admin.ask("tool.invoke", { tool: "lap__Bash" });
  const event = await until("the client's call", () => lap.events("tool.invoke")[1]);
  await lap.ok("tool.result", { callId: (event.payload as { callId: string }).callId, result: leak });
  expect((await admin.answer(asked)).payload).toMatchObject({ result: clean });
  const logs = admin.ask("logs.get");
  const read = (await lap.event("logs.get")).payload as { callId: string };
  await lap.ok("logs.result", { callId: read.callId, lines: [leak] });
  expect((await admin.answer(logs)).payload).toMatchObject({ lines: [clean] });
  const failing = admin.ask("logs.get");
  const again = await until("the second read", () => lap.events("logs.get")[1]);
  await lap.ok("logs.result", { callId: (again.payload as { callId: string }).callId, error: leak });
  await admin.answer(failing);
  expect(admin.texts.join("")).not.toContain(KEY);
  expect(admin.texts.concat(JSON.stringify(sessions.asked)).join("")).not.toContain(mine);
  expect(ADMIN).not.toBe(mine);
});

test("[A11] [S5] a secret that comes in two parts of the live output, or encoded, reaches no client", async () => {
  await admin.ok("config.set", { path: "apiKeys.anthropic", value: KEY });
  const mine = (await token("admin")).token;
  const lap = await node("lap");
  const asked = admin.ask("tool.invoke", { tool: "lap__Bash" });
  const event = await until("the client's call", () => lap.events("tool.invoke")[0]);
  const { callId } = event.payload as { callId: string };
  const base64 = btoa(`x${KEY}`);
  for (const chunk of [
    "key=",
    KEY.slice(0, 9),
    KEY.slice(9),
    ` token=${mine.slice(0, 40)}`,
    mine.slice(40),
    ` ${base64.slice(0, 20)}`,
    `${base64.slice(20)} pro`,
  ])
    await lap.ok("tool.progress", { callId, phase: "output", chunk });
  await lap.ok("tool.result", { callId, result: `${base64} ${encodeURIComponent(KEY)}` });
  expect((await admin.answer(asked)).payload).toMatchObject({ result: expect.stringContaining(HIDDEN) });
  const output = admin.events("tool.progress").map(({ payload }) => (payload as { chunk?: string }).chunk ?? "");
  expect(output.join("")).toMatch(/^key=\[redacted\] token=\[redacted\] .{0,3}\[redacted\].{0,3} pro$/);
  for (const part of [KEY, KEY.slice(0, 9), mine.slice(0, 40), mine.slice(40), base64.slice(4, 20)])
    expect(admin.texts.join("")).not.toContain(part);
});
