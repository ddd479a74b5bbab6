/** A session on the real runtime: evicted, killed, hibernated and woken in the middle of everything. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asCallId, type SessionMessagesResult } from "../../../protocol/gen/types.ts";
import type { SessionPort } from "../../src/ports/session.ts";
import { createArchives } from "../../src/storage/archives.ts";
import { newSession, onNode, says, Stage, type TestSession, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
});
const idle = (port: SessionPort): Promise<true> => until("the session to be idle", async () => value(await port.stats()).state === "idle");

describe("a plain conversation", () => {
  it("[C1] [C3] is answered and streamed in order", async () => {
    const stage = new Stage().open();
    const s = newSession();
    expect(value(await s.send("a"))).toEqual({ status: "started", runId: "run-a", queued: false, seq: 1 });
    const call = await stage.call(0);
    call.stream("Hel");
    call.stream("lo");
    call.answer(says("Hello"));
    expect(await stage.ended("run-a")).toBe("final");
    const states = stage.news.map(({ payload }) => ("state" in payload ? payload.state : payload.kind));
    expect(states.at(-1)).toBe("final");
    expect(stage.news.flatMap(({ payload }) => ("state" in payload && payload.state === "delta" ? [payload.text] : [])).join("")).toBe(
      "Hello",
    );
    await idle(s.port);
    const preview = value(await s.port.preview({ limit: 10 }));
    expect(preview.messageCount).toBe(2);
    expect(value(await s.port.events(0)).events).toHaveLength(1);
  });
  it("[P19] its messages are read in pages that fit an answer, oldest first", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("x".repeat(200_000));
    const s = newSession();
    for (const id of ["a", "b", "c", "d"]) {
      await s.send(id);
      await stage.ended(`run-${id}`);
    }
    await idle(s.port);
    const seen: unknown[] = [];
    let pages = 0;
    for (let offset: number | undefined = 0; offset !== undefined; pages++) {
      const page: SessionMessagesResult = value(await s.port.messages({ offset }));
      expect([page.offset, page.total]).toEqual([seen.length, 8]);
      expect(JSON.stringify(page).length).toBeLessThan(LIMITS.frameBytes);
      seen.push(...page.messages);
      offset = page.nextOffset;
    }
    expect(seen.map((message) => (message as { role: string }).role)).toEqual(
      Array.from({ length: 4 }, () => ["user", "assistant"]).flat(),
    );
    expect([seen.length, pages]).toEqual([8, 2]);
    expect(value(await s.port.messages({ offset: 6, limit: 1 }))).toMatchObject({ offset: 6, nextOffset: 7, messages: [{ role: "user" }] });
    expect(value(await s.port.messages({ offset: 99 }))).toMatchObject({ messages: [], total: 8 });
  });
  it("[TR5] a client that asks for notes gets them in their place: a reminder, a run without an answer, a late result", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    const s = newSession();
    await s.send("a");
    const call = await stage.call(0);
    call.answer(says("", [{ name: "lap__Bash", arguments: {} }]));
    const { callId } = await until("the dispatch", () => stage.dispatches[0]);
    await s.port.abort(undefined);
    await stage.ended("run-a");
    const { identity } = s;
    await s.port.note({ identity, key: "r1", text: "Reminder: **milk**" });
    await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: "it was done" });
    await s.port.note({ identity, key: "j1", text: "The job says: ready", isAnswer: true });
    const seen = (messages: readonly unknown[]): unknown[] =>
      (messages as { role: string; kind?: string }[]).map(({ role, kind }) => kind ?? role);
    const messages = ["user", "assistant", "toolResult"];
    const all = [...messages, "aborted", "note", "late", "note"];
    expect(seen(value(await s.port.preview({ limit: 10 })).messages)).toEqual(messages);
    expect(seen(value(await s.port.preview({ limit: 10, notes: true })).messages)).toEqual(all);
    expect(seen(value(await s.port.preview({ limit: 2, notes: true })).messages)).toEqual(["late", "note"]);
    expect(value(await s.port.messages({}))).toMatchObject({ total: 3 });
    const page = value(await s.port.messages({ offset: 4, limit: 2, notes: true }));
    expect(page).toMatchObject({ offset: 4, nextOffset: 6, total: 7 });
    expect(page.messages).toEqual([
      { role: "note", kind: "note", content: "Reminder: **milk**", timestamp: expect.any(Number) },
      { role: "note", kind: "late", content: expect.stringContaining("it was done"), timestamp: expect.any(Number) },
    ]);
    expect(value(await s.port.messages({ offset: 6, notes: true })).messages).toMatchObject([{ isAnswer: true }]);
    await evict(s.stub);
    expect(seen(value(await s.port.preview({ limit: 10, notes: true })).messages)).toEqual(all);
    expect(value(await s.port.preview({ notes: true })).messageCount).toBe(3);
  });
  it("[P9.2] the prompt is assembled once per run, and an unchanged context is not sent again", async () => {
    const stage = new Stage().open();
    stage.auto = (request) => (request.messages.at(-1)?.role === "user" ? says("", [{ name: "gsv__Note", arguments: {} }]) : says("done"));
    const s = newSession();
    await s.send("a");
    await stage.ended("run-a");
    expect([stage.assembled, stage.contexts]).toEqual([1, 2]);
  });
  it("[C6] [P3] [W19] a message during a run waits in the queue and gets a run of its own", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    await stage.call(0);
    expect(value(await s.send("b"))).toMatchObject({ status: "started", queued: true });
    expect(value(await s.send("c"))).toMatchObject({ status: "started", queued: true });
    expect(value(await s.port.stats()).queueSize).toBe(2);
    for (const [index, id] of ["a", "b", "c"].entries()) {
      (await stage.call(index)).answer(says(`answer ${id}`));
      await stage.ended(`run-${id}`);
    }
    expect(stage.calls[2]?.request.messages.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant", "user"]);
  });
});

/**
 * An answer leaves the object only when everything before it is on disk. The parts that a test plays are called inside the object,
 * without that gate, so a test that takes the object away right after one of them must wait for it here.
 */
const durable = async (s: TestSession): Promise<void> => void (await s.port.stats());

describe("evicted", () => {
  it("[P12] [K7] [W1] in the middle of a model call: the alarm restarts it, one answer comes, later messages are served", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    (await stage.call(0)).stream("half of an ans");
    await durable(s);
    await abortAllDurableObjects();
    // The handler stays with the call that it starts again, so it is answered meanwhile.
    const alarm = runDurableObjectAlarm(s.stub);
    (await stage.call(1)).answer(says("whole"));
    expect(await alarm).toBe(true);
    expect(await stage.ended("run-a")).toBe("final");
    await idle(s.port);
    expect(stage.ends("run-a")).toEqual(["final"]);
    await s.send("b");
    (await stage.call(2)).answer(says("later"));
    expect(await stage.ended("run-b")).toBe("final");
  });
  it("[P12] [K8] ungracefully: the next request wakes it, and a completion of the old incarnation is dropped", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    const old = await stage.call(0);
    await durable(s);
    await abortAllDurableObjects();
    expect(await s.port.resume()).toEqual({ busy: true });
    const again = await stage.call(1);
    old.answer(says("from the grave"));
    again.answer(says("alive"));
    expect(await stage.ended("run-a")).toBe("final");
    await idle(s.port);
    expect(stage.ends("run-a")).toEqual(["final"]);
    expect(JSON.stringify(value(await s.port.preview({ limit: 10 })).messages)).not.toContain("grave");
    await s.send("b");
    (await stage.call(2)).answer(says("still here"));
    expect(await stage.ended("run-b")).toBe("final");
  });
  it("[P1] [W3] a message that is sent again after it gets the first answer, and runs once", async () => {
    const stage = new Stage().open();
    const s = newSession();
    const first = value(await s.send("a"));
    (await stage.call(0)).answer(says("one"));
    await stage.ended("run-a");
    await idle(s.port);
    await durable(s);
    await evict(s.stub);
    expect(value(await s.send("a"))).toEqual({ ...first, duplicate: true });
    await durable(s);
    await abortAllDurableObjects();
    expect(value(await s.send("a"))).toEqual({ ...first, duplicate: true });
    expect(stage.calls).toHaveLength(1);
  });
  it("[K4] [P4] with messages waiting: they are served in order", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    await stage.call(0);
    await s.send("b");
    await s.send("c");
    await durable(s);
    await abortAllDurableObjects();
    await s.port.resume();
    for (const index of [1, 2, 3]) (await stage.call(index)).answer(says(`answer ${index}`));
    await stage.ended("run-c");
    expect(stage.news.flatMap(({ payload }) => ("state" in payload && payload.state === "final" ? [payload.runId] : []))).toEqual([
      "run-a",
      "run-b",
      "run-c",
    ]);
  });
  it("[K10] [K16] [G1] while a tool runs: it sleeps, the result wakes it, and nothing is dispatched twice", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    const s = newSession();
    await s.send("a");
    (await stage.call(0)).answer(says("", [{ name: "lap__Bash", arguments: { command: "make" } }]));
    const { callId, tool, args } = await until("the dispatch", () => stage.dispatches[0]);
    expect([callId, tool, args]).toEqual([`${s.identity.ref}/r1/1/0`, "Bash", { command: "make" }]);
    await until("the events", () => stage.news.some(({ payload }) => "tool" in payload));
    await durable(s);
    await evict(s.stub);
    // A node with a ledger is asked again under the same id, which is always safe.
    expect(await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: "built" })).toBe("taken");
    expect(await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: "built" })).toBe("duplicate");
    expect(await s.port.toolResult("evil", { callId: asCallId(`${s.identity.ref}/r1/2/0`), outcome: "ok", result: "x" })).toBe("duplicate");
    expect(stage.dispatches.every((dispatch) => dispatch.callId === callId)).toBe(true);
    (await stage.call(1)).answer(says("done"));
    expect(await stage.ended("run-a")).toBe("final");
  });
  it("[G2] [P6] a call to a node without a ledger is dispatched once, whatever happens after", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("old", "Bash", { ledger: false })];
    const s = newSession();
    await s.send("a");
    (await stage.call(0)).answer(says("", [{ name: "old__Bash", arguments: {} }]));
    await until("the dispatch", () => stage.dispatches[0]);
    for (let n = 0; n < 3; n++) {
      await durable(s);
      await abortAllDurableObjects();
      await s.port.resume();
    }
    await durable(s);
    await evict(s.stub);
    await runDurableObjectAlarm(s.stub);
    expect(stage.dispatches).toHaveLength(1);
    expect(
      await s.port.toolResult("old", { callId: asCallId(stage.dispatches[0]?.callId ?? ""), outcome: "ok", result: "came all the same" }),
    ).toBe("taken");
  });
  it("[P8] a native call runs again under the same call id", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    (await stage.call(0)).answer(says("", [{ name: "gsv__Note", arguments: {} }]));
    (await stage.call(1)).answer(says("done"));
    await stage.ended("run-a");
    expect(new Set(stage.nativeRuns).size).toBe(1);
    await idle(s.port);
  });
  it("[K24] [P11] after the answer was written and before clients were told: the next incarnation delivers it", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    const call = await stage.call(0);
    const told = stage.news.length;
    vi.spyOn(stage.news, "push").mockImplementation(() => {
      throw new Error("the gateway is away");
    });
    call.answer(says("one"));
    await idle(s.port);
    expect(stage.news.length).toBe(told);
    vi.mocked(stage.news.push).mockRestore();
    await durable(s);
    await abortAllDurableObjects();
    await s.port.resume();
    expect(await stage.ended("run-a")).toBe("final");
  });
});

describe("reset and compaction", () => {
  const talk = async (stage: Stage, send: TestSession["send"], ids: readonly string[]): Promise<void> => {
    stage.auto = () => says("fine");
    for (const id of ids) {
      await send(id);
      await stage.ended(`run-${id}`);
    }
  };
  it("[R5] [P17] the archive is in the bucket, and a new conversation begins", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a", "b"]);
    const before = value(await s.port.get());
    const reset = value(await s.port.reset());
    expect(reset).toMatchObject({ ok: true, archivedMessages: 4, oldSessionId: before.sessionId, tokensCleared: before.tokens });
    const archived = value(await createArchives(env.STORAGE).read(reset.archivedTo ?? ""));
    expect(archived.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
    const after = value(await s.port.get());
    expect(after).toMatchObject({
      messageCount: 0,
      sessionId: reset.newSessionId,
      previousSessionIds: [before.sessionId],
      tokens: { total: 0 },
    });
    await talk(stage, s.send, ["c"]);
    expect(value(await s.port.preview({ limit: 10 })).messages).toHaveLength(2);
    expect(value(await s.port.history()).previousSessionIds).toEqual([before.sessionId]);
  });
  it("[R5] [W16] without the bucket nothing is removed, and the caller is told", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a"]);
    stage.bucketAway = true;
    const failed = await s.port.reset();
    expect(!failed.ok && failed.error.reason).toBe("session.archive_failed");
    expect(value(await s.port.get()).messageCount).toBe(2);
  });
  it("[R6] /new resets and says so; /compact keeps the last messages", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await talk(stage, s.send, ["a", "b", "c"]);
    expect(value(await s.send("k", "/compact 2"))).toMatchObject({
      status: "command",
      command: "compact",
      response: "4 messages were archived, 2 stay.",
    });
    expect(value(await s.port.preview({ limit: 10 })).messages).toHaveLength(2);
    expect(value(await s.send("n", "/new"))).toMatchObject({ status: "command", command: "new" });
    expect(value(await s.port.get()).messageCount).toBe(0);
    // Sent again it is not done again.
    await talk(stage, s.send, ["d"]);
    await s.send("n", "/new");
    expect(value(await s.port.get()).messageCount).toBe(2);
  });
  it("[P3.2] [W18] an idle conversation is archived before its next message, which starts the new one", async () => {
    const stage = new Stage().open();
    stage.resetPolicy = { mode: "idle", idleMinutes: 1 };
    const s = newSession();
    await talk(stage, s.send, ["a"]);
    await idle(s.port);
    await runInDurableObject(s.stub, (_session, ctx) => {
      ctx.storage.sql.exec("UPDATE parts SET body = json_set(body, '$.updatedAt', json_extract(body, '$.updatedAt') - 61000) WHERE id = 1");
    });
    await evict(s.stub);
    expect(value(await s.send("b"))).toMatchObject({ status: "started", queued: true });
    expect(await stage.ended("run-b")).toBe("final");
    expect(value(await s.port.get()).messageCount).toBe(2);
    expect(value(await s.port.history()).previousSessionIds).toHaveLength(1);
  });
});

describe("reads and settings", () => {
  it("[W20] a session without messages does not exist, and reading creates nothing", async () => {
    new Stage().open();
    const s = newSession();
    for (const answer of [
      await s.port.get(),
      await s.port.stats(),
      await s.port.preview({ limit: 5 }),
      await s.port.messages({ limit: 5 }),
      await s.port.history(),
      await s.port.patch({ label: "x" }),
      await s.port.reset(),
      await s.port.compact(3),
    ]) {
      expect(!answer.ok && answer.error.reason).toBe("session.not_found");
    }
    expect(await s.port.toolResult("lap", { callId: asCallId("x/r1/1/0") })).toBe("unknown");
    expect(await s.port.execEvent("lap", { eventId: "e", sessionId: "p", event: "finished" })).toBe("unknown");
    expect(value(await s.port.abort(undefined))).toEqual({ ok: true, wasRunning: false, pendingToolsCancelled: 0 });
    expect(await s.port.resume()).toEqual({ busy: false });
    await runInDurableObject(s.stub, (_session, ctx) =>
      expect(ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'log'").toArray()).toEqual([]),
    );
  });
  it("[P14] [R3] /stop ends the run at once", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    const { request } = await stage.call(0);
    expect(value(await s.send("s", "/stop"))).toEqual({ status: "command", command: "stop", response: "Stopped." });
    expect(await stage.ended("run-a")).toBe("aborted");
    expect(request.signal.aborted).toBe(true);
    await idle(s.port);
  });
  it("[P14] [R3] who stops a run is told how many messages are taken up next", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await s.send("a");
    await stage.call(0);
    await s.send("b");
    await s.send("c");
    expect(value(await s.send("s", "/stop"))).toMatchObject({ response: "Stopped. 2 queued messages are read next." });
    await stage.call(1);
    expect(value(await s.port.abort(undefined))).toMatchObject({ wasRunning: true, waiting: 1 });
    await stage.call(2);
    expect(value(await s.port.abort(undefined))).not.toHaveProperty("waiting");
    await idle(s.port);
  });
  it("[C5] events after a number come once and complete, and a number that is too old is reported", async () => {
    const stage = new Stage().open();
    const s = newSession();
    stage.auto = (request) =>
      request.messages.at(-1)?.role === "user" ? says("look", [{ name: "gsv__Note", arguments: {} }]) : says("done");
    await s.send("a");
    await stage.ended("run-a");
    const all = value(await s.port.events(0)).events as { payload: { sessionSeq: number } }[];
    const seqs = all.map(({ payload }) => payload.sessionSeq);
    expect(seqs).toEqual([2, 3, 4, 5]);
    for (const seq of seqs)
      expect((value(await s.port.events(seq)).events as typeof all).map(({ payload }) => payload.sessionSeq)).toEqual(
        seqs.filter((other) => other > seq),
      );
    expect(value(await s.port.events(undefined))).toMatchObject({ seq: 5, events: [], state: "idle" });
    const ahead = await s.port.events(99);
    expect(!ahead.ok && ahead.error.reason).toBe("session.snapshot_required");
  });
  it("settings apply from the next call on, directives to one message", async () => {
    const stage = new Stage().open();
    const s = newSession();
    stage.auto = () => says("fine");
    const models: string[] = [];
    stage.auto = (request) => {
      models.push(`${request.model.id} ${request.thinkLevel ?? "-"}`);
      return says("fine");
    };
    await s.send("a", "hello");
    await stage.ended("run-a");
    value(await s.port.patch({ settings: { model: { provider: "openai", id: "mine" }, thinkingLevel: "low" } }));
    await s.send("b", "hello /t:high");
    await stage.ended("run-b");
    await s.send("c", "hello");
    await stage.ended("run-c");
    await s.send("d", "/model default");
    await s.send("e", "hello");
    await stage.ended("run-e");
    expect(models).toEqual(["demo -", "mine high", "mine low", "demo low"]);
  });
  it("the end of a background process wakes the agent, once", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    const s = newSession();
    stage.auto = (request) => (request.messages.at(-1)?.role === "user" ? says("", [{ name: "lap__Bash", arguments: {} }]) : says("fine"));
    await s.send("a");
    const { callId } = await until("the dispatch", () => stage.dispatches[0]);
    stage.auto = () => says("fine");
    await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: { status: "running", sessionId: "build" } });
    await stage.ended("run-a");
    const event = { eventId: "e1", sessionId: "build", event: "finished", exitCode: 0, outputTail: "ok" } as const;
    expect([await s.port.execEvent("lap", event), await s.port.execEvent("lap", event)]).toEqual(["taken", "duplicate"]);
    await until("the agent's word", async () => value(await s.port.preview({ limit: 10 })).messages.length === 6);
    expect(JSON.stringify(value(await s.port.preview({ limit: 10 })).messages[4])).toContain("background process build on lap");
  });
  it("[P22] [W14] a process that a program of before started wakes the agent, too", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    const s = newSession();
    stage.auto = (request) => (request.messages.at(-1)?.role === "user" ? says("", [{ name: "lap__Bash", arguments: {} }]) : says("fine"));
    await s.send("a");
    const { callId } = await until("the dispatch", () => stage.dispatches[0]);
    stage.auto = () => says("fine");
    await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: { pid: 7, status: "running", sessionId: "build" } });
    await stage.ended("run-a");
    await idle(s.port);
    await runInDurableObject(s.stub, (_session, ctx) => {
      const row = ctx.storage.sql.exec<{ body: string }>("SELECT body FROM parts WHERE id = 1").one();
      const { processes, ...before } = JSON.parse(row.body);
      expect(processes).toEqual([{ nodeId: "lap", processId: "build", callId, taint: expect.objectContaining({ label: "world" }) }]);
      ctx.storage.sql.exec("UPDATE parts SET body = ? WHERE id = 1", JSON.stringify(before));
    });
    await evict(s.stub);
    const event = { eventId: "e1", sessionId: "build", event: "finished", exitCode: 0 } as const;
    expect(await s.port.execEvent("lap", { ...event, sessionId: "other" })).toBe("unknown");
    expect(await s.port.execEvent("lap", event)).toBe("taken");
    expect(await s.port.execEvent("lap", { ...event, eventId: "e2" })).toBe("unknown");
  });
  it("[G4] a long result is kept whole in the agent's folder", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    const s = newSession();
    await s.send("a");
    (await stage.call(0)).answer(says("", [{ name: "lap__Bash", arguments: {} }]));
    const { callId } = await until("the dispatch", () => stage.dispatches[0]);
    const text = `${"line\n".repeat(20_000)}the end`;
    await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: text });
    const next = await stage.call(1);
    expect(JSON.stringify(next.request.messages).length).toBeLessThan(70_000);
    next.answer(says("done"));
    await stage.ended("run-a");
    const kept = await until("the file", () =>
      env.STORAGE.get(`agents/${s.identity.agentId}/results/${callId.replaceAll("/", "-")}.txt`).then((object) => object ?? undefined),
    );
    expect(await kept.text()).toBe(text);
  });
});
