/** Jobs that events give agents. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EventStage } from "../../../test/support/event-stage.ts";
import { fail } from "../../kernel/outcome.ts";
import { succeed } from "../../ports/result.ts";
import { sqliteRows } from "../../../test/support/rows.ts";
import { migrateRows } from "../../storage/rows.ts";
import { EventLog } from "./d1-store.ts";
import { EVENT_ROWS } from "./migrations.ts";
import { hopsOfEmission } from "./starts.ts";

const ACK = { kind: "ack" };

describe("an event", () => {
  test("[EV10] gives each agent of its topic one job, also when it is delivered again or a kill comes in between", async () => {
    const stage = new EventStage();
    stage.subscribers = ["sorter", "clerk"];
    const id = await stage.emit({ taint: { label: "world", source: "a mail of Anna" } });
    stage.before = (sql) => {
      if (sql.includes("event_starts(event_id")) throw new Error("killed");
    };
    assert.equal((await stage.deliver()).kind, "retry");
    stage.before = () => undefined;
    stage.kill();
    await Promise.all([stage.deliver(), stage.deliver()]);
    assert.deepEqual(await stage.deliver(), ACK);
    assert.equal(stage.jobs.size, 2, "the ids are made from the event and the agent");
    assert.deepEqual(await stage.starts(id), [...stage.jobs.keys()].map((job, index) => `${["sorter", "clerk"][index]} ${job}`).sort());
    assert.deepEqual((await stage.status(id))[0], "done");
    assert.equal(stage.handled.length, 1, "a job that could not be noted is no reason to call the handler again");
    const [first] = stage.jobs.values();
    assert.deepEqual(first, {
      request: {
        agent_name: "sorter_name",
        instructions: "An event of the topic parcel has come from the agent mail. Handle it as your role says.",
        payload: { topic: "parcel", event_id: id, emitted_by: "mail", emitted_at: 1_000_000, payload: { to: "Anna" } },
      },
      event: { id, hops: 1, taint: { label: "world", source: "an event of the agent mail, which has read a mail of Anna" } },
    });
  });
  test("[EV10] is handled by its agents alone where the topic has no handler", async () => {
    const stage = new EventStage();
    stage.hasHandler = false;
    stage.kill();
    const lost = await stage.emit();
    assert.equal((await stage.deliver()).kind, "retry");
    assert.deepEqual(await stage.status(lost), ["queued", 1, "Nothing handles the topic parcel."]);
    stage.subscribers = ["sorter"];
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual((await stage.status(lost))[0], "done");
  });
  test("[EV10] whose handler fails gives its jobs all the same, once", async () => {
    const stage = new EventStage();
    stage.subscribers = ["sorter"];
    stage.handler = () => Promise.resolve(fail("storage.failed", "The depot is closed.", "Wait."));
    const id = await stage.emit();
    let starts = 0;
    stage.starting = () => {
      starts++;
      return Promise.resolve(succeed(undefined));
    };
    for (const _ of [1, 2, 3, 4]) await stage.deliver();
    assert.deepEqual([starts, (await stage.status(id))[0]], [1, "dead"]);
  });
  test("[EV10] a job that can't be stored is an attempt; in the end the event is a dead letter, which is told, and a replay starts what is missing", async () => {
    const stage = new EventStage();
    stage.subscribers = ["sorter", "clerk"];
    let failing = true;
    const tried: string[] = [];
    stage.starting = (job) => {
      tried.push(job);
      return Promise.resolve(failing && tried.length % 2 === 1 ? fail("limit.jobs", "The job queue is full.", "") : succeed(undefined));
    };
    const id = await stage.emit();
    assert.deepEqual(await stage.deliver(), { kind: "retry", delaySeconds: 10 });
    stage.starting = () => Promise.resolve(failing ? fail("limit.jobs", "The job queue is full.", "") : succeed(undefined));
    for (const _ of [1, 2, 3]) await stage.deliver();
    const [status, attempts, reason] = await stage.status(id);
    assert.deepEqual([status, attempts], ["dead", 4]);
    assert.match(String(reason), /^The agent sorter got no job: The job queue is full\./);
    assert.deepEqual([stage.told.size, stage.jobs.size, stage.handled.length], [1, 1, 1]);
    failing = false;
    assert.ok((await stage.keeper.replay(id)).ok);
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual([stage.jobs.size, stage.handled.length, (await stage.status(id))[0]], [2, 1, "done"]);
  });
  test("[EV10] a job that no later attempt could store is a dead letter at once", async () => {
    const stage = new EventStage();
    stage.subscribers = ["sorter"];
    stage.starting = () => Promise.resolve(fail("context.override", "`payload.core_context` is a key of a higher layer.", ""));
    const id = await stage.emit();
    assert.deepEqual(await stage.deliver(), ACK);
    assert.deepEqual((await stage.status(id)).slice(0, 2), ["dead", 1]);
    assert.equal(stage.told.size, 1);
  });
});

describe("a chain", () => {
  test("[EV11] of events and conversations ends after three", async () => {
    const stage = new EventStage();
    stage.subscribers = ["sorter"];
    const hopsOf = async (hops: number): Promise<number | undefined> => {
      stage.jobs.clear();
      const origin = { kind: "task", taskId: "t", event: { id: "e", hops } } as const;
      const id = await stage.emit({ origin, callId: `c${hops}` });
      await stage.deliver();
      const [job] = stage.jobs.values();
      if (job === undefined) {
        const [status, , reason] = await stage.status(id);
        assert.equal(status, "dead");
        assert.match(String(reason), /^Stopped by a limit: .* number 4 in a chain .* ends after 3/);
        stage.kill();
        stage.told.clear();
        await stage.deliver();
        assert.match([...stage.told.values()][0]?.text ?? "", /began no further work\. Stopped by a limit/, "the log has what it was");
      }
      return job?.event?.hops;
    };
    assert.deepEqual([await hopsOf(1), await hopsOf(2), await hopsOf(3)], [2, 3, undefined]);
    assert.equal(stage.handled.length, 3, "its handler is called all the same");
  });
  test("[EV11] that an earlier version has stopped is still told as a limit", async () => {
    const db = sqliteRows();
    await migrateRows(db, "events", EVENT_ROWS.slice(0, 3), 1);
    const reasons = ["Stopped by a limit: the agent clerk got no job, because it would be number 4.", "The depot is closed."];
    for (const [id, reason] of reasons.entries())
      await db
        .prepare(
          `INSERT INTO event_log(id, tenant_id, agent_id, task_id, session_key, topic, version, payload, taint, taint_source, emitted_at, status, reason)
           VALUES(?, 'default', 'a', 't', 's', 'parcel', 1, '{}', 'self', '', 1, 'dead', ?)`,
        )
        .bind(`${id}`, reason)
        .run();
    const log = new EventLog(db, { tenantId: "default", now: () => 2, scrub: (text) => text, failed: () => undefined });
    const isLimit = async (id: string) => {
      const found = await log.get(id);
      return found.ok && found.value?.isLimit;
    };
    assert.deepEqual([await isLimit("0"), await isLimit("1")], [true, false]);
  });
  test("[EV11] counts what a message of another conversation, a delegation or the end of a task's command has caused", () => {
    const key = "agent:mail:main";
    const hops = (origin: Parameters<typeof hopsOfEmission>[0]["origin"], sessionKey = key): number =>
      hopsOfEmission({ ...(origin === undefined ? {} : { origin }), sessionKey }, "main");
    assert.equal(hops(undefined), 0);
    assert.equal(hops({ kind: "client", clientId: "c" }), 0);
    assert.equal(hops({ kind: "session", sessionKey: key, hops: 2 }), 2);
    const delegation = { sessionKey: key, runId: "r", depth: 1, maxDepth: 2, agents: [], budget: { ms: 1, costUsd: 1 } };
    assert.equal(hops({ kind: "task", taskId: "t", delegation, event: { id: "e", hops: 2 } }), 2);
    assert.equal(hops({ kind: "node_event", nodeId: "lap" }), 0);
    assert.equal(hops({ kind: "node_event", nodeId: "lap" }, "agent:mail:task:t1"), 3);
  });
});
