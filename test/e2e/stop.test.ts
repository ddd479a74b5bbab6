/** Stopping everything, from outside: the built program, kills of the runtime in between. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type FakeModel, Machine, textOf, until, withModel } from "./support.ts";

describe("everything is stopped", () => {
  const machine = new Machine();
  let fake: FakeModel;
  withModel(machine, (model) => {
    fake = model;
  });

  it("[ST1] [ST2] [ST3] [ST5] [P14] a stop survives SIGKILL: no run starts, messages wait, and a resume answers them in order", async () => {
    const sessionKey = "agent:main:cli:dm:main";
    const first = await machine.client();
    const { runId } = await first.call("chat.send", { sessionKey, message: "before the stop" });
    await first.ending(String(runId));
    first.close();

    const stopped = JSON.parse(await machine.ok("stop", "--all", "--json")) as { ok: boolean; pending: number };
    assert.deepEqual([stopped.ok, stopped.pending], [true, 0]);
    const calls = fake.requests.length;
    await machine.killWorkerd();
    assert.match(await machine.ok("status"), /stopped since/);

    const client = await machine.client();
    const sent: string[] = [];
    for (const message of ["one", "two"]) {
      const answer = await client.call("chat.send", { sessionKey, message });
      assert.deepEqual([answer["status"], answer["stopped"]], ["started", true]);
      sent.push(String(answer["runId"]));
    }
    const other = await machine.gsv(["chat", "-s", "agent:main:cli:dm:other", "three"]);
    assert.equal(other.code, 4, other.stderr);
    assert.match(other.stderr, /GSV is stopped[\s\S]*`gsv session preview agent:main:cli:dm:other`/);
    client.close();
    await machine.killWorkerd();
    assert.match(await machine.ok("status", "--json"), /"since"/);
    assert.match((await machine.gsv(["doctor"])).stdout, /warn +stop +GSV is stopped since .+\n +→ Go on with `gsv resume`\./);
    assert.equal(fake.requests.length, calls, "no model was called");

    const again = await machine.client();
    const stats = await again.call("session.stats", { sessionKey });
    assert.deepEqual([stats["state"], stats["queueSize"]], ["idle", 2]);
    await again.call("session.subscribe", { sessionKey });
    assert.match((await machine.gsv(["resume"])).stderr, /Resumed\. 2 conversations continue\./);
    for (const run of sent) assert.equal((await again.ending(run)).state, "final");
    const texts = fake.requests.slice(calls).map(({ body }) => JSON.stringify(body));
    await until("the other conversation is answered", () => fake.requests.some(({ body }) => JSON.stringify(body).includes("three")));
    const own = texts.filter((text) => text.includes("before the stop"));
    assert.ok(own[0]?.includes("one") && !own[0].includes('"two"'), "the first message is answered first");
    for (const command of ["status", "doctor"]) assert.doesNotMatch((await machine.gsv([command])).stdout, /stopped since/);
    again.close();
  });

  it("[ST4] `/stop all` and `/resume` in a conversation do the same, outside the queue", async () => {
    const sessionKey = "agent:main:cli:dm:main";
    const client = await machine.client();
    const answer = await client.call("chat.send", { sessionKey, message: "/stop all" });
    assert.match(String(answer["response"]), /Everything is stopped/);
    const status = (await client.call("gateway.status")) as { stopped?: { by: string } };
    assert.equal(status.stopped?.by, `session:${sessionKey}`);
    const waiting = await client.call("chat.send", { sessionKey, message: "waits" });
    assert.equal(waiting["stopped"], true);
    assert.match(String((await client.call("chat.send", { sessionKey, message: "/resume" }))["response"]), /GSV goes on/);
    assert.notEqual(textOf(await client.ending(String(waiting["runId"]))), "");
    assert.deepEqual(await client.call("gateway.status"), {});
    client.close();
  });
});
