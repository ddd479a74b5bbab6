/** What jobs may do, and who decides: labels, questions, stop, deletion and secrets. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { CronJob } from "../../../../protocol/gen/types.ts";
import { sessionPort } from "../../../src/platform/stubs.ts";
import type { ModelRequest } from "../../../src/ports/model.ts";
import { says } from "../../session/support.ts";
import { eventually, FAR } from "../../support/gateway.ts";
import {
  add,
  alarm,
  annAndBobWrite,
  asked,
  becomes,
  HOUR,
  hold,
  inside,
  jobStage,
  pass,
  runs,
  shownIn,
  task,
  useWhatsapp,
} from "./support.ts";

const stage = jobStage();
const { calls } = stage;
const WORLD = { label: "world", source: "a web page" } as const;
const WISH = { action: "add", name: "Weather", message: "Tell me the weather.", every: "1d" };
const jobs = async (): Promise<readonly CronJob[]> => (await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs;
const waiting = async () => (await stage.peer.ok<ResultOf<"approval.list">>("approval.list")).approvals;
/** The model makes one call, and then says that it is done. */
const callsOnce =
  (name: string, args: Readonly<Record<string, unknown>>) =>
  ({ messages }: ModelRequest) =>
    messages.at(-1)?.role === "toolResult" ? says("done") : says("", [{ name, arguments: args }]);
const ended = (sessionKey: string, runId: string) =>
  eventually(async () => expect((await sessionPort(env, sessionKey).runEnd(runId)).state).toBe("final"));
/** A message in the owner's conversation, with what it was made from. */
async function message(text: string, taint?: typeof WORLD): Promise<{ readonly key: string; readonly runId: string }> {
  const key = "agent:main:cli:dm:desk";
  const before = stage.answer;
  stage.answer = () => says("hello");
  const first = await stage.peer.ok<{ runId: string }>("chat.send", { sessionKey: key, message: "hello" });
  await ended(key, first.runId);
  stage.answer = before;
  const runId = crypto.randomUUID();
  const { ref } = (await stage.peer.ok<{ ref?: string }>("session.get", { sessionKey: key })) ?? {};
  const identity = { key, ref: ref ?? "desk", agentId: "main", isOwnersSession: true };
  const sent = await sessionPort(env, key).send({
    identity,
    messageId: runId,
    runId,
    text,
    origin: { kind: "client", clientId: "desk" },
    ...(taint === undefined ? {} : { taint }),
  });
  expect(sent.ok).toBe(true);
  return { key, runId };
}

describe("[SC11] [TA1] [TA9] [TH4] who may keep jobs", () => {
  it("the owner's own words make a job without a question", async () => {
    stage.answer = callsOnce("gsv__Cron", WISH);
    const { key, runId } = await message("tell me the weather each day");
    await ended(key, runId);
    expect(await jobs()).toMatchObject([{ name: "Weather" }]);
    expect(await inside((store) => store.list()[0]?.body.taint)).toBeUndefined();
    expect(await waiting()).toEqual([]);
  });
  it("[OM1] a job that the agent makes waits for machines as long as the call says", async () => {
    stage.answer = callsOnce("gsv__Cron", { ...WISH, wait: "8h" });
    const { key, runId } = await message("tell me the weather each day");
    await ended(key, runId);
    expect(await inside((store) => store.list()[0]?.body.spec)).toMatchObject({ mode: "task", waitSeconds: 28_800 });
    stage.answer = callsOnce("gsv__Cron", { ...WISH, name: "Other", wait: "25h" });
    const again = await message("and the other weather");
    await ended(again.key, again.runId);
    expect(await inside((store) => store.list())).toHaveLength(1);
    expect(JSON.stringify(stage.calls.at(-1)?.messages)).toContain("`wait` must be a time such as");
  });
  it("a conversation that has read texts of others asks; the label is stored with the job, and its runs have it", async () => {
    stage.answer = callsOnce("gsv__Cron", WISH);
    const { key, runId } = await message("look at this page", WORLD);
    await eventually(async () => expect(await waiting()).toHaveLength(1));
    const [question] = await waiting();
    expect(question).toMatchObject({
      tool: "gsv__Cron",
      rule: "taint:world",
      why: expect.stringContaining("what the agent does by itself"),
    });
    expect(question?.text).toContain("Tell me the weather.");
    expect(await jobs()).toEqual([]);
    await stage.peer.ok("approval.resolve", { code: question?.code, decision: "allow" });
    await ended(key, runId);
    const [job] = await jobs();
    expect(await inside((store) => store.list()[0]?.body.taint)).toMatchObject({ label: "world" });
    calls.length = 0;
    stage.answer = callsOnce("gsv__WriteFile", { path: "SOUL.md", content: "x" });
    await stage.peer.ok("cron.run", { id: job?.id });
    await eventually(async () => {
      await alarm();
      expect(await waiting()).toMatchObject([{ rule: "taint:world" }]);
    });
    // The run has begun, and its row says that it waits for the owner.
    await eventually(async () => {
      pass(stage, 20_000);
      await alarm();
      expect((await runs(stage, String(job?.id)))[0]).toMatchObject({ status: "running", waits: "owner" });
    });
  });
  it("asks from the fourth job of a run, also when one reply makes all of them, and from the 21st of a day; removed jobs count", async () => {
    const wish = (at: number) => ({ name: "gsv__Cron", arguments: { ...WISH, name: `Weather ${at}` } });
    const four = [0, 1, 2, 3].map(wish);
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("done") : says("", four));
    const first = await message("four jobs");
    await eventually(async () => expect(await jobs()).toHaveLength(3));
    await eventually(async () => expect(await waiting()).toHaveLength(1));
    expect((await waiting())[0]).toMatchObject({
      rule: "mode:auto",
      why: expect.stringMatching(/^This run has made or changed 3 jobs already\./),
    });
    await stage.peer.ok("approval.resolve", { code: (await waiting())[0]?.code, decision: "allow" });
    await ended(first.key, first.runId);
    expect(await jobs()).toHaveLength(4);
    for (const { id } of await jobs()) await stage.peer.ok("cron.remove", { id });

    // One job in each step of a run.
    let left = 4;
    stage.answer = () => (left-- > 0 ? says("", [wish(left)]) : says("done"));
    const second = await message("one after the other");
    await eventually(async () => expect(await waiting()).toHaveLength(1));
    expect(await jobs()).toHaveLength(3);
    await stage.peer.ok("approval.resolve", { code: (await waiting())[0]?.code, decision: "deny" });
    await ended(second.key, second.runId);

    const runOf = async (count: number) => {
      stage.answer = ({ messages }) =>
        messages.at(-1)?.role === "toolResult"
          ? says("done")
          : says(
              "",
              Array.from({ length: count }, (_, at) => wish(at)),
            );
      return message("some jobs");
    };
    for (const count of [3, 3, 3, 3, 1]) {
      const { key, runId } = await runOf(count);
      await ended(key, runId);
    }
    expect(await jobs()).toHaveLength(16);
    const last = await runOf(1);
    await eventually(async () => expect(await waiting()).toHaveLength(1));
    expect((await waiting())[0]?.why).toContain("20 jobs in the last 24 hours");
    await stage.peer.ok("approval.resolve", { code: (await waiting())[0]?.code, decision: "deny" });
    await ended(last.key, last.runId);
    pass(stage, 24 * HOUR + 1);
    const next = await runOf(1);
    await ended(next.key, next.runId);
    expect(await jobs()).toHaveLength(17);
  });
  it("a denied question adds nothing", async () => {
    stage.answer = callsOnce("gsv__Cron", WISH);
    const { key, runId } = await message("look at this page", WORLD);
    await eventually(async () => expect(await waiting()).toHaveLength(1));
    await stage.peer.ok("approval.resolve", { code: (await waiting())[0]?.code, decision: "deny" });
    await ended(key, runId);
    expect(await jobs()).toEqual([]);
  });
  it("a change of a part keeps the higher label; new texts have that of their writer", async () => {
    await add(stage);
    const labelAfter = async (patch: object): Promise<string | undefined> => {
      await stage.peer.ok("cron.update", { id: "report", patch });
      return inside((store) => store.find("report")?.body.taint?.label);
    };
    await inside((store) => {
      const job = store.find("report");
      if (job !== undefined) store.update({ ...job, body: { ...job.body, taint: WORLD } });
    });
    expect(await labelAfter({ schedule: { kind: "every", everyMs: 2 * HOUR } })).toBe("world");
    expect(await labelAfter({ name: "Other" })).toBe("world");
    expect(await labelAfter({ spec: { mode: "task", message: "x" } })).toBe("world");
    expect(await labelAfter({ name: "Mine", spec: { mode: "task", message: "x" } })).toBeUndefined();
  });
  it("a run of a job makes no other job by itself, and looks at jobs without a question", async () => {
    stage.answer = callsOnce("gsv__Cron", { action: "list" });
    await add(stage);
    pass(stage, HOUR);
    await becomes(stage, "ok");
    expect(await waiting()).toEqual([]);
    stage.answer = callsOnce("gsv__Cron", WISH);
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(await waiting()).toMatchObject([{ tool: "gsv__Cron", rule: "protected", sessionKey: "agent:main:cron:report" }]);
    });
    expect(await jobs()).toHaveLength(1);
  });
});

describe("[SC8] the jobs that an agent may change", () => {
  it("[HK11] are its own: another agent's job, a heartbeat and a hook stay as they are, and the runs of the first two are not shown", async () => {
    await stage.peer.ok("agents.create", { agentId: "work" });
    await add(stage, task({ agentId: "work" as never }));
    await stage.peer.ok("heartbeat.set", { every: "30m" });
    await stage.peer.ok("hook.add", { name: "gh", form: "github", target: { kind: "run", spec: { mode: "task", message: "Look." } } });
    pass(stage, HOUR);
    await becomes(stage, "ok");
    const ids = ["report", "heartbeat:main", "hook:gh"];
    const before = await inside((store) => ids.map((id) => store.find(id)));
    expect(before).not.toContain(undefined);
    const actions = [{ action: "update", message: "x" }, { action: "remove" }, { action: "run" }, { action: "runs" }];
    const tried = ids.flatMap((id) => actions.map((args) => ({ name: "gsv__Cron", arguments: { id, ...args } })));
    tried.push({ name: "gsv__Cron", arguments: { action: "runs" } as never });
    calls.length = 0;
    stage.answer = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("done") : says("", tried));
    const { key, runId } = await message("look at the jobs");
    await ended(key, runId);
    const results =
      calls.at(-1)?.messages.flatMap((result) => (result.role === "toolResult" ? [JSON.stringify(result.content)] : [])) ?? [];
    expect(results).toHaveLength(13);
    expect(results.filter((text) => text.includes("There is no job with this id."))).toHaveLength(11);
    expect(results.at(-1)).not.toContain("the report");
    expect(await inside((store) => ids.map((id) => store.find(id)))).toEqual(before);
  });
});

describe("[SC12] [SC6] a question of a job's run", () => {
  it("is a note in the owner's conversation, once, and the answer counts; without an answer it expires", async () => {
    stage.answer = callsOnce("gsv__WriteFile", { path: "SOUL.md", content: "x" });
    await add(stage);
    pass(stage, HOUR);
    await becomes(stage, "running");
    const notes = async () => (await shownIn(stage)).filter((text) => text.includes('The job "Report" waits for your word'));
    await eventually(async () => {
      await alarm();
      expect(await notes()).toHaveLength(1);
    });
    const [question] = await waiting();
    expect((await notes())[0]).toContain(`gsv approval allow ${question?.code}`);
    pass(stage, 20_000);
    await alarm();
    expect(await notes()).toHaveLength(1);
    await stage.peer.ok("approval.resolve", { code: question?.code, decision: "deny" });
    await becomes(stage, "ok");
    expect(asked(calls.at(-1))).toMatch(/denied/i);
  });
  it("[SC5] takes no slot while it waits: a fifth job runs beside four that ask, and those go on after the answers", async () => {
    const wishes = callsOnce("gsv__Cron", WISH);
    stage.answer = (request) => (JSON.stringify(request.messages).includes("Make a job.") ? wishes(request) : says("the report"));
    const four = ["a", "b", "c", "d"];
    for (const id of four) await add(stage, task({ id, spec: { mode: "task", message: "Make a job." } }));
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(await waiting()).toHaveLength(4);
    });
    await add(stage, task({ id: "fifth", schedule: { kind: "at", at: new Date(stage.now + 1_000).toISOString() }, deleteAfterRun: false }));
    pass(stage, 20_000);
    await becomes(stage, "ok", "fifth");
    expect(await waiting()).toHaveLength(4);
    for (const { code } of await waiting()) await stage.peer.ok("approval.resolve", { code, decision: "allow" });
    pass(stage, 20_000);
    for (const id of four) await becomes(stage, "ok", id);
  });
  it("goes to the owner's own direct chat, with its buttons, and to no one who wrote later", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    stage.answer = callsOnce("gsv__WriteFile", { path: "SOUL.md", content: "x" });
    await add(stage);
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(sent).toHaveLength(1);
    });
    const [question] = await waiting();
    expect(sent[0]).toMatchObject({
      kind: "approval",
      peer: { id: "ann" },
      actions: [{ id: `allow ${question?.code}` }, { id: `deny ${question?.code}` }],
    });
    expect(sent[0]?.text).toMatch(/^```\nThe job "Report" waits for your word: gsv__WriteFile/);
  });
});

describe("[SC13] what ends with others", () => {
  it("[SD6] an agent is deleted only with its jobs, in one step", async () => {
    await stage.peer.ok("agents.create", { agentId: "work" });
    await add(stage, task({ agentId: "work" as never }));
    expect(await stage.peer.refused("agents.delete", { agentId: "work" })).toMatchObject({
      reason: "agent.in_use",
      message: expect.stringContaining("a job: report"),
      hint: expect.stringContaining("gsv cron remove"),
    });
    expect(await jobs()).toHaveLength(1);
    await stage.peer.ok("agents.delete", { agentId: "work", sessions: true });
    expect(await jobs()).toEqual([]);
    pass(stage, HOUR);
    await alarm();
    expect(calls).toEqual([]);
  });
  it("[SD1] a run whose conversation is deleted ends; the next time begins a new conversation", async () => {
    const release = hold(stage, "late");
    await add(stage);
    pass(stage, HOUR);
    await becomes(stage, "running");
    const sessionKey = "agent:main:cron:report";
    expect((await stage.peer.refused("session.delete", { sessionKey })).reason).toBe("session.running");
    await stage.peer.ok("session.delete", { sessionKey, stop: true });
    release();
    pass(stage, 20_000);
    await becomes(stage, "error");
    stage.answer = () => says("the report");
    pass(stage, HOUR);
    const run = await becomes(stage, "ok");
    expect(run.summary).toBe("the report");
  });
  it("[ST1] [SC10] a run that the owner stops is no failure of the job, and the job goes on after the resume", async () => {
    const release = hold(stage, "late");
    await add(stage);
    pass(stage, HOUR);
    await becomes(stage, "running");
    await stage.peer.ok("gateway.stop", {});
    release();
    pass(stage, 20_000);
    await becomes(stage, "error");
    expect((await jobs())[0]?.state.failures).toBeUndefined();
    pass(stage, HOUR);
    expect(await becomes(stage, "skipped")).toMatchObject({ error: "GSV is stopped." });
    await stage.peer.ok("gateway.resume", {});
    stage.answer = () => says("the report");
    pass(stage, HOUR);
    await becomes(stage, "ok");
    expect((await jobs())[0]?.state.nextRunAtMs).toBe(FAR + 4 * HOUR);
  });
  it("[A7] no stored secret stays in what is kept of a run", async () => {
    const secret = "sk-test-0123456789abcdef0123456789";
    await stage.peer.ok("config.set", { path: "apiKeys.openai", value: secret });
    stage.answer = () => ({ kind: "failed", error: { reason: "model.auth", message: `The key ${secret} is wrong.` }, retryable: false });
    await add(stage);
    pass(stage, HOUR);
    const run = await becomes(stage, "error");
    expect(run.error).toContain("is wrong");
    expect(JSON.stringify(await runs(stage))).not.toContain(secret);
    expect(JSON.stringify(await inside((store) => store.runs(undefined, Number.MAX_SAFE_INTEGER, 10)))).not.toContain(secret);
  });
});
