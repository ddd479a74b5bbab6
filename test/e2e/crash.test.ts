/** Kills gateway and nodes at any point: the run goes on by itself, nothing is done twice, every end is visible (docs/promises.md). */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Chat, type FakeModel, Machine, type NodeProcess, startFakeModel, textOf, transcript, until } from "./support.ts";

const ENDS = ["final", "error", "aborted"];

describe("after a kill", () => {
  let machine: Machine;
  let fake: FakeModel;
  let node: NodeProcess;
  let sessionKey = "";
  // A new machine for each test: after several crashes in a row, supervisor and node wait longer and longer.
  beforeEach(async () => {
    fake = await startFakeModel();
    machine = new Machine();
    await machine.up();
    await machine.useModel(fake);
    node = await machine.node("box");
    sessionKey = `agent:main:cli:dm:${randomUUID()}`;
  });
  afterEach(async () => {
    await machine.end();
    await fake.close();
  });

  /** The log events of the session, once the run has ended; read by a new client, as the log tells it. */
  async function ended(runId: string): Promise<Chat[]> {
    const client = await machine.client();
    const { events } = await client.call("session.subscribe", { sessionKey, afterSeq: 0 });
    const log = (events as { payload?: Chat }[]).map((event) => (event.payload ?? event) as Chat).filter((chat) => chat.runId === runId);
    const over = (chats: readonly Chat[]): boolean => chats.some(({ state }) => ENDS.includes(state));
    if (!over(log)) await client.ending(runId);
    client.close();
    return [...log, ...client.chats(runId).filter(({ sessionSeq }) => sessionSeq !== undefined)];
  }
  async function onlyFinal(runId: string): Promise<string> {
    const ends = (await ended(runId)).filter(({ state }) => ENDS.includes(state));
    assert.deepEqual(
      ends.map(({ state }) => state),
      ["final"],
      JSON.stringify(ends),
    );
    return textOf(ends[0] as Chat);
  }
  const roles = async (): Promise<string[]> => {
    const client = await machine.client();
    const messages = await transcript(client, sessionKey);
    client.close();
    return messages.map(({ role }) => role);
  };
  /** How many results and late notes hold the text. The command itself and the fake's answer, which repeats a result, do not count. */
  async function told(text: string): Promise<number> {
    const client = await machine.client();
    const messages = await transcript(client, sessionKey);
    client.close();
    const holds = ({ role, content }: { role: string; content: unknown }): boolean => {
      const said = JSON.stringify(content);
      return role !== "assistant" && said.includes(text) && !said.includes("call box__Bash");
    };
    return messages.filter(holds).length;
  }
  const command = (script: string): string => `call box__Bash ${JSON.stringify({ command: script })}`;

  it("[K8] [P12] of the gateway in the middle of a model's answer, the answer comes once and by itself", async () => {
    const client = await machine.client();
    const asked = fake.requests.length;
    fake.enqueue({ text: ["half ", "of ", "an ", "answer"], midGate: { name: `mid-${sessionKey}`, after: 2 } });
    const runId = await client.say("say the whole answer", { sessionKey });
    await client.waitForChat("the first half", (chat) => chat.runId === runId && chat.state === "delta");
    await machine.killWorkerd();
    assert.equal(await onlyFinal(runId), "the whole answer");
    assert.deepEqual(await roles(), ["user", "assistant"]);
    assert.equal(fake.requests.length, asked + 2);
  });

  it("[K7] of the gateway before the model's first byte, the answer comes once and by itself", async () => {
    const client = await machine.client();
    const asked = fake.requests.length;
    fake.enqueue({ text: "lost", gate: `first-${sessionKey}` });
    const runId = await client.say("say after all", { sessionKey });
    await fake.request(asked + 1);
    await machine.killWorkerd();
    assert.equal(await onlyFinal(runId), "after all");
    assert.deepEqual(await roles(), ["user", "assistant"]);
  });

  it("[K2] [P1] of the gateway right after a message, the same message again causes no second turn", async () => {
    const client = await machine.client();
    const message = { sessionKey, message: "say exactly once", messageId: randomUUID(), runId: randomUUID() };
    await client.call("chat.send", message);
    await machine.killWorkerd();
    const again = await (await machine.client()).call("chat.send", message);
    assert.deepEqual([again["duplicate"], again["runId"]], [true, message.runId]);
    assert.equal(await onlyFinal(message.runId), "exactly once");
    assert.deepEqual(await roles(), ["user", "assistant"]);
  });

  it("[K4] of the gateway with queued messages, all are answered in order", async () => {
    const client = await machine.client();
    const asked = fake.requests.length;
    fake.enqueue({ text: "lost", gate: `waiting-${sessionKey}` });
    const runs = Array.from({ length: 5 }, () => randomUUID());
    for (const [i, runId] of runs.entries()) await client.say(`say number ${i}`, { sessionKey, runId });
    // Otherwise the blocked answer would belong to the call after the kill.
    await fake.request(asked + 1);
    await machine.killWorkerd();
    for (const [i, runId] of runs.entries()) assert.equal(await onlyFinal(runId), `number ${i}`);
    assert.deepEqual(
      await roles(),
      runs.flatMap(() => ["user", "assistant"]),
    );
  });

  it("[K7] [K10] of the gateway before a tool call, the call waits for the machine that was connected", async () => {
    const client = await machine.client();
    const asked = fake.requests.length;
    fake.enqueue({ text: "lost", gate: `before-call-${sessionKey}` });
    const file = `once-${randomUUID()}`;
    const runId = await client.say(command(`echo once >> ${file}; echo RAN-${file}`), { sessionKey });
    await fake.request(asked + 1);
    await machine.killWorkerd();
    assert.match(await onlyFinal(runId), new RegExp(`RAN-${file}`));
    assert.deepEqual(node.lines(file), ["once"]);
  });

  it("[K16] of the gateway while a command runs, the command runs once and its result arrives", async () => {
    const client = await machine.client();
    const gate = `go-${randomUUID()}`;
    const runId = await client.say(
      command(`echo begun >> ${gate}.begun; while [ ! -e ${gate} ]; do sleep 0.05; done; echo done >> ${gate}.done; echo RESULT-${gate}`),
      { sessionKey },
    );
    await until("the command runs", () => node.lines(`${gate}.begun`).length > 0);
    await machine.killWorkerd();
    writeFileSync(node.file(gate), "");
    assert.match(await onlyFinal(runId), new RegExp(`RESULT-${gate}`));
    assert.deepEqual([node.lines(`${gate}.begun`), node.lines(`${gate}.done`)], [["begun"], ["done"]]);
    assert.deepEqual(await roles(), ["user", "assistant", "toolResult", "assistant"]);
  });

  it("[K16] [F80] of the node while a command runs, the command runs once, and its result arrives when the node is back", async () => {
    const client = await machine.client();
    const gate = `go-${randomUUID()}`;
    const runId = await client.say(
      command(`echo begun >> ${gate}.begun; while [ ! -e ${gate} ]; do sleep 0.05; done; echo done >> ${gate}.done; echo RESULT-${gate}`),
      { sessionKey },
    );
    await until("the command runs", () => node.lines(`${gate}.begun`).length > 0);
    await node.kill("SIGKILL");
    node = await machine.node("box", node.workspace);
    writeFileSync(node.file(gate), "");
    await onlyFinal(runId);
    // It comes with the run, or as a late note when the run ended first.
    await until("the result is in the conversation", async () => (await told(`RESULT-${gate}`)) > 0);
    // Another turn ends after any repetition.
    await (await machine.client()).ask("say later", { sessionKey });
    assert.equal(await told(`RESULT-${gate}`), 1);
    assert.deepEqual([node.lines(`${gate}.begun`), node.lines(`${gate}.done`)], [["begun"], ["done"]]);
  });

  it("[K18] [F80] of the node after a command ended while the gateway was away, the result arrives once", async () => {
    const client = await machine.client();
    const gate = `go-${randomUUID()}`;
    const runId = await client.say(
      command(`echo begun >> ${gate}.begun; while [ ! -e ${gate} ]; do sleep 0.05; done; echo RESULT-${gate}; echo done >> ${gate}.done`),
      { sessionKey },
    );
    await until("the command runs", () => node.lines(`${gate}.begun`).length > 0);
    await machine.ok("down");
    writeFileSync(node.file(gate), "");
    await until("the command is done", () => existsSync(node.file(`${gate}.done`)));
    await node.kill("SIGKILL");
    await machine.up();
    node = await machine.node("box", node.workspace);
    await onlyFinal(runId);
    await until("the result is in the conversation", async () => (await told(`RESULT-${gate}`)) > 0);
    // Another turn ends after any repetition.
    await (await machine.client()).ask("say later", { sessionKey });
    assert.equal(await told(`RESULT-${gate}`), 1);
    assert.deepEqual([node.lines(`${gate}.begun`), node.lines(`${gate}.done`)], [["begun"], ["done"]]);
  });

  it("[K16'] [P6] of the node that stays away, the model is told that the outcome is unknown, and nothing is run again", async () => {
    const client = await machine.client();
    const gate = `go-${randomUUID()}`;
    const runId = await client.say(command(`echo begun >> ${gate}.begun; while [ ! -e ${gate} ]; do sleep 0.05; done`), { sessionKey });
    await until("the command runs", () => node.lines(`${gate}.begun`).length > 0);
    await node.kill("SIGKILL");
    assert.match(await onlyFinal(runId), /not known|unknown|don't know/i);
    writeFileSync(node.file(gate), "");
    node = await machine.node("box", node.workspace);
    // A further call on the same node arrives after any repetition.
    assert.match(textOf(await client.ask(command("echo alive"), { sessionKey })), /alive/);
    assert.deepEqual(node.lines(`${gate}.begun`), ["begun"]);
  });

  // More kills in one run only make the supervisor wait; more runs find more.
  const KILLS = 3;
  for (let run = 1; run <= (process.env["GSV_E2E_LONG"] === undefined ? 1 : 20); run++) {
    it(`[P12] [K10] [F80] ${KILLS} kills of the gateway at any point of a run of many steps (${run}): every step's command runs once`, async () => {
      const client = await machine.client();
      const file = `steps-${randomUUID()}`;
      const steps = KILLS + 3;
      // A kill may hit a call of the model, which is then made again.
      fake.answerSteps((i) =>
        i < steps
          ? { toolCalls: [{ name: "box__Bash", arguments: { command: `echo ${i} >> ${file}; echo step ${i}` } }] }
          : { text: "all steps done" },
      );
      const runId = await client.say("do all steps", { sessionKey });
      for (let i = 0; i < KILLS; i++) {
        await until(`step ${i} has run`, () => node.lines(file).length > i);
        await machine.killWorkerd();
      }
      assert.equal(await onlyFinal(runId), "all steps done");
      fake.answerSteps(undefined);
      assert.deepEqual(
        node.lines(file),
        Array.from({ length: steps }, (_, step) => String(step)),
      );
    });
  }
});
