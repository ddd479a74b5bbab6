/** Compaction and reset on the real runtime: real SQLite, a real bucket, evictions in the middle, and a conversation far longer than the model's window. */
import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { tokensOfMessages } from "../../src/models/estimate.ts";
import type { Message } from "../../src/ports/messages.ts";
import type { ModelOutcome, ModelRequest } from "../../src/ports/model.ts";
import type { SessionPort } from "../../src/ports/session.ts";
import { SUMMARY_SYSTEM } from "../../src/session/summary.ts";
import { createArchives } from "../../src/storage/archives.ts";
import { newSession, says, Stage, type TestSession, until, value } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});
const idle = (port: SessionPort): Promise<true> =>
  until("the session to be idle", async () => value(await port.stats()).state === "idle" && !(await port.resume()).busy);
const durable = async (s: TestSession): Promise<void> => void (await s.port.stats());
const asked = (request: ModelRequest): boolean => request.systemPrompt === SUMMARY_SYSTEM;
const text = (messages: readonly Message[]): string => JSON.stringify(messages);
const counted = (outcome: ModelOutcome, input: number): ModelOutcome => {
  if (outcome.kind !== "replied") return outcome;
  const usage = { input, output: 5, total: input + 5 };
  return { ...outcome, usage, message: { ...outcome.message, usage, provider: "test", model: "demo" } };
};
/** Answers as a model would: keeps the facts of the transcript and of the summary so far. */
function condensed(request: ModelRequest): ModelOutcome {
  const whole = text(request.messages);
  const facts = [...new Set(whole.match(/fact-\d+ is \w+/g) ?? [])];
  const found = new Set(/Memories found already[\s\S]*?The next part/.exec(whole)?.[0].match(/fact-\d+ is \w+/g) ?? []);
  const news = facts.filter((fact) => !found.has(fact));
  return says(`<summary>${facts.join(". ")}</summary><memories>${news.map((fact) => `- ${fact}`).join("\n")}</memories>`);
}
function stageOf(window: number): Stage {
  const stage = new Stage();
  stage.window = window;
  stage.provider = "test";
  return stage.open();
}
/** Every daily file of the agent, joined. */
async function memories(): Promise<string> {
  const { objects } = await env.STORAGE.list({ prefix: "agents/main/memory/" });
  const texts = await Promise.all(objects.map(async ({ key }) => (await env.STORAGE.get(key))?.text()));
  return texts.join("\n");
}
async function archivesOf(sessionId: string): Promise<Message[]> {
  const { objects } = await env.STORAGE.list({ prefix: `agents/main/sessions/${sessionId}`, include: ["customMetadata"] });
  const parts = objects.toSorted(
    (left, right) => Number(left.customMetadata?.["archivedAt"]) - Number(right.customMetadata?.["archivedAt"]),
  );
  const whole: Message[] = [];
  for (const { key } of parts) whole.push(...value(await createArchives(env.STORAGE).read(key)));
  return whole;
}
const users = (messages: readonly Message[]): string[] =>
  messages.flatMap((message) => (message.role === "user" && typeof message.content === "string" ? [message.content] : []));

describe("a conversation that is far longer than the window", () => {
  it("[R7] [P5.3] [P17] 3,000 messages are compacted as often as needed: calls stay small, early facts are kept, each is answered once", async () => {
    const window = 32_000;
    const exchanges = 1_500;
    const sizes: number[] = [];
    let summaries = 0;
    const stage = stageOf(window);
    stage.auto = (request) => {
      const tokens = tokensOfMessages(request.messages);
      expect(tokens).toBeLessThan(window);
      if (asked(request)) {
        summaries += 1;
        return condensed(request);
      }
      sizes.push(tokens);
      return counted(says(`Noted. ${"answer ".repeat(30)}`), tokens);
    };
    const s = newSession({ isOwnersSession: true });
    const said = (n: number): string => `message ${n}: ${n < 3 ? `fact-${n} is red${n}. ` : ""}${"words ".repeat(40)}`.trim();
    for (let n = 0; n < exchanges; n++) {
      await s.send(`m${n}`, said(n));
      await until(`the end of m${n}`, () => stage.ends(`run-m${n}`)[0]);
    }
    await idle(s.port);
    const state = value(await s.port.get());
    expect(state.compactions).toBeGreaterThan(5);
    // Flat: the last calls are no larger than those of the first compactions.
    const largest = (part: readonly number[]): number => Math.max(...part);
    expect(largest(sizes)).toBeLessThan(window);
    expect(largest(sizes.slice(-300))).toBeLessThanOrEqual(largest(sizes.slice(0, 600)) * 1.1);
    // Few calls for summaries, each about a chunk: the price of a message does not grow.
    expect(summaries).toBeLessThan(exchanges / 10);
    const archived = await archivesOf(state.sessionId);
    const { messages } = value(await s.port.preview({ limit: 200 }));
    const left = messages.length;
    // A reader of the conversation sees that it begins with a summary.
    const page = value(await s.port.messages({ limit: 2 }));
    expect(JSON.stringify(page.messages[0])).toContain("[Summary made by GSV");
    expect(page.total).toBe(state.messageCount + 1);
    expect(page.messages[1]).toMatchObject({ role: "user" });
    expect(archived.length + state.messageCount).toBe(2 * exchanges);
    expect(users(archived)).toEqual(Array.from({ length: users(archived).length }, (_, n) => said(n)));
    expect(left).toBe(Math.min(200, state.messageCount));
    const remembered = await memories();
    for (const fact of ["fact-0 is red0", "fact-1 is red1", "fact-2 is red2"]) {
      expect(remembered).toContain(fact);
    }
    const finals = stage.news.filter(({ payload }) => "state" in payload && payload.state === "final").length;
    expect(finals).toBe(exchanges);
    // The facts are before the model, too.
    let last = "";
    stage.auto = (request) => {
      last = text(request.messages);
      return says("red0");
    };
    await s.send("last", "what is fact-0?");
    await stage.ended("run-last");
    expect(last).toContain("fact-0 is red0");
  });
});

describe("compaction for headroom", () => {
  /** A session whose next message does not fit any more. */
  async function full(stage: Stage, more: { isOwnersSession?: boolean } = {}): Promise<TestSession> {
    stage.auto = (request) => counted(says("fine"), tokensOfMessages(request.messages));
    const s = newSession(more);
    for (let n = 0; n < 6; n++) {
      await s.send(`m${n}`, `fact-${n} is blue${n} ${"x".repeat(1_000)}`);
      await stage.ended(`run-m${n}`);
    }
    await idle(s.port);
    stage.auto = undefined;
    return s;
  }
  it("[P12] [K25] a crash at the summary, at the archive or after it leaves one compaction, one answer, and memories once", async () => {
    const stage = stageOf(4_000);
    const s = await full(stage, { isOwnersSession: true });
    await s.send("n", `now ${"y".repeat(1_500)}`);
    const first = await stage.call(0);
    expect(asked(first.request)).toBe(true);
    await durable(s);
    await abortAllDurableObjects();
    await s.port.resume();
    let calls = 1;
    for (;;) {
      const call = await stage.call(calls++);
      if (!asked(call.request)) {
        call.answer(says("there is room"));
        break;
      }
      const before = value(await s.port.stats()).tokens.total;
      call.answer(condensed(call.request));
      // The summary is kept; what follows it is lost.
      await until("the summary", async () => value(await s.port.stats()).tokens.total > before);
      await durable(s);
      await abortAllDurableObjects();
      calls = stage.calls.length;
      await s.port.resume();
    }
    expect(await stage.ended("run-n")).toBe("final");
    await idle(s.port);
    expect(stage.ends("run-n")).toEqual(["final"]);
    const state = value(await s.port.get());
    expect(state.compactions).toBe(1);
    const archived = await archivesOf(state.sessionId);
    expect(archived.length + state.messageCount).toBe(14);
    const remembered = await until("the memories", async () => {
      const found = await memories();
      return found.includes("fact-0 is blue0") ? found : undefined;
    });
    expect(remembered.split("fact-0 is blue0")).toHaveLength(2);
    expect(remembered).toMatch(/### Extracted from context compaction \(\d\d:\d\d\)\n- fact/);
  });
  it("clients see the compaction, the run shows as thinking, and /stop ends it with nothing removed", async () => {
    const stage = stageOf(4_000);
    const s = await full(stage);
    await s.send("n", `now ${"y".repeat(1_500)}`);
    await stage.call(0);
    const told = stage.news.flatMap(({ payload }) => ("state" in payload && payload.state === "status" ? [payload.text] : []));
    expect(told.join()).toMatch(/Shortening the conversation: summarising \d+ older messages/);
    expect(value(await s.port.stats())).toMatchObject({ state: "thinking", runId: "run-n" });
    expect(value(await s.send("s", "/stop"))).toMatchObject({ response: "Stopped." });
    expect(await stage.ended("run-n")).toBe("aborted");
    await idle(s.port);
    expect(value(await s.port.get())).toMatchObject({ messageCount: 13, compactions: 0 });
  });
  it("[P17] [W16] without the bucket nothing is removed, and the message is still answered", async () => {
    const stage = stageOf(4_000);
    const s = await full(stage);
    stage.bucketAway = true;
    stage.auto = (request) => (asked(request) ? condensed(request) : says("all the same"));
    await s.send("n", `now ${"y".repeat(1_500)}`);
    expect(await until("the end", () => stage.ends("run-n")[0])).toBe("final");
    await idle(s.port);
    expect(value(await s.port.get())).toMatchObject({ messageCount: 14, compactions: 0 });
  });
  it("[P4.4] after an overflow the context is compacted and the step is repeated once", async () => {
    const stage = stageOf(1_000_000);
    const s = await full(stage);
    let overflows = 0;
    stage.auto = (request) => {
      if (asked(request)) return condensed(request);
      if (request.messages.length > 8) {
        overflows += 1;
        return { kind: "failed", error: { reason: "model.context_overflow", message: "Too long." }, retryable: false };
      }
      return says("now it fits");
    };
    await s.send("n", "and now?");
    expect(await stage.ended("run-n")).toBe("final");
    expect(overflows).toBe(1);
    expect(value(await s.port.get()).compactions).toBe(1);
  });
  it("[R10] a message larger than the window is answered: the model sees less of it, the log keeps it whole", async () => {
    const stage = stageOf(8_000);
    const s = newSession();
    let shown = 0;
    stage.auto = (request) => {
      shown = tokensOfMessages(request.messages);
      expect(text(request.messages)).toMatch(/characters were left out here/);
      return says("long");
    };
    await s.send("a", "z".repeat(100_000));
    expect(await stage.ended("run-a")).toBe("final");
    expect(shown).toBeLessThan(8_000);
    expect(users(value(await s.port.preview({ limit: 5 })).messages as Message[])[0]).toHaveLength(100_000);
  });
  it("[F37] keeps no message when asked for none, and a preview without a limit shows all that fit", async () => {
    const stage = stageOf(200_000);
    const s = newSession();
    stage.auto = () => says("fine");
    for (let n = 0; n < 15; n++) {
      await s.send(`k${n}`, `message ${n}`);
      await stage.ended(`run-k${n}`);
    }
    expect(value(await s.port.preview({})).messages).toHaveLength(30);
    expect(value(await s.port.compact(0))).toMatchObject({ ok: true, trimmedMessages: 30, keptMessages: 0 });
    expect(value(await s.port.preview({})).messages).toEqual([]);
    let seen: readonly Message[] = [];
    stage.auto = (request) => {
      seen = request.messages;
      return says("fine");
    };
    await s.send("after", "go on");
    expect(await stage.ended("run-after")).toBe("final");
    expect(users([...seen])).toEqual(["go on"]);
  });
  it("[R6] an abort with the id of `/compact`, as the chat sends it, stops the compaction, and nothing is removed", async () => {
    const stage = stageOf(200_000);
    const s = await full(stage, { isOwnersSession: true });
    const before = stage.calls.length;
    const asked = s.send("c", "/compact");
    await until("the summary to be asked for", () => stage.calls[before]);
    expect(value(await s.port.abort("run-c"))).toMatchObject({ ok: true, wasRunning: true });
    expect(value(await asked)).toMatchObject({ error: expect.stringMatching(/^The compaction was stopped, and nothing was removed: /) });
    expect(value(await s.port.preview({})).messages).toHaveLength(12);
  });
  it("[R6] session.compact summarises on request, /status shows the size, and a model that fails leaves a note", async () => {
    const stage = stageOf(200_000);
    const s = await full(stage, { isOwnersSession: true });
    stage.auto = (request) => (asked(request) ? condensed(request) : says("fine"));
    const done = value(await s.port.compact(undefined));
    expect(done).toMatchObject({ ok: true, summarized: true });
    expect(done.memoriesTo).toMatch(/^memory\/\d{4}-\d\d-\d\d\.md$/);
    expect(done.trimmedMessages + done.keptMessages).toBe(12);
    await s.send("n", "hello");
    await stage.ended("run-n");
    const status = value(await s.send("st", "/status"));
    expect("response" in status && status.response).toMatch(/Context: [\d,]+ of 200,000 tokens/);
    stage.auto = (request) =>
      asked(request) ? { kind: "failed", error: { reason: "model.auth", message: "No." }, retryable: false } : says("fine");
    expect(value(await s.send("c", "/compact"))).toMatchObject({ response: expect.stringMatching(/messages were archived, \d+ stay/) });
    let seen = "";
    stage.auto = (request) => {
      seen = text(request.messages);
      return says("fine");
    };
    await s.send("o", "and?");
    await stage.ended("run-o");
    expect(seen).toMatch(/could not be summarised. Nothing is lost: they are archived in agents\/main\/sessions\//);
  });
});

describe("memories of a reset", () => {
  it("[P3.2] [K26] [K27] a reset with kills in between archives, writes memories into the day's file and starts a new conversation", async () => {
    const stage = stageOf(200_000);
    stage.auto = () => says("noted");
    const s = newSession({ isOwnersSession: true });
    await s.send("a", "fact-77 is green and I like tea");
    await stage.ended("run-a");
    await idle(s.port);
    stage.auto = undefined;
    const before = value(await s.port.get());
    const reset = s.port.reset().catch(() => undefined);
    const call = await stage.call(0);
    expect(asked(call.request)).toBe(true);
    expect(text(call.request.messages)).not.toContain("<summary>");
    await durable(s);
    await abortAllDurableObjects();
    await reset;
    await s.port.resume();
    (await stage.call(1)).answer(condensed(call.request));
    await idle(s.port);
    const after = value(await s.port.get());
    expect(after.previousSessionIds).toEqual([before.sessionId]);
    expect(await archivesOf(before.sessionId)).toHaveLength(2);
    expect((await memories()).split("fact-77 is green")).toHaveLength(2);
  });
  it("[P3.2] files of the old conversation are deleted and counted, those of the new one stay", async () => {
    const stage = stageOf(200_000);
    stage.auto = () => says("a picture");
    const s = newSession();
    const picture = {
      mimeType: "image/png",
      data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    };
    const send = (id: string): Promise<unknown> =>
      s.port.send({
        identity: s.identity,
        messageId: id,
        runId: `run-${id}`,
        text: "look",
        origin: { kind: "client", clientId: "test" },
        attachments: [picture],
      });
    await send("a");
    await stage.ended("run-a");
    await idle(s.port);
    const prefix = `media/${s.identity.key}/`;
    const files = async (): Promise<number> => (await env.STORAGE.list({ prefix })).objects.length;
    expect(await files()).toBe(1);
    expect(value(await s.port.reset())).toMatchObject({ mediaDeleted: 1 });
    expect(await files()).toBe(0);
    await send("b");
    await stage.ended("run-b");
    await idle(s.port);
    expect(await files()).toBe(1);
  });
});
