/**
 * What clients read of a session and change in it, on the real runtime: events, settings and directives, stops, and results that come
 * later.
 */
import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import { idle, newSession, onNode, says, Stage, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
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
    expect(await s.port.toolResult("lap", { callId: asCallId("x/r1/1/0") })).toEqual({ taken: "unknown" });
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
