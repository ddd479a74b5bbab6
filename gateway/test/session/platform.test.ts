/** Runs whose message came from a platform: the answer is sent there once, and people see that the agent is typing. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId } from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../../src/ports/gateway.ts";
import type { ReplyCall } from "../../src/ports/channels.ts";
import type { ReplyRoute } from "../../src/ports/session.ts";
import { sessionPort } from "../../src/platform/stubs.ts";
import { env } from "cloudflare:workers";
import { newSession, onNode, says, Stage, type TestSession, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

const ROUTE: ReplyRoute = { channel: "test", accountId: "default", peer: { kind: "dm", id: "anna" }, replyToId: "q1" };
afterEach(() => {
  vi.restoreAllMocks();
});
const over = (s: TestSession, id: string) =>
  sessionPort(env, s.identity.key).send({
    identity: s.identity,
    messageId: id,
    runId: `run-${id}`,
    text: `say ${id}`,
    origin: { kind: "channel", channel: "test", accountId: "default", senderId: "anna", role: "owner" },
    reply: ROUTE,
  });
const sent = (stage: Stage) => stage.replies.flatMap((call: ReplyCall) => (call.kind === "send" ? [call.message] : []));
const quiet = (s: TestSession): Promise<true> =>
  until("everything to be sent", async () => value(await s.port.stats()).state === "idle" && !(await s.port.resume()).busy);

const textIn = (payload: SessionNews["payload"]): string => ("text" in payload ? (payload.text ?? "") : "");

describe("[P9] [P10] the end of a run", () => {
  it("the answer goes to the platform of the question, and typing is shown", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await over(s, "a");
    const call = await stage.call(0);
    await until("typing", () => stage.replies.some((reply) => reply.kind === "typing" && reply.active));
    call.answer(says("Hello Anna"));
    await until("the answer", () => sent(stage).length === 1);
    expect(sent(stage)).toEqual([
      { deliveryId: `${s.identity.ref}/r1`, kind: "answer", peer: ROUTE.peer, text: "Hello Anna", replyToId: "q1" },
    ]);
    await quiet(s);
    expect(sent(stage)).toHaveLength(1);
  });

  it("[P2] [W22] a quiet message costs no model call, and the model sees it with the next message", async () => {
    const stage = new Stage().open();
    const texts: unknown[] = [];
    stage.auto = ({ messages }) => {
      texts.push(messages.map(({ content }) => content));
      return says("Hello");
    };
    const s = newSession();
    const known = (id: string) =>
      sessionPort(env, s.identity.key).send({
        identity: s.identity,
        messageId: id,
        runId: `run-${id}`,
        text: `know ${id}`,
        origin: { kind: "channel", channel: "test", accountId: "default", senderId: "anna", role: "owner" },
        quiet: true,
      });
    await known("late");
    await known("late");
    await quiet(s);
    expect(texts).toEqual([]);
    await over(s, "a");
    await until("the answer", () => sent(stage).length === 1);
    await quiet(s);
    expect(texts).toEqual([["know late", "say a"]]);
  });

  it("[W4] an error is sent to the platform too", async () => {
    const stage = new Stage().open();
    stage.auto = () => ({ kind: "failed", error: { reason: "model.auth", message: "The provider refused the key." }, retryable: false });
    const s = newSession({ isOwnersSession: true });
    await over(s, "a");
    await until("the error", () => sent(stage).length === 1);
    expect(sent(stage)[0]).toMatchObject({ kind: "error", text: "The provider refused the key." });
  });
  it("[NT10] of a guest or a group an error is one neutral sentence, for their model too, and the gateway gets the cause", async () => {
    const stage = new Stage().open();
    const error = { reason: "model.auth", message: "The provider refused the key sk-12." } as const;
    stage.auto = () => ({ kind: "failed", error, retryable: false });
    const calls: ReplyCall[] = [];
    stage.reply = async (call) => {
      calls.push(call);
      return { ok: true, value: undefined };
    };
    const s = newSession();
    await over(s, "a");
    await until("the error", () => calls.some(({ kind }) => kind === "send"));
    const call = calls.find((each) => each.kind === "send");
    expect(call?.message).toMatchObject({
      kind: "error",
      text: "Something went wrong, and I can't answer this now. Please try again later.",
    });
    expect(call?.cause).toMatchObject({ sessionKey: s.identity.key, reason: error.reason, text: error.message, runId: "run-a" });
    const seen: string[] = [];
    stage.auto = (request) => {
      seen.push(JSON.stringify(request));
      return { kind: "failed", error: { reason: "budget.day", message: "I can't answer any more today." }, retryable: false };
    };
    await over(s, "b");
    await until("the second error", () => calls.filter(({ kind }) => kind === "send").length === 2);
    expect(seen.join()).toContain("The previous run ended early.");
    expect(seen.join()).not.toContain("refused the key");
    // A limit of the day is said in words that are meant for guests.
    const second = calls.findLast((each) => each.kind === "send");
    expect([second?.message.text, second?.cause]).toEqual(["I can't answer any more today.", undefined]);
  });

  it("a stop is sent to the platform, also for a message that had not begun", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await over(s, "a");
    await stage.call(0);
    await over(s, "b");
    await s.port.abort("run-b");
    await s.port.abort(undefined);
    await until("both ends", () => sent(stage).length === 2);
    expect(sent(stage).map(({ text }) => text)).toEqual(["Stopped by the user before it began.", "Stopped by the user."]);
    expect(new Set(sent(stage).map(({ deliveryId }) => deliveryId)).size).toBe(2);
  });

  it("[W10] an unreachable channel gets the answer later with the same id, also after an eviction", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("Hello");
    let away = true;
    stage.reply = (call) =>
      away && call.kind === "send" ? Promise.reject(new Error("the channel is away")) : Promise.resolve({ ok: true, value: undefined });
    const s = newSession();
    await over(s, "a");
    await until("a first try", () => sent(stage).length >= 1);
    away = false;
    await evict(s.stub);
    await until("another life to send it", async () => {
      await runDurableObjectAlarm(s.stub);
      return sent(stage).length >= 2;
    });
    expect(new Set(sent(stage).map(({ deliveryId }) => deliveryId))).toEqual(new Set([`${s.identity.ref}/r1`]));
    await quiet(s);
  });

  it("a removed channel ends in a note, and nothing is retried", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("Hello");
    stage.reply = (call) =>
      Promise.resolve(
        call.kind === "send"
          ? { ok: false, error: { reason: "channel.unknown", message: "There is no channel test here any more." } }
          : { ok: true, value: undefined },
      );
    const s = newSession();
    await over(s, "a");
    await until("the note", () => stage.news.some(({ payload }) => textIn(payload).includes("could not be sent over test")));
    await quiet(s);
    expect(sent(stage)).toHaveLength(1);
  });

  it("the answer to a terminal's message goes to no platform", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("Hello");
    const s = newSession();
    await s.send("a");
    await stage.ended("run-a");
    await quiet(s);
    expect(stage.replies).toEqual([]);
  });

  it("the end of a background process is sent to the platform that started it", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.auto = (request) => (request.messages.at(-1)?.role === "user" ? says("", [{ name: "lap__Bash", arguments: {} }]) : says("Done"));
    const s = newSession();
    await over(s, "a");
    const { callId } = await until("the dispatch", () => stage.dispatches[0]);
    stage.auto = () => says("Done");
    await s.port.toolResult("lap", { callId: asCallId(callId), outcome: "ok", result: { status: "running", sessionId: "x1" } });
    await until("the answer", () => sent(stage).length === 1);
    await quiet(s);
    await s.port.execEvent("lap", { eventId: "x1", sessionId: "x1", event: "finished", exitCode: 0 });
    await until("the news of the process", () => sent(stage).length === 2);
    expect(sent(stage)[1]).not.toHaveProperty("replyToId");
  });
});

describe("[P10] the later outcome of an answer", () => {
  it("is reported to people once and to the model with the next message, and starts no run", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await over(s, "a");
    (await stage.call(0)).answer(says("Hello"));
    await until("the answer", () => sent(stage).length === 1);
    await quiet(s);
    const port = sessionPort(env, s.identity.key);
    for (let n = 0; n < 2; n++)
      await port.note({ identity: s.identity, key: "r1:failed", text: "An answer could not be delivered.", forModel: true });
    await until("the note", () => stage.news.some(({ payload }) => textIn(payload) === "An answer could not be delivered."));
    await quiet(s);
    expect(stage.calls).toHaveLength(1);
    await over(s, "b");
    const asked = JSON.stringify((await stage.call(1)).request.messages);
    expect(asked.split("An answer could not be delivered.")).toHaveLength(2);
    expect(stage.news.filter(({ payload }) => textIn(payload) === "An answer could not be delivered.")).toHaveLength(1);
  });
  it("a session without messages takes a note too", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await sessionPort(env, s.identity.key).note({ identity: s.identity, key: "k", text: "It could not be delivered." });
    await until("the note", () => stage.news.some(({ payload }) => textIn(payload) === "It could not be delivered."));
    expect(stage.calls).toEqual([]);
  });
});

describe("[P7] an answer while it is generated", () => {
  it("is shown as it grows, with the id of the answer", async () => {
    const stage = new Stage().open();
    const s = newSession();
    await over(s, "a");
    const call = await stage.call(0);
    call.stream("Once upon");
    const shown = await until("a first look", () => stage.replies.find((reply) => reply.kind === "live"));
    expect(shown).toMatchObject({ deliveryId: `${s.identity.ref}/r1`, text: "Once upon" });
    call.answer(says("Once upon a time."));
    await until("the answer", () => sent(stage).length === 1);
    expect(sent(stage)[0]?.deliveryId).toBe(`${s.identity.ref}/r1`);
  });
  it("[F90] [CH23] is not shown while an earlier answer has not reached the channel", async () => {
    const stage = new Stage().open();
    const s = newSession();
    let away = true;
    stage.reply = (call) =>
      away && call.kind === "send" ? Promise.reject(new Error("the channel is away")) : Promise.resolve({ ok: true, value: undefined });
    await over(s, "a");
    (await stage.call(0)).answer(says("First."));
    await until("a first try", () => sent(stage).length >= 1);
    await over(s, "b");
    const second = await stage.call(1);
    second.stream("Second ");
    await until("a retry", () => sent(stage).length >= 2);
    expect(stage.replies.filter((reply) => reply.kind === "live")).toEqual([]);
    away = false;
    const tried = sent(stage).length;
    await until("the first answer", () => sent(stage).length > tried);
    let grown = "Second ";
    const shown = await until("the second answer's text", () => {
      second.stream("and ");
      grown += "and ";
      return stage.replies.find((reply) => reply.kind === "live");
    });
    expect(shown).toMatchObject({ deliveryId: `${s.identity.ref}/r2` });
    second.answer(says(grown));
    await quiet(s);
  });
});

describe("[F50] commands of guests", () => {
  const guest = (s: TestSession, id: string, command: string) =>
    sessionPort(env, s.identity.key).send({
      identity: s.identity,
      messageId: id,
      runId: `run-${id}`,
      text: `[message] {"from":{"id":"anna"}}\n${command}`,
      verbatim: true,
      command,
      byGuest: true,
      origin: { kind: "channel", channel: "test", accountId: "default", senderId: "anna", role: "guest" },
      reply: ROUTE,
    });
  it("`/help` and `/status` are for everyone; the rest is the owner's, says so and asks no model", async () => {
    const stage = new Stage().open();
    const s = newSession({ isOwnersSession: false });
    expect(value(await guest(s, "a", "/help"))).toMatchObject({
      status: "command",
      response: expect.stringMatching(/^\/status .*\n\/help /),
    });
    expect(value(await guest(s, "b", "/status"))).toMatchObject({ status: "command", response: expect.stringContaining("Session:") });
    for (const [id, command, name] of [
      ["c", "/stop", "stop"],
      ["d", "/reset", "reset"],
      ["e", "/model openai/gpt-5", "model"],
      ["f", "/t high", "think"],
      ["g", "/compact x", "compact"],
    ] as const)
      expect(value(await guest(s, id, command)), command).toEqual({
        status: "command",
        command: name,
        error: `Only the owner of this assistant can use /${name}.`,
      });
    expect(stage.calls).toEqual([]);
    // Directives inside a guest's text are text.
    await guest(s, "h", "hello /t:high");
    expect(JSON.stringify((await stage.call(0)).request.messages)).toContain("hello /t:high");
  });
});
