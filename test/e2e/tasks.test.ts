/** `POST /run` with the built program and a real gateway: another program's task is one run and one report, also when the gateway is killed. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel, until } from "./support.ts";

interface Report {
  readonly status: string;
  readonly summary: string;
  readonly tool_calls: readonly { readonly tool: string; readonly outcome?: string }[];
  readonly metadata: { readonly session_key: string; readonly task_id: string };
}
const DEFINITION = `metadata: { id: counter, name: counter }
core_context: { system_prompt: You count words. }
tools: { allowed: ["laptop__*"] }
`;

describe("tasks", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let token = "";
  const post = (body: object, key: string, auth = token): Promise<Response> =>
    fetch(`http://127.0.0.1:${machine.port}/run`, {
      method: "POST",
      body: JSON.stringify({ agent_name: "main", ...body }),
      headers: { Authorization: `Bearer ${auth}`, "Idempotency-Key": key },
    });
  const report = async (body: object, key: string): Promise<Report> => {
    const response = await post(body, key);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as Report;
  };
  const asked = (word: string): number => fake.requests.filter(({ body }) => JSON.stringify(body).includes(word)).length;

  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    await machine.node("laptop");
    token = machine.token;
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  it("[RT2] a task of an agent uses a machine's tool and comes back as a report, which `gsv why` explains", async () => {
    fake.enqueue({ toolCalls: [{ id: "c1", name: "laptop__Bash", arguments: { command: "echo counted" } }] }, { text: "Two words." });
    const got = await report({ instructions: "Count the words of word-of-the-first.", payload: { text: "a b" } }, "first");
    assert.deepEqual([got.status, got.summary], ["completed", "Two words."]);
    assert.deepEqual(
      got.tool_calls.map(({ tool, outcome }) => [tool, outcome]),
      [["laptop__Bash", "ok"]],
    );
    assert.match(await machine.ok("why", "--session", got.metadata.session_key), new RegExp(`task ${got.metadata.task_id}`));
  });

  it("[RT3] the gateway is killed in the middle of the model's answer: the caller sends the same request again, and there is one run", async () => {
    fake.enqueue({ text: "From before.", gate: "never" }, { text: "After the kill." });
    const lost = report({ instructions: "word-of-the-killed" }, "killed").catch((error: unknown) => error);
    await until("the model is asked", () => asked("word-of-the-killed") === 1 || undefined);
    await machine.killWorkerd();
    assert.ok((await lost) instanceof Error, "the connection was cut");
    const got = await report({ instructions: "word-of-the-killed" }, "killed");
    assert.deepEqual([got.status, got.summary], ["completed", "After the kill."]);
    assert.deepEqual(await report({ instructions: "word-of-the-killed" }, "killed"), got);
    assert.equal(asked("word-of-the-killed"), 2, "once before the kill and once after it");
  });

  it("[AD6] a task for a defined agent cannot use more than its definition allows", async () => {
    const client = await machine.client();
    await client.call("agents.define", { text: DEFINITION });
    client.close();
    fake.enqueue({ toolCalls: [{ id: "c2", name: "gsv__WriteFile", arguments: { path: "a.md", content: "x" } }] });
    const got = await report({ agent_name: "counter", instructions: "word-of-the-boundary" }, "boundary");
    assert.equal(got.status, "failed");
    assert.match(got.summary, /gsv__WriteFile, which its definition does not allow/);
    assert.deepEqual(got.tool_calls, []);
  });

  it("[RT1] without a token there is no answer, and nothing runs", async () => {
    const response = await post({ instructions: "word-of-no-one" }, "x", "wrong");
    assert.equal(response.status, 401);
    assert.equal(asked("word-of-no-one"), 0);
  });
});
