/** Heartbeats with the real gateway, its alarm and real sessions. Only the model and the clock are made up. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { HeartbeatState, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { Gateway } from "../../../src/app/gateway-do.ts";
import { sessionPort } from "../../../src/platform/stubs.ts";
import { LedgerStore } from "../../../src/features/spend/ledger-store.ts";
import { createWorkspaceStore } from "../../../src/storage/workspace/store.ts";
import { says, value } from "../../session/support.ts";
import { channelEntrypoint, client, eventually, FAR, gateway } from "../../support/gateway.ts";
import { add, alarm, annAndBobWrite, asked, HOUR, hold, inside, jobStage, pass, shownIn, useWhatsapp } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const { calls } = stage;
const MAIN = "agent:main:main";
const BEAT = "heartbeat:main";
const HALF = HOUR / 2;
const OWNER = { session: MAIN, agent: "main", guest: "" };
const workspace = createWorkspaceStore(env.STORAGE);
const instructions = async (text: string): Promise<void> => void value(await workspace.write("main", "HEARTBEAT.md", text));
const on = (more: object = {}) => stage.peer.ok<ResultOf<"heartbeat.set">>("heartbeat.set", { every: "30m", ...more });
const status = async (): Promise<HeartbeatState> => {
  const { main } = (await stage.peer.ok<ResultOf<"heartbeat.status">>("heartbeat.status")).states;
  if (main === undefined) throw new Error("main has no entry");
  return main;
};
const newest = () => inside((store) => store.runs(BEAT, Number.MAX_SAFE_INTEGER, 1)[0]);
/** Fires the alarm until the newest time of the heartbeat has this status. */
const becomes = (wanted: string) =>
  eventually(async () => {
    await alarm();
    expect((await newest())?.status).toBe(wanted);
  });
const write = (text: string): Promise<unknown> =>
  stage.peer.ok("chat.send", { sessionKey: MAIN, message: text, messageId: crypto.randomUUID() });
const idle = () => eventually(async () => expect((await sessionPort(env, MAIN).resume()).busy).toBe(false));

describe("[HB1] [HB8] the settings of a heartbeat", () => {
  it("is off at first; it is switched on and off, and a wrong setting is refused by each way", async () => {
    expect(await status()).toEqual({ enabled: false, runs: 0, costUsd: 0, skipped: {} });
    const { state } = await on({ target: "none", activeHours: { start: "08:00", end: "22:00", timezone: "UTC" } });
    expect(state).toMatchObject({ enabled: true, everyMs: HALF, target: "none", nextRunAtMs: FAR + 8 * HOUR });
    await stage.peer.ok("heartbeat.set", { every: "2h" });
    expect(await status()).toMatchObject({ everyMs: 2 * HOUR, activeHours: { start: "08:00", end: "22:00", timezone: "UTC" } });
    for (const [path, wrong] of [
      ["agents.defaultHeartbeat.every", "often"],
      ["agents.list[0].heartbeat.target", "somewhere"],
      ["agents.list[0].heartbeat.activeHours.start", "25:00"],
    ])
      expect((await stage.peer.refused("config.set", { path, value: wrong })).reason, path).toBe("config.invalid");
    expect(await stage.peer.refused("heartbeat.set", { every: "1s" })).toMatchObject({
      reason: "config.invalid",
      hint: expect.stringContaining("`gsv heartbeat status`"),
    });
    expect((await stage.peer.refused("heartbeat.set", { agentId: "none", every: "1h" })).reason).toBe("agent.unknown");
    await stage.peer.ok("heartbeat.set", { every: "0" });
    expect(await status()).toMatchObject({ enabled: false });
    expect(await inside((store) => store.beats())).toEqual([]);
    expect(await stage.peer.ok("heartbeat.start")).toMatchObject({ message: expect.stringContaining("gsv heartbeat on") });
  });
  it("that is switched off and on again keeps what happened; a removed agent leaves nothing to one of its name", async () => {
    await on({ target: "none" });
    pass(stage, HALF);
    await becomes("skipped");
    await instructions("- look at the mail");
    pass(stage, HALF);
    await becomes("ok");
    const before = await status();
    expect(before).toMatchObject({ runs: 1, skipped: { empty: 1 }, lastStatus: "ok" });
    const { runs, costUsd, skipped, lastRunAtMs } = before;
    await stage.peer.ok("heartbeat.set", { every: "0" });
    expect(await status(), "also while it is off").toMatchObject({ enabled: false, runs, costUsd, skipped, lastRunAtMs });
    expect(await on()).toMatchObject({ state: { enabled: true, runs, costUsd, skipped, lastRunAtMs } });

    // The run that goes on while it is switched off is of the heartbeat too.
    const held = hold(stage, "no mail");
    pass(stage, HALF);
    await becomes("running");
    await stage.peer.ok("heartbeat.set", { every: "0" });
    held();
    await becomes("ok");
    expect(await status()).toMatchObject({ enabled: false, runs: 2 });

    await stage.peer.ok("agents.create", { agentId: "work" });
    await stage.peer.ok("heartbeat.set", { agentId: "work", every: "30m" });
    pass(stage, HALF);
    await eventually(async () => {
      await alarm();
      expect(await inside((store) => store.runs("heartbeat:work", Number.MAX_SAFE_INTEGER, 5))).toHaveLength(1);
    });
    await stage.peer.ok("heartbeat.set", { agentId: "work", every: "0" });
    await stage.peer.ok("agents.delete", { agentId: "work", sessions: true });
    await stage.peer.ok("agents.create", { agentId: "work" });
    const { work } = (await stage.peer.ok<ResultOf<"heartbeat.status">>("heartbeat.status")).states;
    expect(work).toEqual({ enabled: false, runs: 0, costUsd: 0, skipped: {} });
  });
  it("follows the configuration for all agents, and is no job in the lists of jobs", async () => {
    await stage.peer.ok("agents.create", { agentId: "work" });
    await stage.peer.ok("config.set", { path: "agents.defaultHeartbeat", value: { every: "1h" } });
    const { agents, states, message } = await stage.peer.ok<ResultOf<"heartbeat.start">>("heartbeat.start");
    expect(message).toBe("2 agents have a heartbeat.");
    expect(agents).toEqual(states);
    expect(states).toMatchObject({ main: { everyMs: HOUR }, work: { everyMs: HOUR } });
    pass(stage, HOUR);
    await becomes("skipped");
    await add(stage);
    expect(await stage.peer.ok("cron.list")).toMatchObject({ jobs: [{ id: "report" }], count: 1 });
    expect(await stage.peer.ok("cron.runs")).toEqual({ runs: [], count: 0 });
    // A heartbeat holds no agent back.
    await stage.peer.ok("agents.delete", { agentId: "work", sessions: true });
    expect((await inside((store) => store.beats())).map(({ agentId }) => agentId)).toEqual(["main"]);
  });
});

describe("[HB2] [HB3] [P16] a heartbeat with nothing to do", () => {
  it("calls no model on a whole day with an empty HEARTBEAT.md; each time is one alarm and one row", async () => {
    await instructions("# Rounds\n\n<!-- - look at the mail -->\n");
    await on();
    const fired = vi.spyOn(Gateway.prototype, "alarm");
    for (let beat = 1; beat <= 48; beat++) {
      pass(stage, HALF);
      await alarm();
    }
    expect(calls).toEqual([]);
    expect(fired.mock.calls.length).toBe(48);
    const rows = await inside((store) => store.runs(BEAT, Number.MAX_SAFE_INTEGER, 200));
    expect(rows.map(({ ts }) => (ts - FAR) / HALF).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 48 }, (_, n) => n + 1));
    expect(new Set(rows.map(({ status: is, body }) => `${is} ${body.reason}`))).toEqual(new Set(["skipped empty"]));
    expect(await status()).toMatchObject({
      runs: 0,
      costUsd: 0,
      skipped: { empty: 48 },
      lastReason: "HEARTBEAT.md has no task.",
      lastSkip: "empty",
    });
  });
  it("sets no alarm outside the active hours, in the owner's zone", async () => {
    await stage.peer.ok("config.set", { path: "userTimezone", value: "America/New_York" });
    await on({ activeHours: { start: "09:00", end: "10:00" } });
    // New York is five hours behind on the first of January.
    const times: number[] = [];
    for (let beat = 0; beat < 4; beat++) {
      const { nextRunAtMs = 0 } = await status();
      times.push((nextRunAtMs - FAR) / HALF);
      pass(stage, nextRunAtMs - stage.now);
      await alarm();
    }
    expect(times).toEqual([28, 29, 76, 77]);
  });
  it("[HB7] looks too late: the hours are over", async () => {
    await instructions("- look at the mail");
    await on({ activeHours: { start: "09:00", end: "10:00" } });
    pass(stage, 10.2 * HOUR);
    await becomes("skipped");
    expect((await newest())?.body).toMatchObject({ reason: "hours" });
    expect(calls).toEqual([]);
  });
});

describe("[HB4] the conditions of HEARTBEAT.md", () => {
  it("only a true one calls the model, which is told; a restart does not find it true again", async () => {
    stage.answer = () => says("HEARTBEAT_OK");
    await instructions("---\nwhen:\n  - every: 1d at 06:00\n  - file_changed: notes/in.md\n---\n- look at the notes");
    await on();
    for (let beat = 1; beat <= 11; beat++) {
      pass(stage, HALF);
      await becomes("skipped");
    }
    expect(calls).toEqual([]);
    pass(stage, HALF);
    await becomes("ok");
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain("True now: every: 1d at 06:00.");
    await abortAllDurableObjects();
    stage.peer = await client();
    pass(stage, HALF);
    await becomes("skipped");
    value(await workspace.write("main", "notes/in.md", "the mail is here"));
    pass(stage, HALF);
    await becomes("ok");
    expect(calls).toHaveLength(2);
    expect(asked(calls[1])).toContain("True now: file_changed: notes/in.md.");
    expect(await status()).toMatchObject({ runs: 2, skipped: { not_due: 12 } });
  });
  it("stands still only while the file and the channels say so, and not when it is off", async () => {
    await on();
    await instructions("---\nunread: fax\n---\n- look");
    expect(await status(), "before a look").toMatchObject({
      problem: expect.stringContaining("`unread: fax` in HEARTBEAT.md names a channel"),
    });
    expect(await status(), "no time is announced").not.toHaveProperty("nextRunAtMs");
    const coming = async () => (await stage.peer.ok<ResultOf<"cron.upcoming">>("cron.upcoming", {})).next;
    expect(await coming()).toEqual([]);
    const away = vi.spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "get").mockRejectedValue(new Error("away"));
    expect(await coming(), "a file that can't be read now blocks nothing").toHaveLength(1);
    away.mockRestore();
    await stage.peer.ok("heartbeat.trigger");
    expect(await status()).toMatchObject({ problem: expect.stringContaining("`unread: fax`"), skipped: { wrong: 1 } });
    await instructions("- look");
    const repaired = await status();
    expect([repaired.nextRunAtMs, (await coming()).length]).toEqual([expect.any(Number), 1]);
    expect([repaired.problem, repaired.lastSkip, repaired.lastReason, repaired.lastStatus]).toEqual([
      undefined,
      undefined,
      undefined,
      "skipped",
    ]);
    await instructions("---\nunread: fax\n---\n- look");
    await stage.peer.ok("heartbeat.trigger");
    await stage.peer.ok("heartbeat.set", { every: "0" });
    const off = await status();
    expect([off.enabled, off.problem, off.lastSkip, off.lastReason]).toEqual([false, undefined, undefined, undefined]);
    await stage.peer.ok("heartbeat.set", { every: "30m" });
    await instructions("---\nexec: nowhere true\n---\n- look");
    await stage.peer.ok("heartbeat.trigger");
    expect(await status()).toMatchObject({ lastSkip: "wrong", lastReason: expect.stringContaining("`exec: nowhere true`") });
    // The words of the reason do not matter: the row names the condition.
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      storage.sql.exec("UPDATE cron_runs SET body = json_set(body, '$.error', 'In other words.') WHERE status = 'skipped'");
    });
    expect(await status()).toMatchObject({ lastSkip: "wrong", lastReason: "In other words." });
  });
  it("names every wrong line of the form, of channels and of machines, before and after a look, as a check does", async () => {
    await on();
    const told = async (...wanted: readonly string[]): Promise<void> => {
      for (const look of [false, true]) {
        if (look) await stage.peer.ok("heartbeat.trigger");
        const { problem = "" } = await status();
        for (const part of wanted) expect(problem, String(look)).toContain(part);
      }
      const { lastReason = "" } = await status();
      for (const part of wanted) expect(lastReason).toContain(part);
      const { conditions } = await stage.peer.ok<ResultOf<"heartbeat.check">>("heartbeat.check", {});
      expect(conditions.filter(({ state }) => state === "wrong")).toHaveLength(wanted.length - 1);
    };
    await instructions("---\nunread: fax\nexec: nowhere true\nevery: 2h\n---\n- look");
    await told("2 wrong lines", "`unread: fax`: it names a channel", "`exec: nowhere true`: it names the machine nowhere");
    await instructions("---\nunread: fax\nexec: nowhere true\nhttp_changed: https://a:secret@example.org/\nfoo: bar\n---\n- look");
    await told(
      "4 wrong lines",
      "Line 4, `http_changed: https://***@example.org/`",
      "Line 5, `foo: bar`",
      "`unread: fax`",
      "`exec: nowhere true`",
    );
  });
  it("unread: a message of someone else on the channel wakes it once, one of the owner's own does not", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    await instructions("---\nunread: whatsapp\n---\n- look who has written");
    await on();
    const writes = async (id: string, message: string): Promise<void> => {
      sent.length = 0;
      stage.answer = () => says("well");
      pass(stage, 1_000);
      await channelEntrypoint("whatsapp").inbound({
        account: { channel: "whatsapp", accountId: "default" },
        inbound: {
          peer: { kind: "dm", id },
          sender: { id },
          message: { id: message, text: "hello again", timestamp: stage.now },
          receivedAt: stage.now,
        },
      });
      await eventually(() => expect(sent).toHaveLength(1));
    };
    const beat = async (wanted: string): Promise<void> => {
      await idle();
      calls.length = 0;
      stage.answer = () => says("HEARTBEAT_OK");
      const before = (await newest())?.id;
      pass(stage, HALF);
      await eventually(async () => {
        await alarm();
        const row = await newest();
        expect(row?.id).not.toBe(before);
        expect(row?.status).toBe(wanted);
      });
      expect(calls).toHaveLength(wanted === "ok" ? 1 : 0);
    };
    // What was written before the first look is not new.
    await beat("skipped");
    await writes("ann", "m-2");
    await beat("skipped");
    await writes("bob", "m-3");
    await beat("ok");
    expect(asked(calls[0])).toContain("True now: unread: whatsapp.");
    await beat("skipped");
    expect(await status()).toMatchObject({ lastSkip: "not_due" });
    await instructions("---\nunread: fax\n---\n- look");
    await beat("skipped");
    expect(await status()).toMatchObject({ lastSkip: "wrong", lastReason: expect.stringContaining("`unread: fax`") });
  });
  it("a line that is no condition is shown, and no model is called", async () => {
    await instructions("---\nread: whatsapp\n---\n- look");
    await on();
    pass(stage, HALF);
    await becomes("skipped");
    expect(await status()).toMatchObject({ problem: expect.stringContaining("`read: whatsapp`"), skipped: { wrong: 1 } });
    expect(calls).toEqual([]);
  });
});

describe("[HB5] [HB6] the answer of a heartbeat", () => {
  it("is shown to no one before it is whole, also not to a client that comes meanwhile", async () => {
    await instructions("- look at the mail");
    await on();
    await stage.peer.ok("session.subscribe", { sessionKey: MAIN });
    let goOn = false;
    stage.answer = async ({ onText }) => {
      onText("HEARTBEAT_");
      onText("OK all is quiet");
      while (!goOn) await scheduler.wait(2);
      return says("HEARTBEAT_OK all is quiet");
    };
    pass(stage, HALF);
    await alarm();
    await eventually(() => expect(calls).toHaveLength(1));
    const late = await client();
    const joined = await late.ok("session.subscribe", { sessionKey: MAIN, afterSeq: 0 });
    goOn = true;
    await becomes("ok");
    // The answer of a person's message comes as it is written.
    stage.answer = ({ onText }) => {
      onText("a live word");
      return says("a live word");
    };
    await write("hello");
    await stage.peer.event("chat", ({ state }) => state === "final");
    const seen = JSON.stringify([joined, stage.peer.events(), late.events()]);
    expect(seen).toContain('"state":"delta","text":"a live word"');
    expect(seen).not.toContain("quiet");
    expect(seen).not.toContain("HEARTBEAT_");
  });
  it("that says nothing is shown to no one, and later runs do not read it", async () => {
    stage.answer = () => says("hello to you");
    await write("hello");
    await eventually(() => expect(calls).toHaveLength(1));
    await idle();
    const before = JSON.stringify(calls[0]?.messages[0]);
    await instructions("- look at the mail");
    await on();
    stage.answer = () => says("**HEARTBEAT_OK** all is quiet");
    pass(stage, HALF);
    await becomes("ok");
    expect(calls).toHaveLength(2);
    expect(asked(calls[1])).toContain("This is a heartbeat");
    // The heartbeat itself reads the conversation.
    expect(JSON.stringify(calls[1]?.messages[0])).toBe(before);
    expect(JSON.stringify(await shownIn(stage, MAIN))).not.toContain("quiet");
    for (const evict of [false, true]) {
      if (evict) await abortAllDurableObjects();
      if (evict) stage.peer = await client();
      stage.answer = () => says("well");
      await write("how are you");
      const count = evict ? 4 : 3;
      await eventually(() => expect(calls).toHaveLength(count));
      await idle();
      const read = JSON.stringify(calls.at(-1)?.messages);
      expect(read).toContain("hello to you");
      expect(read).not.toContain("heartbeat");
      expect(read).not.toContain("HEARTBEAT_OK");
    }
  });
  it("without a direct chat is shown at the command line, once", async () => {
    const sessionKey = "agent:main:cli:dm:main";
    await stage.peer.ok("chat.send", { sessionKey, message: "hello", messageId: crypto.randomUUID(), runId: crypto.randomUUID() });
    await idle();
    await instructions("- look at the mail");
    await on();
    stage.answer = () => says("The mail server is down.");
    pass(stage, HALF);
    await becomes("ok");
    expect(
      (await shownIn(stage, sessionKey)).filter((text) => /^The heartbeat says:\s+The mail server is down\.$/.test(text)),
    ).toHaveLength(1);
    stage.answer = () => says("HEARTBEAT_OK");
    pass(stage, HALF);
    await becomes("ok");
    expect((await shownIn(stage, sessionKey)).filter((text) => text.includes("heartbeat"))).toHaveLength(1);
  });
  it("that says something stays in the conversation and goes to the owner's last direct chat, not to who wrote later", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    await idle();
    await instructions("- look at the mail");
    await on();
    stage.answer = () => says("The mail server is down.");
    pass(stage, HALF);
    await becomes("ok");
    expect(sent).toMatchObject([{ kind: "answer", peer: { id: "ann" }, text: "The mail server is down." }]);
    await on({ target: "none" });
    pass(stage, HALF);
    await becomes("ok");
    await on({ target: "whatsapp/default/dm/bob" });
    stage.answer = () => says("Bob, the mail is down.");
    pass(stage, HALF);
    await becomes("ok");
    expect(sent.slice(1)).toMatchObject([{ peer: { id: "bob" }, text: "Bob, the mail is down." }]);
    expect(calls.at(-1)?.messages.filter((message) => JSON.stringify(message).includes("The mail server is down."))).toHaveLength(2);
  });
});

describe("[K28] [P16] [SC1] a heartbeat that is killed", () => {
  const prepared = async (): Promise<OutboundMessage[]> => {
    const sent = useWhatsapp();
    await stage.peer.ok("config.set", { path: "channels.whatsapp", value: { allowFrom: ["bob"] } });
    await instructions("- look at the mail");
    await on({ target: "whatsapp/default/dm/bob" });
    return sent;
  };
  const restart = async (): Promise<void> => {
    await abortAllDurableObjects();
    stage.peer = await client();
  };
  it("between the claim, the look and the begin: one run, one delivery", async () => {
    const sent = await prepared();
    pass(stage, HALF);
    await inside((store) => {
      const job = store.find(BEAT);
      if (job === undefined) throw new Error("no heartbeat");
      const run = store.take(job, { start: FAR + HALF, missed: [], missedCount: 0 }, FAR + HOUR, stage.now, false);
      if (run === undefined) throw new Error("not taken");
    });
    await restart();
    await inside((store) => {
      const job = store.find(BEAT);
      const run = store.open(BEAT);
      if (job !== undefined && run !== undefined)
        store.wake(job, run.id, { marks: { "every: 1h": stage.now } }, { because: ["every: 1h"] }, stage.now);
    });
    await restart();
    await becomes("ok");
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain("True now: every: 1h.");
    expect(sent).toHaveLength(1);
  });
  it("in the run, and between the delivery and its row: one run, one delivery", async () => {
    const sent = await prepared();
    const release = hold(stage, "the mail is down");
    pass(stage, HALF);
    await becomes("running");
    await evict(gateway());
    stage.peer = await client();
    release();
    pass(stage, 20_000);
    await becomes("ok");
    expect(sent).toHaveLength(1);
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE cron_runs SET status = 'running', check_at = ?", stage.now);
    });
    await evict(gateway());
    stage.peer = await client();
    pass(stage, 20_000);
    await becomes("ok");
    expect(calls).toHaveLength(1);
    expect(new Set(sent.map(({ deliveryId }) => deliveryId)).size).toBe(1);
  });
  /** The gateway is killed between the delivery and its row. */
  const killed = async (): Promise<void> => {
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE cron_runs SET status = 'running', check_at = ?", stage.now);
    });
    await restart();
    pass(stage, 20_000);
    await becomes("ok");
  };
  const beats = async (): Promise<void> => {
    await idle();
    await instructions("- look at the mail");
    await on({ target: "last" });
    stage.answer = () => says("The mail server is down.");
    pass(stage, HALF);
    await becomes("ok");
  };
  it("[HB6] sends again to the same conversation at the command line, although the owner has written in another one since", async () => {
    const [one, two] = ["agent:main:cli:dm:one", "agent:main:cli:dm:two"];
    const writes = async (sessionKey: string) => {
      pass(stage, 60_000);
      await stage.peer.ok("chat.send", { sessionKey, message: "hello", messageId: crypto.randomUUID(), runId: crypto.randomUUID() });
    };
    const toldThere = async (sessionKey: string) =>
      (await shownIn(stage, sessionKey)).filter((text) => text.startsWith("The heartbeat says:")).length;
    await writes(one);
    await beats();
    await writes(two);
    await killed();
    expect([await toldThere(one), await toldThere(two)]).toEqual([1, 0]);
  });
  it("[HB6] sends again to the same direct chat, although the owner has one since", async () => {
    const sessionKey = "agent:main:cli:dm:one";
    await stage.peer.ok("chat.send", { sessionKey, message: "hello", messageId: crypto.randomUUID(), runId: crypto.randomUUID() });
    await beats();
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    sent.length = 0;
    await killed();
    expect(sent).toEqual([]);
  });
});

describe("[HB7] a heartbeat that may not run now", () => {
  it("while a run goes on is skipped, with the reason; the one after it runs", async () => {
    const release = hold(stage, "done");
    await instructions("- look at the mail");
    await on();
    await write("a long task");
    await eventually(() => expect(calls).toHaveLength(1));
    pass(stage, HALF);
    await becomes("skipped");
    expect((await newest())?.body).toMatchObject({ reason: "busy", error: "A run goes on in the main conversation." });
    release();
    await idle();
    pass(stage, HALF);
    await becomes("ok");
    expect(calls).toHaveLength(2);
    expect(await status()).toMatchObject({ runs: 1, skipped: { busy: 1 } });
  });
  it("[SC10] [ST1] while GSV is stopped, and when a limit is used up, calls no model", async () => {
    await instructions("- look at the mail");
    await on();
    await stage.peer.ok("gateway.stop", {});
    pass(stage, HALF);
    await becomes("skipped");
    await stage.peer.ok("gateway.resume", {});
    await stage.peer.ok("config.set", { path: "limits.dayCostUsd", value: 0 });
    pass(stage, HALF);
    await eventually(async () => {
      await alarm();
      expect((await newest())?.body.reason).toBe("budget");
    });
    expect((await status()).skipped).toEqual({ stopped: 1, budget: 1 });
    expect(calls).toEqual([]);
  });
  it("[SP10] calls the model again when the owner has allowed more than the limit", async () => {
    await instructions("- look at the mail");
    await on();
    await stage.peer.ok("config.set", { path: "limits.dayCostUsd", value: 0 });
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      const period = new Date(stage.now).toISOString().slice(0, 10);
      new LedgerStore(storage).raise({ id: "limit/1", scope: "day", unit: "costUsd", period, amount: 1 }, OWNER);
    });
    pass(stage, HALF);
    await becomes("ok");
    expect(calls).toHaveLength(1);
  });
});

describe("[HB8] a heartbeat by hand", () => {
  it("says why nothing was run, and runs outside of the hours and without a true condition", async () => {
    const trigger = () => stage.peer.ok<ResultOf<"heartbeat.trigger">>("heartbeat.trigger");
    expect(await trigger()).toMatchObject({ ok: true, skipped: true, skipReason: "off" });
    await on({ activeHours: { start: "09:00", end: "10:00" } });
    expect(await trigger()).toMatchObject({ skipped: true, skipReason: "empty", message: "HEARTBEAT.md has no task." });
    await instructions("---\nevery: 1d at 06:00\n---\n- look");
    pass(stage, 1_000);
    expect(await trigger()).toEqual({ ok: true, message: "The heartbeat of main runs in its main conversation." });
    await becomes("ok");
    expect(calls).toHaveLength(1);
    expect((await stage.peer.refused("heartbeat.trigger", { agentId: "none" })).reason).toBe("agent.unknown");
  });
});
