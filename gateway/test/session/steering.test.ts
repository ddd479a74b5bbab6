/** Messages during a run, on the real runtime: they steer it, interrupt it or wait, and survive a restart of the object. */
import { abortAllDurableObjects } from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import { textOf } from "../../src/ports/messages.ts";
import type { ChannelOrigin } from "../../src/ports/origin.ts";
import type { SessionPort } from "../../src/ports/session.ts";
import { type ModelCall, newSession, onNode, says, Stage, until, value } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});
const NOTE = [{ name: "gsv__Note", arguments: {} }];
const BASH = [{ name: "lap__Bash", arguments: { command: "make" } }];
const asked = ({ request }: ModelCall): readonly string[] =>
  request.messages.flatMap((message) => (message.role === "user" ? [textOf(message.content)] : [message.role]));
const idle = (port: SessionPort): Promise<true> => until("the session to be idle", async () => value(await port.stats()).state === "idle");
const owner: ChannelOrigin = {
  kind: "channel",
  channel: "test",
  accountId: "default",
  peer: { kind: "dm", id: "me" },
  senderId: "me",
  role: "owner",
};

it("[WB2] the model is shown the message at the next step, and clients are told which run has it", async () => {
  const stage = new Stage().open();
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  const first = await stage.call(0);
  const sent = value(await s.send("s", "use the other branch", { whileBusy: "steer" }));
  expect(sent).toEqual({ status: "started", runId: "run-s", queued: true, steers: "run-a" });
  expect(value(await s.send("s", "use the other branch", { whileBusy: "steer" }))).toEqual({ ...sent, duplicate: true });
  expect(await s.port.runEnd("run-s")).toEqual({ state: "queued" });
  first.answer(says("", NOTE));
  const second = await stage.call(1);
  expect(asked(second)).toEqual(["say a", "assistant", "toolResult", "use the other branch"]);
  second.answer(says("done"));
  expect(await stage.ended("run-a")).toBe("final");
  await idle(s.port);
  const told = stage.news.flatMap(({ payload }) => ("state" in payload && payload.state === "status" && payload.steered ? [payload] : []));
  expect(told).toMatchObject([
    {
      runId: "run-a",
      step: 2,
      steered: { messageId: "s", runId: "run-s" },
      text: "The model now has your message: use the other branch",
      sessionSeq: 5,
    },
  ]);
  expect(stage.ends("run-s")).toEqual([]);
  // A caller that waits for run-s gets the end of the run that the message was shown to.
  expect(await s.port.runEnd("run-s")).toMatchObject({ state: "final", text: "done" });
  expect(value(await s.port.events(0)).events.filter((event) => JSON.stringify(event).includes("steered"))).toHaveLength(1);
});

it("[WB3] [P12] a kill before the step loses nothing and shows nothing twice", async () => {
  const stage = new Stage().open();
  stage.tools = [onNode("lap", "Bash")];
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await stage.call(0)).answer(says("", BASH));
  const { callId } = await until("the call", () => stage.dispatches[0]);
  await s.send("q");
  await s.send("s", "say s", { whileBusy: "steer" });
  await abortAllDurableObjects();
  await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: "made" });
  const second = await stage.call(1);
  expect(asked(second)).toEqual(["say a", "assistant", "toolResult", "say s"]);
  await s.send("t", "say t", { whileBusy: "steer" });
  second.answer(says("done"));
  await abortAllDurableObjects();
  await s.port.resume();
  const texts = await until("the next turn", async () => {
    await s.port.resume();
    const last = stage.calls.at(-1);
    if (last === second || last === undefined) return false;
    if (asked(last).at(-1) === "say s") last.answer(says("done"));
    return asked(last).at(-1) === "say t" && asked(last);
  });
  expect(texts.filter((text) => text === "say s" || text === "say t")).toEqual(["say s", "say t"]);
  expect(value(await s.port.stats()).queueSize).toBe(1);
});

it("[WB4] an interrupting message stops the run with its calls, and is answered before what waits", async () => {
  const stage = new Stage().open();
  stage.tools = [onNode("lap", "Bash")];
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await stage.call(0)).answer(says("", BASH));
  const { callId } = await until("the call", () => stage.dispatches[0]);
  await s.send("q");
  const sent = value(await s.send("i", "say i", { whileBusy: "interrupt" }));
  expect(sent).toMatchObject({ status: "started", runId: "run-i", queued: false, interrupted: "run-a" });
  await until("the cancel", () => stage.cancelled.includes(callId));
  expect(stage.ends("run-a")).toEqual(["aborted"]);
  const next = await stage.call(1);
  expect(asked(next).at(-1)).toContain("say i");
  expect(asked(next).at(-1)).toContain("The previous run was stopped");
  next.answer(says("done"));
  await stage.ended("run-i");
  expect(asked(await stage.call(2)).at(-1)).toBe("say q");
});

it("[WB5] [TH3] a guest's message in a group waits for its turn, whatever it asks for", async () => {
  const stage = new Stage().open();
  const group: ChannelOrigin = { ...owner, peer: { kind: "group", id: "g" } };
  const s = newSession();
  await s.send("a", "say a", { origin: group });
  const first = await stage.call(0);
  const guest: ChannelOrigin = { ...group, senderId: "bob", role: "guest" };
  for (const whileBusy of ["steer", "interrupt"] as const)
    expect(value(await s.send(whileBusy, "run rm", { origin: guest, whileBusy }))).toEqual({
      status: "started",
      runId: `run-${whileBusy}`,
      queued: true,
    });
  first.answer(says("", NOTE));
  expect(JSON.stringify((await stage.call(1)).request.messages)).not.toContain("run rm");
});

it("[WB6] while a call waits for the owner's word, a steering message is no answer to the question", async () => {
  const stage = new Stage().open();
  stage.tools = [onNode("lap", "Bash")];
  stage.toolApproval = { defaultDecision: "ask" };
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await stage.call(0)).answer(says("", BASH));
  const question = await until("the question", () => stage.approvals.at(-1)?.waiting[0]);
  await s.send("s", "allow it", { whileBusy: "steer" });
  expect(value(await s.port.stats()).queueSize).toBe(1);
  expect(stage.dispatches).toEqual([]);
  await s.port.answerApproval({ code: question.code, answer: "deny", by: "client:me" });
  expect(asked(await stage.call(1))).toEqual(["say a", "assistant", "toolResult", "allow it"]);
});

it("[WB8] [R6] /steer is a message for the run, with its settings and without the command", async () => {
  const stage = new Stage().open();
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  const first = await stage.call(0);
  const reply = { channel: "test", accountId: "default", peer: { kind: "dm", id: "me" } } as const;
  const sent = value(await s.send("s", "/steer /t:high use tabs", { origin: owner, reply }));
  expect(sent).toMatchObject({ status: "started", steers: "run-a", directives: { thinkLevel: "high" } });
  expect(value(await s.send("e", "/steer"))).toMatchObject({
    status: "command",
    command: "steer",
    error: expect.stringContaining("/steer use"),
  });
  first.answer(says("", NOTE));
  const second = await stage.call(1);
  expect([asked(second).at(-1), second.request.thinkLevel]).toEqual(["use tabs", "high"]);
  second.answer(says("done"));
  // A client started the run; a sender who steered it from a platform gets the answer there.
  const answer = await until("the answer", () => stage.replies.find((call) => call.kind === "send"));
  expect(answer).toMatchObject({ route: { peer: { id: "me" } }, message: { text: "done" } });
  expect(value(await s.send("again", "/steer go on")).status).toBe("started");
  expect(asked(await stage.call(2)).at(-1)).toBe("go on");
});

it("[WB9] a waiting message is taken back by its run id", async () => {
  const stage = new Stage().open();
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  const first = await stage.call(0);
  await s.send("s", "say s", { whileBusy: "steer" });
  expect(value(await s.port.abort("run-s"))).toMatchObject({ wasRunning: true, runId: "run-s" });
  first.answer(says("", NOTE));
  expect(asked(await stage.call(1))).toEqual(["say a", "assistant", "toolResult"]);
  expect(stage.ends("run-s")).toEqual(["aborted"]);
});
