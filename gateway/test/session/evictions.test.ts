/** A session on the real runtime that is evicted, killed and woken in the middle of everything: one answer, and no call made twice. */
import { abortAllDurableObjects, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import { durable, idle, newSession, onNode, says, Stage, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

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
    const built = { callId: asCallId(callId), outcome: "ok", result: "built" } as const;
    // The gateway may have lost its record of the call.
    const call = { name: "lap__Bash", runId: "run-a" };
    expect(await s.port.toolResult("lap", built)).toEqual({ taken: "taken", call });
    expect(await s.port.toolResult("lap", built)).toEqual({ taken: "duplicate", call });
    expect(await s.port.toolResult("evil", built)).toEqual({ taken: "duplicate" });
    expect(await s.port.toolResult("evil", { ...built, callId: asCallId(`${s.identity.ref}/r1/2/0`) })).toEqual({ taken: "duplicate" });
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
    ).toMatchObject({ taken: "taken" });
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
