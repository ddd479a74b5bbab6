/** Tasks whose machine is not connected, with the real gateway, its alarms and real sessions. Only the model, the machine and the clock are fakes. */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { NodeEntry } from "../../../../protocol/gen/types.ts";
import { sessionPort } from "../../../src/platform/stubs.ts";
import { says } from "../../session/support.ts";
import { client, eventually, FAR, gateway, node, type Peer } from "../../support/gateway.ts";
import * as support from "./support.ts";
import { alarm, asked, HOUR, jobStage, task } from "./support.ts";

const stage = jobStage();
const { calls } = stage;
let tests = 0;
/** The job's id, another one in each test: a run that still waits when its test ends disturbs no other test. */
let id = "";
beforeEach(() => {
  id = `report${++tests}`;
});
const add = (more: Parameters<typeof task>[0] = {}) => support.add(stage, task({ id, ...more }));
const MINUTE = 60_000;
const pass = (ms: number): void => support.pass(stage, ms);
const notes = () => support.shownIn(stage);
const listed = async (): Promise<NodeEntry | undefined> => (await stage.peer.ok<ResultOf<"nodes.list">>("nodes.list")).nodes[0];

/** `lap` was connected, and has left. */
async function leave(lap: Peer): Promise<void> {
  lap.socket.close(1000, "bye");
  await eventually(async () => expect((await listed())?.online).toBe(false));
}
async function away(): Promise<void> {
  await stage.peer.ok("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
  await leave(await node("lap"));
  stage.answer = (request) =>
    request.messages.at(-1)?.role === "toolResult"
      ? says(`the machine says ${asked(request).includes("file.txt") ? "file.txt" : "nothing"}`)
      : says("", [{ name: "lap__Bash", arguments: { command: "ls" } }]);
}
/** The run of the job waits for the machine. */
async function waits(jobs = [id], ms = HOUR): Promise<void> {
  pass(ms);
  await eventually(async () => {
    await alarm();
    expect((await listed())?.waiting?.map(({ sessionKey }) => sessionKey)).toEqual(jobs.map((id) => `agent:main:cron:${id}`));
  });
}
/** The machine runs the call that it gets. */
async function runs(lap: Peer, times = 1): Promise<void> {
  await eventually(() => expect(lap.events("tool.invoke")).toHaveLength(times));
  for (const { payload } of lap.events("tool.invoke")) {
    const { callId } = payload as { callId: string };
    await lap.ok("tool.result", { callId, outcome: "ok", result: "file.txt" });
  }
}
/** A run of the job has ended well. */
async function done(job = id): Promise<void> {
  pass(20_000);
  await eventually(async () => {
    await alarm();
    expect((await support.runs(stage, job)).map(({ status }) => status)).toContain("ok");
  });
}
const sessionAlarm = () => runDurableObjectAlarm(env.SESSION.getByName(`agent:main:cron:${id}`));
/** A session counts only time in which it is served. */
async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute++) {
    pass(MINUTE);
    await sessionAlarm();
  }
}
/** The wait of 10 minutes is over, and the run has ended. */
async function over(): Promise<void> {
  await minutes(10);
  await eventually(async () => {
    await sessionAlarm();
    expect((await sessionPort(env, `agent:main:cron:${id}`).runEnd(String((await support.runs(stage, id))[0]?.runId))).state).toBe("final");
  });
  await support.becomes(stage, "error", id);
}
const waitNotes = async (): Promise<readonly string[]> => (await notes()).filter((text) => text.includes("waits for lap"));
const dayNotes = async (): Promise<readonly string[]> => (await notes()).filter((text) => text.includes("for a day"));

describe("a task whose machine is away", () => {
  it("[OM1] [OM2] [OM3] [SC8] waits for 2 hours, runs once when the machine is back, and its answer is delivered", async () => {
    await away();
    await add();
    await waits();
    const [wait] = (await listed())?.waiting ?? [];
    expect(wait).toMatchObject({ tool: "lap__Bash", until: (wait?.since ?? 0) + 2 * HOUR });
    await eventually(async () => {
      pass(20_000);
      await alarm();
      expect((await support.runs(stage, id))[0]).toMatchObject({ status: "running", waits: "machine", machines: ["lap"] });
    });
    pass(90 * MINUTE);
    await runs(await node("lap"));
    await done();
    expect((await notes()).filter((text) => text.includes("the machine says file.txt"))).toHaveLength(1);
    expect((await listed())?.waiting).toBeUndefined();
  });
  it("[OM4] [OM5] [P12] [P16] gateway and sessions are killed while it waits: one call, one answer", async () => {
    await away();
    await add();
    await waits();
    await abortAllDurableObjects();
    stage.peer = await client();
    const lap = await node("lap");
    await runs(lap);
    await done();
    await abortAllDurableObjects();
    stage.peer = await client();
    await alarm();
    expect(lap.events("tool.invoke")).toHaveLength(1);
    expect((await notes()).filter((text) => text.includes("the machine says file.txt"))).toHaveLength(1);
  });
  it("[OM3] a machine that is forgotten meanwhile ends the wait at once", async () => {
    await away();
    await add();
    await waits();
    await stage.peer.ok("node.forget", { nodeId: "lap" });
    await done();
    expect((await notes()).filter((text) => text.includes("the machine says nothing"))).toHaveLength(1);
  });
  it("[OM1] a run is offered the tools of the 4 machines that left last, and of none that left a week ago", async () => {
    await stage.peer.ok("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    for (const name of ["m1", "m2", "m3", "m4", "m5"]) {
      const machine = await node(name);
      pass(MINUTE);
      machine.socket.close(1000, "bye");
      await eventually(async () => {
        const { nodes } = await stage.peer.ok<ResultOf<"nodes.list">>("nodes.list");
        expect(nodes.find(({ nodeId }) => nodeId === name)?.online).toBe(false);
      });
    }
    await add();
    const offered = async () => {
      stage.calls.length = 0;
      await stage.peer.ok("cron.run", { id });
      await eventually(async () => {
        await alarm();
        expect(stage.calls).not.toEqual([]);
      });
      return (stage.calls[0]?.tools ?? []).flatMap(({ name }) => (name.endsWith("__Bash") ? [name] : [])).sort();
    };
    expect(await offered()).toEqual(["m2__Bash", "m3__Bash", "m4__Bash", "m5__Bash"]);
    await done();
    pass(7 * 24 * HOUR);
    expect(await offered()).toEqual([]);
  });
  it("[OM3] what the owner has forbidden meanwhile does not run", async () => {
    await away();
    await add();
    await waits();
    await stage.peer.ok("config.set", { path: "toolApproval.rules", value: [{ id: "no", tool: "lap__*", decision: "deny" }] });
    const lap = await node("lap");
    await done();
    expect((await notes()).filter((text) => text.includes("the machine says nothing"))).toHaveLength(1);
    expect(lap.events("tool.invoke")).toEqual([]);
  });
  it("[OM1] waits as long as the job says; 0: not at all", async () => {
    await away();
    await add({ spec: { mode: "task", message: "Write the report.", waitSeconds: 0 } });
    pass(HOUR);
    await support.becomes(stage, "ok", id);
    expect(asked(stage.calls[1])).toContain("is not connected");
    await add({ id: `${id}s`, spec: { mode: "task", message: "Write the report.", waitSeconds: 600 } });
    await waits([`${id}s`]);
    const [wait] = (await listed())?.waiting ?? [];
    expect((wait?.until ?? 0) - (wait?.since ?? 0)).toBe(600_000);
  });
  it("[OM1] [SC8] a reminder in the main conversation does not wait, so that it holds up no message", async () => {
    await away();
    await add({ schedule: { kind: "at", atMs: FAR + HOUR }, spec: { mode: "systemEvent", text: "Look." } });
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect(stage.calls).toHaveLength(2);
    });
    expect(asked(stage.calls[1])).toContain("make the call again with `wait`");
  });
  it("[OM6] [NT2] the owner is told once, after a minute, in the conversation that the job writes to", async () => {
    await away();
    await add();
    await waits();
    expect(await waitNotes()).toEqual([]);
    pass(MINUTE + 1_000);
    await eventually(async () => {
      await alarm();
      expect(await waitNotes()).toHaveLength(1);
    });
    expect((await waitNotes())[0]).toMatch(
      /^The job "Report" waits for lap, which is not connected, until 2100-01-01 03:00 \(UTC\)\. Start `gsv node` on lap\. To end the run: `gsv stop agent:main:cron:report\d+`\.$/,
    );
    pass(10 * MINUTE);
    await alarm();
    expect(await waitNotes()).toHaveLength(1);
  });
  it("[OM10] [SC1] whose machine never came is an error with the reason, and the owner is told once", async () => {
    await away();
    await add({ spec: { mode: "task", message: "Write the report.", waitSeconds: 600 } });
    await waits();
    await over();
    const [run] = await support.runs(stage, id);
    expect(run).toMatchObject({
      status: "error",
      error: "It is incomplete. The machine lap did not connect within 10 min, so lap__Bash was not run.",
      summary: "the machine says nothing",
    });
    const [job] = (await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs;
    expect(job?.state).toMatchObject({ lastStatus: "error", failures: 1 });
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect((await notes()).filter((text) => text.includes("is incomplete"))).toHaveLength(1);
    });
    expect((await notes()).find((text) => text.includes("is incomplete"))).toContain(`\`gsv cron run ${id}\``);
  });
  it("[OM10] whose machine came for a later call of the run is done", async () => {
    await away();
    await add({ spec: { mode: "task", message: "Write the report.", waitSeconds: 600 } });
    const bash = says("", [{ name: "lap__Bash", arguments: { command: "ls" } }]);
    stage.answer = ({ messages }) => (messages.filter(({ role }) => role === "toolResult").length < 2 ? bash : says("done"));
    await waits();
    const [first] = (await listed())?.waiting ?? [];
    await minutes(10);
    await eventually(async () => {
      await sessionAlarm();
      const [second] = (await listed())?.waiting ?? [];
      expect(second?.since).toBeGreaterThan(first?.since ?? 0);
    });
    await runs(await node("lap"));
    await done();
  });
  /** A run of the job begins a command on `lap`, which then goes away for longer than a call waits. */
  async function breaks(): Promise<string> {
    await stage.peer.ok("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    const lap = await node("lap");
    await add();
    pass(HOUR);
    await alarm();
    await eventually(() => expect(lap.events("tool.invoke")).toHaveLength(1));
    const [{ payload } = { payload: {} }] = lap.events("tool.invoke");
    await leave(lap);
    return (payload as { callId: string }).callId;
  }
  const bash = says("", [{ name: "lap__Bash", arguments: { command: "ls" } }]);
  it("[OM11] whose call gave no result is incomplete, whatever the answer says", async () => {
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("all done") : bash);
    await breaks();
    await minutes(1);
    const run = await support.becomes(stage, "error", id);
    expect(run).toMatchObject({ summary: "all done" });
    expect(run.error).toBe("It is incomplete. lap__Bash gave no result, so it is not known whether it took effect.");
    await eventually(async () => {
      await alarm();
      expect((await notes()).filter((text) => text.includes("is incomplete. lap__Bash gave no result"))).toHaveLength(1);
    });
  });
  it("[OM11] whose call reports late, within the run, is done", async () => {
    let isHeld = true;
    stage.answer = async ({ messages }) => {
      if (messages.at(-1)?.role !== "toolResult") return bash;
      while (isHeld) await scheduler.wait(2);
      return says("all done");
    };
    const callId = await breaks();
    // The alarm ends with what it has begun, here with the call of the model.
    const passing = minutes(1);
    await eventually(() => expect(calls.filter((call) => asked(call).includes("It is not known"))).toHaveLength(1));
    await (await node("lap")).ok("tool.result", { callId, outcome: "ok", result: "file.txt" });
    isHeld = false;
    await passing;
    await done();
  });
  it("[NT14] a digest tells of no wait that is over, and of one that goes on with the time of its end", async () => {
    await away();
    await stage.peer.ok("config.set", { path: "notifications.quietHours", value: { start: "00:30", end: "06:00" } });
    await add({ spec: { mode: "task", message: "Write the report.", waitSeconds: 600 } });
    await add({ id: `${id}b`, name: "Other", spec: { mode: "task", message: "Write the report.", waitSeconds: 8 * 3600 } });
    await waits([id, `${id}b`]);
    await minutes(1);
    pass(1_000);
    await eventually(async () => {
      await alarm();
      expect((await stage.peer.ok<ResultOf<"notifications.list">>("notifications.list")).waiting).toBe(2);
    });
    const before = await notes();
    const listed = async () =>
      (await stage.peer.ok<ResultOf<"notifications.list">>("notifications.list")).notifications.filter(({ text }) =>
        text.includes('"Report" waits'),
      );
    expect((await listed())[0]).not.toHaveProperty("overAt");
    await over();
    expect(await listed()).toMatchObject([{ overAt: expect.any(Number) }]);
    expect((await listed())[0]).not.toHaveProperty("dueAt");
    pass(5 * HOUR);
    let told: readonly string[] = [];
    await eventually(async () => {
      await alarm();
      told = (await notes()).filter((text) => !before.includes(text) && text.includes("notifications since"));
      expect(told).toHaveLength(1);
    });
    expect(told[0]).toContain('The job "Report" is incomplete.');
    expect(told[0]).toContain('The job "Other" waits for lap, which is not connected, until 2100-01-01 09:00 (UTC)');
    expect(told[0]).not.toContain('The job "Report" waits');
  });
  it("[OM7] is checked again as soon as its wait is over, because the report of its end may be lost", async () => {
    await away();
    await add({ spec: { mode: "task", message: "Write the report.", waitSeconds: 90 } });
    await waits();
    const until = (await listed())?.waiting?.[0]?.until ?? 0;
    pass(MINUTE + 1_000);
    await eventually(async () => {
      await alarm();
      expect(await waitNotes()).toHaveLength(1);
    });
    const looks = await runInDurableObject(gateway(), (_gateway, { storage }) =>
      storage.sql.exec<{ check_at: number }>("SELECT check_at FROM cron_runs WHERE job = ? AND check_at IS NOT NULL", id).toArray(),
    );
    expect(looks.map(({ check_at }) => check_at >= until && check_at <= until + 5_000)).toEqual([true]);
  });
  it("[OM7] [SC5] [SC6] waiting runs take no slot and have their time: a fifth job runs, and the others go on after an hour and a half", async () => {
    await away();
    const others = ["a", "b", "c", "d"].map((name) => `${id}${name}`);
    for (const job of others) await add({ id: job });
    await waits(others);
    pass(20_000);
    await alarm();
    const { answer } = stage;
    stage.answer = () => says("the fifth");
    await add({ id: `${id}e`, schedule: { kind: "at", atMs: stage.now + 60_000 } });
    pass(61_000);
    await eventually(async () => {
      await alarm();
      expect(await notes()).toContainEqual(expect.stringContaining("the fifth"));
    });
    stage.answer = answer;
    pass(88 * MINUTE);
    await alarm();
    const lap = await node("lap");
    await runs(lap, 4);
    for (const job of others) await done(job);
  });
});

describe("[OM8] a machine that a job needs and that is away for a day", () => {
  async function missesItsMachine(): Promise<void> {
    await waits();
    await stage.peer.ok("session.get", { sessionKey: `agent:main:cron:${id}` });
  }
  it("is reported once, until it was back and is away again", async () => {
    await away();
    await add({ schedule: { kind: "every", everyMs: 240 * HOUR, anchorMs: FAR + HOUR } });
    await missesItsMachine();
    expect(await dayNotes()).toEqual([]);
    pass(22 * HOUR);
    await alarm();
    expect(await dayNotes()).toEqual([]);
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect(await dayNotes()).toHaveLength(1);
    });
    expect((await dayNotes())[0]).toBe(
      `lap has not been connected for a day, and the job "Report" needs it. Start \`gsv node\` on lap, or let the job pause: \`gsv cron pause ${id}\`.`,
    );
    pass(24 * HOUR);
    await alarm();
    await abortAllDurableObjects();
    stage.peer = await client();
    await alarm();
    expect(await dayNotes()).toHaveLength(1);
    const lap = await node("lap");
    await runs(lap);
    await done();
    await leave(lap);
    await stage.peer.ok("cron.run", { id });
    await waits([id], 0);
    expect(await dayNotes()).toHaveLength(1);
    pass(24 * HOUR);
    await eventually(async () => {
      await alarm();
      expect(await dayNotes()).toHaveLength(2);
    });
  });
  it("is not reported when it was back meanwhile, or when the job is gone", async () => {
    await away();
    await add({ schedule: { kind: "every", everyMs: 240 * HOUR, anchorMs: FAR + HOUR } });
    await missesItsMachine();
    const lap = await node("lap");
    await runs(lap);
    await done();
    await leave(lap);
    pass(48 * HOUR);
    await alarm();
    expect(await dayNotes()).toEqual([]);
    await stage.peer.ok("cron.run", { id });
    await waits([id], 0);
    await stage.peer.ok("cron.remove", { id });
    pass(48 * HOUR);
    await alarm();
    await alarm();
    expect(await dayNotes()).toEqual([]);
  });
});
