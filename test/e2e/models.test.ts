/** Model servers that fail: the user gets one whole answer, or one plain sentence (P5). */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel, textOf, transcript, withModel } from "./support.ts";
import type { Script } from "../fakes/fake-model.ts";

for (const wire of ["openai", "anthropic"] as const) {
  describe(`a model server that speaks ${wire}'s format`, () => {
    const machine = new Machine();
    let fake: FakeModel;
    let sessionKey = "";
    before(async () => {
      fake = await startFakeModel();
      await machine.up();
      await machine.useModel(fake, wire);
    });
    after(async () => {
      await machine.end();
      await fake.close();
    });
    beforeEach(() => {
      fake.reset();
      sessionKey = `agent:main:cli:dm:${randomUUID()}`;
    });

    const passing: Record<string, Script> = {
      "is rate limited": { status: 429, headers: { "retry-after": "0" } },
      "is overloaded (529)": { status: 529 },
      "answers 503": { status: 503 },
      "breaks the connection": { fault: "reset" },
      "breaks off midway": { fault: "reset_midway", text: "some text that is cut off here" },
      "ends its answer too early": { fault: "cut_text", text: "some text that is cut off here" },
      "reports an error inside its stream": { fault: "error_in_band", text: "some text and then" },
    };
    for (const [how, script] of Object.entries(passing)) {
      it(`[P5] ${how}: it is asked again, and the answer comes once`, async () => {
        const client = await machine.client();
        fake.enqueue(script);
        const end = await client.ask("say the answer", { sessionKey });
        assert.deepEqual([end.state, textOf(end)], ["final", "the answer"]);
        assert.equal(fake.requests.length, 2);
        assert.deepEqual(
          (await transcript(client, sessionKey)).map(({ role }) => role),
          ["user", "assistant"],
        );
        client.close();
      });
    }

    it("[P5] a tool call whose arguments were cut off is never run", async () => {
      const client = await machine.client();
      fake.enqueue({
        fault: "cut_args",
        toolCalls: [
          { name: "gsv__WriteFile", arguments: { path: "CUT.md", content: "a long content that is cut somewhere in the middle" } },
        ],
      });
      assert.equal(textOf(await client.ask("say fine", { sessionKey })), "fine");
      await assert.rejects(client.call("workspace.read", { path: "CUT.md" }), /path\.not_found/);
      client.close();
    });

    for (const status of [400, 401, 403]) {
      it(`[P5] [P10] answers ${status}: it is not asked again, and the user is told what to do`, async () => {
        const client = await machine.client();
        fake.enqueue({ status });
        const end = await client.ask("say x", { sessionKey });
        assert.equal(end.state, "error");
        assert.ok((end.error ?? "").length > 20, JSON.stringify(end));
        assert.doesNotMatch(end.error ?? "", /sk-fake/);
        assert.equal(fake.requests.length, 1);
        assert.equal(textOf(await client.ask("say it works now", { sessionKey })), "it works now");
        client.close();
      });
    }

    it("[P5] stays silent: the call times out and is made again", async () => {
      const client = await machine.client();
      await client.call("config.set", { path: "timeouts.llmMs", value: 1500 });
      fake.enqueue({ fault: "stall" });
      assert.equal(textOf(await client.ask("say awake", { sessionKey })), "awake");
      assert.equal(fake.requests.length, 2);
      await client.call("config.unset", { path: "timeouts.llmMs" });
      client.close();
    });
  });
}

describe("fallbacks", () => {
  const machine = new Machine();
  let fake: FakeModel;
  withModel(machine, (model) => {
    fake = model;
  });

  it("[R2] [W4] after four tries the next model is asked; with none left the user is told", async () => {
    const client = await machine.client();
    fake.enqueue({ status: 529, times: 4 });
    await client.call("config.set", { path: "model.fallbacks", value: [{ provider: "demo", id: "demo" }] });
    const end = await client.ask("say from the second");
    assert.match(textOf(end), /from the second/);
    assert.equal(fake.requests.length, 4);
    fake.reset();
    fake.enqueue({ status: 529, times: 4 });
    await client.call("config.set", { path: "model.fallbacks", value: [] });
    const told = await client.ask("say nothing");
    assert.deepEqual([told.state, told.reason], ["error", "model.overloaded"]);
    client.close();
  });
});
