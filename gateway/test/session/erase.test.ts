/** The end of a session in a real object: its work stops, everything stored goes, and late answers change nothing in the next session. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import { newSession, onNode, says, Stage, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

describe("[SD5] work that is still under way when a session is deleted", () => {
  it("a model's late answer changes nothing in the next session of the name, which knows no earlier message", async () => {
    const on = new Stage().open();
    const s = newSession();
    await s.send("a", "say one");
    const late = await on.call(0);
    await s.send("b", "say two");
    value(await s.port.end());
    expect(await on.ended("run-a")).toBe("aborted");
    await s.port.erase();
    expect(await s.port.stats()).toMatchObject({ ok: false, error: { reason: "session.not_found" } });
    expect(value(await s.send("a", "say new"))).toMatchObject({ status: "started", seq: 1 });
    late.answer(says("late"));
    (await on.call(1)).answer(says("the new answer"));
    await until("the answer", async () => value(await s.port.stats()).messageCount === 2);
    expect(JSON.stringify(value(await s.port.messages({ limit: 10 })))).toContain("the new answer");
    expect(JSON.stringify(value(await s.port.messages({ limit: 10 })))).not.toContain("late");
    await evict(s.stub);
    expect(value(await s.port.stats())).toMatchObject({ messageCount: 2, queueSize: 0 });
  });
  it("a call on a machine is cancelled, and its late result is unknown", async () => {
    const on = new Stage().open();
    on.tools = [onNode("lap", "Bash")];
    const s = newSession();
    await s.send("a");
    (await on.call(0)).answer(says("", [{ name: "lap__Bash", arguments: {} }]));
    const { callId } = await until("the dispatch", () => on.dispatches[0]);
    await s.port.end();
    await s.port.erase();
    expect(await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: "late" })).toEqual({ taken: "unknown" });
    expect(await s.port.stats()).toMatchObject({ ok: false });
  });
  it("an empty session is ended and emptied without a trace", async () => {
    new Stage().open();
    const s = newSession();
    expect(value(await s.port.end()).report.count).toBe(0);
    await s.port.erase();
    expect(await s.port.history()).toMatchObject({ ok: false });
  });
});
