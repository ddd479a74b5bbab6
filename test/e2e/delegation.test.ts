/** Delegation with the built program and a real gateway: a task goes down two agents and comes back once, over kills. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel, until } from "./support.ts";

interface Report {
  readonly status: string;
  readonly summary: string;
  readonly delegations?: readonly {
    readonly agent_name: string;
    readonly depth: number;
    readonly status?: string;
    readonly session_key: string;
  }[];
}
const agent = (name: string, more = ""): string =>
  `metadata: { id: ${name}, name: ${name} }\ncore_context: { system_prompt: "You are the agent ${name}." }\ntools: { allowed: [] }\n${more}`;

describe("[DG5] [P12] order sorter", () => {
  const machine = new Machine();
  let fake: FakeModel;
  /** The agents that were asked, in order. */
  const asked = (): readonly string[] =>
    fake.requests.map(({ body }) => /You are the agent (\w+)\./.exec(JSON.stringify(body))?.[1] ?? "another");
  const sorter = async (key: string): Promise<Report> => {
    const response = await fetch(`http://127.0.0.1:${machine.port}/run`, {
      method: "POST",
      body: JSON.stringify({
        agent_name: "sorter",
        instructions: "Anna asks for a refund of order #1042, 49 SEK: a defective towel.",
      }),
      headers: { Authorization: `Bearer ${machine.token}`, "Idempotency-Key": key },
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as Report;
  };
  const hands = (to: string, instructions: string) => ({ toolCalls: [{ name: `delegate_to_${to}`, arguments: { instructions } }] });

  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    const client = await machine.client();
    await client.call("agents.define", { text: agent("writer") });
    await client.call("agents.define", { text: agent("refund", "sub_agents: [writer]") });
    await client.call("agents.define", { text: agent("sorter", "sub_agents: [refund]") });
    client.close();
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  it("goes down to the agent that writes and comes back, although the gateway is killed at each of them", async () => {
    fake.enqueue(
      hands("refund", "Decide about order #1042."),
      // Killed here: asked again.
      { text: "lost", gate: "never" },
      hands("writer", "Tell Anna that it is approved."),
      { text: "lost", gate: "never" },
      { text: "Dear Anna, it is approved." },
      { text: "Approved, and Anna knows." },
      { text: "Done: approved." },
    );
    const first = sorter("k").catch((error: unknown) => error);
    await until("refund is asked", () => asked().length === 2 || undefined);
    await machine.killWorkerd();
    assert.ok((await first) instanceof Error, "the connection was cut");
    const second = sorter("k").catch((error: unknown) => error);
    await until("the writer is asked", () => asked().length === 4 || undefined);
    await machine.killWorkerd();
    assert.ok((await second) instanceof Error, "the connection was cut");
    const got = await sorter("k");
    assert.deepEqual([got.status, got.summary], ["completed", "Done: approved."]);
    assert.deepEqual(
      got.delegations?.map(({ agent_name, depth, status }) => [agent_name, depth, status]),
      [
        ["refund", 1, "completed"],
        ["writer", 2, "completed"],
      ],
    );
    // The two calls of the model that were cut are made again, and no other.
    assert.deepEqual(asked(), ["sorter", "refund", "refund", "writer", "writer", "refund", "sorter"]);
    const below = got.delegations?.[0]?.session_key ?? "";
    assert.ok(
      (await machine.ok("why", "--session", below)).includes(`its task: \`gsv why --session ${got.delegations?.[1]?.session_key}\``),
    );
    assert.deepEqual((await sorter("k")).delegations, got.delegations);
    assert.equal(asked().length, 7);
  });
});
