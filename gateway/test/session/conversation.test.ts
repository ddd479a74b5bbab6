/** A plain conversation on the real runtime: answers and their stream, pages of messages, notes, and the queue. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asCallId, type SessionMessagesResult } from "../../../protocol/gen/types.ts";
import { idle, newSession, onNode, says, Stage, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

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
