/** Typing while the agent works: the built program on a pseudo terminal, the real gateway, and commands on a real node. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type Client,
  DEFAULT_SESSION,
  type FakeModel,
  Machine,
  type NodeProcess,
  processesWith,
  startFakeModel,
  transcript,
  until,
} from "./support.ts";
import { noTerminal, Terminal } from "./terminal.ts";

const STEPS = 10;
const ESC = "\u001b";

describe("typing while the agent works", { skip: noTerminal }, () => {
  const machine = new Machine();
  let fake: FakeModel;
  let laptop: NodeProcess;
  let client: Client;
  let terminal: Terminal | undefined;
  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    laptop = await machine.node("laptop");
    client = await machine.client();
  });
  after(async () => {
    terminal?.kill();
    await machine.end();
    await fake.close();
  });

  const runs = (command: string) => [{ name: "laptop__Bash", arguments: { command } }];
  /** The messages of the nth request to the model that are of a person or a tool, as text. */
  async function asked(n: number): Promise<{ role: string; text: string }[]> {
    const { body } = await fake.request(n);
    const messages = body["messages"] as { role: string; content: unknown }[];
    return messages
      .filter(({ role }) => role === "user" || role === "tool")
      .map(({ role, content }) => ({ role, text: typeof content === "string" ? content : JSON.stringify(content) }));
  }
  const waiting = (count: number) =>
    until(
      `${count} messages wait at the gateway`,
      async () => (await client.call("session.stats", { sessionKey: DEFAULT_SESSION }))["queueSize"] === count,
    );
  const saidTo = async (text: string) => JSON.stringify(await transcript(client)).split(text).length - 1;
  const idle = () =>
    until(
      "the conversation is idle",
      async () => (await client.call("session.stats", { sessionKey: DEFAULT_SESSION }))["state"] === "idle",
    );

  it("[WB2] a line that is typed during a run of ten steps is shown to the model at its next step, once", async () => {
    for (let step = 1; step <= STEPS; step++) fake.enqueue({ gate: `step ${step}`, toolCalls: runs(`echo ${step} >> steps.txt`) });
    fake.enqueue({ text: "All ten steps are done, with tabs." });
    terminal = new Terminal(machine, "chat", "--steer");
    await terminal.shows("/help shows commands");
    terminal.types("do ten steps\r");
    for (let step = 1; step < 5; step++) {
      await fake.request(step);
      fake.openGate(`step ${step}`);
    }
    await fake.request(5);
    terminal.types("use tabs\r");
    await terminal.shows("for the run: use tabs");
    await waiting(1);
    for (let step = 5; step <= STEPS; step++) {
      await fake.request(step);
      fake.openGate(`step ${step}`);
    }
    await terminal.shows("All ten steps are done, with tabs.");
    await idle();
    assert.equal((await asked(5)).filter(({ text }) => text.includes("use tabs")).length, 0);
    const next = await asked(6);
    assert.deepEqual([next.at(-1)?.role, next.at(-1)?.text.includes("use tabs"), next.at(-2)?.role], ["user", true, "tool"]);
    assert.match(terminal.printed, /The model now has your message: use tabs/);
    assert.deepEqual(laptop.lines("steps.txt").map(Number), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert.equal(fake.requests.length, STEPS + 1, "the line was no turn of its own");
    assert.equal(await saidTo("use tabs"), 1);
  });

  it("[WB3] [WB4] Esc stops the step, and of what was typed nothing is lost", async () => {
    assert(terminal !== undefined);
    const before = fake.requests.length;
    fake.enqueue(
      { toolCalls: runs(": > held-by-esc.txt; exec tail -f held-by-esc.txt") },
      { text: "Spaces, as you like." },
      { text: "That too." },
      { text: "The half is whole." },
    );
    terminal.types("begin\r");
    await until("the command runs", () => processesWith("held-by-esc.txt").length > 0);
    terminal.types("use spaces\r");
    await terminal.shows("for the run: use spaces");
    await waiting(1);
    terminal.types("/queue add and then this\r");
    await terminal.shows("queued: and then this");
    terminal.types("half a line");
    await terminal.shows("half a line");
    terminal.types(ESC);
    await until("the command is stopped", () => processesWith("held-by-esc.txt").length === 0);
    await terminal.shows("Spaces, as you like.");
    await terminal.shows("That too.");
    await idle();
    terminal.types(" is whole\r");
    await terminal.shows("The half is whole.");
    const turns = await Promise.all([2, 3, 4].map(async (n) => (await asked(before + n)).at(-1)?.text ?? ""));
    for (const [at, text] of ["use spaces", "and then this", "half a line is whole"].entries())
      assert.ok(turns[at]?.includes(text), `${text}: ${turns[at]}`);
    await idle();
    assert.equal(fake.requests.length, before + 4);
    for (const text of ["use spaces", "and then this", "half a line is whole"]) assert.equal(await saidTo(text), 1, text);
    terminal.types("/quit\r");
    await terminal.succeeds();
  });

  it("[AP12] Esc at a question leaves it open and stops nothing", async () => {
    await machine.ok("config", "set", "toolApproval", JSON.stringify({ mode: "ask" }));
    fake.enqueue({ toolCalls: runs("echo asked > asked.txt") }, { text: "You have allowed it." });
    terminal = new Terminal(machine, "chat");
    await terminal.shows("/help shows commands");
    terminal.types("ask me\r");
    await terminal.shows("y or n?");
    terminal.types(ESC);
    // A key that follows at once may count as a part of Esc's sequence; on an empty line Ctrl-U does nothing.
    terminal.types("\u0015");
    terminal.types("y\r");
    await terminal.shows("You have allowed it.");
    assert.doesNotMatch(terminal.printed, /stopping/);
    terminal.types("/quit\r");
    await terminal.succeeds();
  });
});
