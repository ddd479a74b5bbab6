/** What the model thinks, in a chat on a real terminal: shown when it is asked for, from a provider that streams it, and nowhere else. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel } from "./support.ts";
import { noTerminal, Terminal } from "./terminal.ts";

const REASONS = Array.from({ length: 20 }, (_, at) => `reason ${at + 1}`).join("\n");

describe("thoughts", () => {
  const machine = new Machine();
  let model: FakeModel;
  before(async () => {
    model = await startFakeModel();
    await machine.up();
    await machine.useModel(model, "anthropic");
  });
  after(async () => {
    await machine.end();
    await model.close();
  });
  const answers = (text: string): void => model.enqueue({ thinking: REASONS, text });

  it("[CT12] [CT14] are shown folded above the answer after /thoughts on, and all of one on request", { skip: noTerminal }, async () => {
    const terminal = new Terminal(machine, "chat");
    try {
      await terminal.shows("/help shows commands");
      answers("First answer.");
      terminal.types("one\r");
      await terminal.shows("First answer.");
      assert.doesNotMatch(terminal.printed, /reason/);
      terminal.types("/thoughts on\r");
      await terminal.shows("From now on: what the model thinks is shown");
      answers("Second answer.");
      terminal.types("two\r");
      await terminal.shows("Second answer.");
      // The line editor is painted again between them.
      const rows = terminal.printed.split(/\r?\n/).filter((line) => /^(?:○|Second| {2}│| {4}…)/.test(line));
      const reasons = (...numbers: number[]): string[] => numbers.map((number) => `  │ reason ${number}`);
      const folded = ["○ thinking", ...reasons(1, 2, 3, 4), "    … 13 more lines: /thoughts 1", ...reasons(18, 19, 20)];
      assert.deepEqual(rows, [...folded, "Second answer."]);
      terminal.types("/thoughts 1\r");
      await terminal.shows("  │ reason 9");
      terminal.types("/thoughts off\r");
      await terminal.shows("is not shown.");
      const before = terminal.printed.length;
      answers("Third answer.");
      terminal.types("three\r");
      await terminal.shows("Third answer.");
      assert.doesNotMatch(terminal.printed.slice(before), /thinking\n|reason/);
      terminal.types("/quit\r");
      await terminal.succeeds();
    } finally {
      terminal.kill();
    }
  });

  it("[CT12] for a single message they go to stderr, and JSON has them only with --thoughts", async () => {
    answers("Plain answer.");
    const shown = await machine.gsv(["chat", "--thoughts", "hello"]);
    assert.equal(shown.stdout, "Plain answer.\n");
    assert.match(shown.stderr, /○ thinking\n {2}│ reason 1\n[\s\S]*… 13 more lines/);
    await machine.ok("local-config", "set", "chat.thoughts", "on");
    answers("By the setting.");
    assert.match((await machine.gsv(["chat", "hello"])).stderr, /│ reason 1\n/);
    const states = async (...more: string[]): Promise<string[]> => {
      answers("As JSON.");
      const lines = (await machine.ok("chat", "hello", "--json", ...more)).trim().split("\n");
      return lines.map((line) => (JSON.parse(line) as { state?: string }).state ?? "");
    };
    assert.ok(!(await states()).includes("thinking"));
    assert.ok((await states("--thoughts")).includes("thinking"));
  });

  it("[CT13] another client of the conversation, which did not ask, gets none of them", async () => {
    const [asks, other] = [await machine.client({ id: "asks" }), await machine.client({ id: "other" })];
    for (const client of [asks, other]) await client.call("session.subscribe", { sessionKey: "agent:main:cli:dm:shared" });
    answers("For both.");
    const runId = await asks.say("hello", { sessionKey: "agent:main:cli:dm:shared", thinking: true });
    await Promise.all([asks.ending(runId), other.ending(runId)]);
    const thoughts = (client: typeof asks): string => {
      const ofRun = client.events.filter(({ event, payload }) => event === "chat" && payload["runId"] === runId);
      return ofRun.flatMap(({ payload }) => (payload["state"] === "thinking" ? [String(payload["text"])] : [])).join("");
    };
    assert.deepEqual([thoughts(asks), thoughts(other)], [REASONS, ""]);
  });
});
