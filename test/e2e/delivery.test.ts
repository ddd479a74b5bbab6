/** Messages in, events out: once, in order, complete. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { before, describe, it } from "node:test";
import {
  type Chat,
  DEFAULT_SESSION,
  type FakeModel,
  Machine,
  type NodeProcess,
  textOf,
  transcript,
  until,
  processesWith,
  withModel,
} from "./support.ts";

describe("delivery", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  withModel(machine, (model) => {
    fake = model;
  });
  before(async () => {
    node = await machine.node("box");
  });

  it("[C4] text streams as the model produces it, and the final text is complete", async () => {
    const client = await machine.client();
    fake.enqueue({ text: ["one ", "two ", "three ", "four"], midGate: { name: "stream", after: 2 } });
    const runId = await client.say("stream to me");
    const early = await client.waitForChat(
      "a delta before the model is done",
      (chat) => chat.runId === runId && chat.state === "delta" && (chat.text ?? "").length > 0,
    );
    assert.equal(early.sessionSeq, undefined);
    fake.openGate("stream");
    const end = await client.ending(runId);
    assert.equal(textOf(end), "one two three four");
    assert.equal(assembled(client.chats(runId)), "one two three four");
    client.close();
  });

  it("[C3] events of a run come in order and end once, and log events are numbered upwards", async () => {
    const client = await machine.client();
    const runId = await client.say('call box__Bash {"command":"echo out"}');
    await client.ending(runId);
    const chats = client.chats(runId);
    const states = chats.map(({ state }) => state);
    assert.equal(states.filter((state) => ["final", "error", "aborted"].includes(state)).length, 1);
    assert.equal(states.at(-1), "final");
    assert.ok(states.indexOf("partial") < states.indexOf("tool"), states.join(" "));
    const phases = chats
      .filter(({ state }) => state === "tool")
      .map(({ tool }) => `${tool?.phase} ${tool?.name} ${tool?.outcome ?? ""}`.trim());
    assert.deepEqual(phases, ["started box__Bash", "ended box__Bash ok"]);
    const seqs = chats.flatMap(({ sessionSeq }) => (sessionSeq === undefined ? [] : [sessionSeq]));
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].sort((a, b) => a - b),
    );
    const frames = client.events.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    assert.deepEqual(
      frames,
      frames.map((_, i) => (frames[0] ?? 0) + i),
    );
    client.close();
  });

  it("[P1] a message that is sent twice is one turn, with the same answer", async () => {
    const client = await machine.client();
    const asked = fake.requests.length;
    const message = { sessionKey: "agent:main:cli:dm:twice", message: "say once", messageId: randomUUID(), runId: randomUUID() };
    const [first, second] = await Promise.all([client.call("chat.send", message), client.call("chat.send", message)]);
    await client.ending(message.runId);
    const third = await client.call("chat.send", message);
    assert.equal(third["duplicate"], true);
    assert.equal([first, second].filter(({ duplicate }) => duplicate === true).length, 1);
    assert.deepEqual(
      [first, second, third].map(({ runId, seq }) => [runId, seq]),
      Array.from({ length: 3 }, () => [first["runId"], first["seq"]]),
    );
    assert.equal(fake.requests.length, asked + 1);
    assert.equal((await transcript(client, message.sessionKey)).filter(({ role }) => role === "user").length, 1);
    client.close();
  });

  it("[P1] [W3] the same runId without a messageId is one turn too", async () => {
    const client = await machine.client();
    const message = { sessionKey: "agent:main:cli:dm:runid", message: "say once", runId: randomUUID() };
    await client.call("chat.send", message);
    await client.ending(message.runId);
    assert.equal((await client.call("chat.send", message))["duplicate"], true);
    client.close();
  });

  it("[P3] [C6] 50 messages at once are answered in their order, none lost", async () => {
    const client = await machine.client();
    const sessionKey = "agent:main:cli:dm:queue";
    fake.enqueue({ text: "answer 0", gate: "queue" });
    const runs = Array.from({ length: 50 }, (_, i) => ({
      sessionKey,
      message: `say answer ${i}`,
      messageId: `m${i}-${randomUUID()}`,
      runId: randomUUID(),
    }));
    const accepted = await Promise.all(runs.map((run) => client.call("chat.send", run)));
    assert.deepEqual(
      accepted.map(({ queued }) => queued ?? false),
      runs.map((_, i) => i > 0),
    );
    fake.openGate("queue");
    const last = runs.at(-1);
    assert(last);
    await client.ending(last.runId);
    const finals = client.chats().filter((chat) => chat.sessionKey === sessionKey && chat.state === "final");
    assert.deepEqual(
      finals.map(textOf),
      runs.map((_, i) => `answer ${i}`),
    );
    assert.deepEqual(
      finals.map(({ runId }) => runId),
      runs.map(({ runId }) => runId),
    );
    client.close();
  });

  it("[P11] [C5] a client that lost its connection gets what it missed, once", async () => {
    const sessionKey = "agent:main:cli:dm:resume";
    const client = await machine.client();
    const first = await client.ask("say before", { sessionKey });
    client.close();
    const other = await machine.client();
    await other.ask("say while away", { sessionKey });
    const back = await machine.client();
    const caught = await back.call("session.subscribe", { sessionKey, afterSeq: first.sessionSeq ?? 0 });
    const events = caught["events"] as { payload?: Chat }[];
    const finals = events.map((event) => (event.payload ?? event) as Chat).filter(({ state }) => state === "final");
    assert.deepEqual(finals.map(textOf), ["while away"]);
    await other.ask("say live", { sessionKey });
    const live = await back.waitForChat("the live final", (chat) => chat.state === "final" && textOf(chat) === "live");
    assert.equal(live.sessionSeq === undefined, false);
    assert.equal(back.chats().filter(({ state }) => state === "final").length, 1);
    back.close();
    other.close();
  });

  it("[C5] a client gets no events of a session that it does not follow", async () => {
    const mine = await machine.client();
    const theirs = await machine.client();
    await theirs.ask("say private", { sessionKey: "agent:main:cli:dm:theirs" });
    await mine.ask("say mine", { sessionKey: "agent:main:cli:dm:mine" });
    assert.deepEqual([...new Set(mine.chats().map(({ sessionKey }) => sessionKey))], ["agent:main:cli:dm:mine"]);
    mine.close();
    theirs.close();
  });

  it("[W7] two sessions whose model uses the same call ids do not mix", async () => {
    const client = await machine.client();
    const script = (text: string): string =>
      `[[script ${JSON.stringify({ toolCalls: [{ id: "call_0", name: "box__Bash", arguments: { command: `echo ${text}` } }] })}]]`;
    const [one, two] = await Promise.all([
      client.ask(script("SECRET-OF-ONE"), { sessionKey: "agent:main:cli:dm:one" }),
      client.ask(script("SECRET-OF-TWO"), { sessionKey: "agent:main:cli:dm:two" }),
    ]);
    assert.match(textOf(one), /SECRET-OF-ONE/);
    assert.doesNotMatch(textOf(one), /SECRET-OF-TWO/);
    assert.match(textOf(two), /SECRET-OF-TWO/);
    assert.doesNotMatch(textOf(two), /SECRET-OF-ONE/);
    client.close();
  });

  it("[P14] [R3] a stopped run ends at once, its command is killed, and the next message is answered", async () => {
    const client = await machine.client();
    const sessionKey = "agent:main:cli:dm:abort";
    // A time that no other command sleeps: it names these processes.
    const sleep = `sleep 300.${process.pid}`;
    const runId = await client.say(`call box__Bash {"command":"${sleep} & echo begun > begun; wait"}`, { sessionKey });
    await until("the command runs", () => existsSync(node.file("begun")) && processesWith(sleep).length >= 2);
    const answer = await client.call("chat.abort", { sessionKey });
    assert.deepEqual([answer["ok"], answer["wasRunning"], answer["pendingToolsCancelled"]], [true, true, 1]);
    assert.equal((await client.ending(runId)).state, "aborted");
    await until("the shell and its child are gone", () => processesWith(sleep).length === 0, 5_000);
    assert.equal(textOf(await client.ask("say still here", { sessionKey })), "still here");
    client.close();
  });

  it("[P14] a running model call is cancelled", async () => {
    const client = await machine.client();
    const sessionKey = "agent:main:cli:dm:abort-model";
    const asked = fake.requests.length;
    fake.enqueue({ text: "never seen", gate: "never" });
    const runId = await client.say("say x", { sessionKey });
    const request = await fake.request(asked + 1);
    await client.call("chat.abort", { sessionKey, runId });
    assert.equal((await client.ending(runId)).state, "aborted");
    await request.closed;
    client.close();
  });

  it("[P4] over the limit a message is refused before it is accepted", async () => {
    const client = await machine.client();
    const sessionKey = "agent:main:cli:dm:full";
    fake.enqueue({ text: "done", gate: "full" });
    const send = (i: number): Promise<unknown> => client.call("chat.send", { sessionKey, message: `say ${i}`, messageId: `full-${i}` });
    await send(0);
    await Promise.all(Array.from({ length: 200 }, (_, i) => send(i + 1)));
    await assert.rejects(send(201), /session\.queue_full/);
    await client.call("chat.send", { sessionKey, message: "/stop" });
    client.close();
  });

  it("[P19] a message that is too long is refused with a code, and the connection stays", async () => {
    const client = await machine.client();
    await assert.rejects(client.call("chat.send", { sessionKey: DEFAULT_SESSION, message: "x".repeat(262_145) }), /chat\.too_long/);
    await assert.rejects(client.call("chat.send", { sessionKey: DEFAULT_SESSION, message: " " }), /chat\.empty/);
    await assert.rejects(client.call("chat.send", { sessionKey: "", message: "x" }), /session\.bad_key|invalid_params/);
    assert.equal(client.closed, undefined);
    client.close();
  });
});

/** The text that a client would show from deltas alone. */
function assembled(chats: readonly Chat[]): string {
  let shown = "";
  for (const { state, text, offset } of chats)
    if (state === "delta" && text !== undefined) shown = shown.slice(0, offset ?? shown.length) + text;
  return shown;
}
