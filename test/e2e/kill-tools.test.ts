/**
 * The kill matrix, a call on a node: workerd killed, the node killed, or the link cut at each stage of a call, with a scripted node that
 * keeps the wire's rules (T1 to T4) and counts starts (K10 to K20, P6, P7).
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, it } from "node:test";
import { type Call, callsThenTells, delays, resultTexts, Rig, type ScriptedNode, spin, withRig } from "./kill-support.ts";
import type { Stage } from "./kill-node.ts";
import { until } from "./support.ts";

describe("a call on a node with a ledger", () => {
  let rig: Rig;
  let node: ScriptedNode;
  withRig((started, scripted) => {
    rig = started;
    node = scripted;
  });
  const once = (cell: { name: string }, stage: Stage, then: (call: Call) => unknown): void => {
    node.at = {
      ...node.at,
      [stage]: (call: Call, nth: number) => (call.args["cell"] === cell.name && nth === 1 ? then(call) : undefined),
    };
  };
  const oneCall = (name: string, tool = "box__Do"): ReturnType<Rig["cell"]> => {
    const cell = rig.cell(name);
    rig.model.serve(cell.name, { answer: callsThenTells({ name: tool, arguments: { cell: cell.name } }) });
    return cell;
  };
  /** Said, and then the run's end: the real result, from the only start. */
  async function isDoneOnce(cell: ReturnType<Rig["cell"]>, modelCalls = 2): Promise<void> {
    const seen = await cell.judge();
    assert.equal(node.callOf(cell.name)?.starts, 1);
    assert.match(seen.text, new RegExp(`"did":"${cell.name}"`), JSON.stringify(seen.events));
    assert.ok(rig.model.turns(cell.name).length <= modelCalls, "no step was done again");
    await until("the node may forget the call", () => node.callOf(cell.name)?.state === "released");
  }

  const stages: readonly [string, Stage][] = [
    ["[K14] when the call has arrived", "arrived"],
    ["[K15] when the node has accepted it", "accepted"],
    ["[K16] when it has started", "started"],
    ["[K18] when its result is stored", "stored"],
    ["[K19] when its result is on the wire", "sent"],
    ["[K20] when its result is acknowledged", "acked"],
  ];
  for (const [title, stage] of stages) {
    it(`${title}, workerd is killed: it is done once, and the model gets its result`, async () => {
      const cell = oneCall(`gateway ${stage}`);
      once(cell, stage, () => rig.shoot());
      await cell.sayIntoKill();
      await rig.risen();
      // A result that was written may have come before the end of the process, and the next model call with it; then that is made again.
      await isDoneOnce(cell, stage === "sent" || stage === "acked" ? 3 : 2);
    });
  }
  for (const delay of delays([1])) {
    it(`[K19] [K20] ${delay} ms after the result was sent, workerd is killed`, async () => {
      const cell = oneCall(`sent ${delay}`);
      once(cell, "sent", () => {
        spin(delay);
        rig.shoot();
      });
      await cell.sayIntoKill();
      await rig.risen();
      await isDoneOnce(cell, 3);
    });
  }

  it("[K13] workerd is killed with a call on its way that never arrived: it is sent again and started once", async () => {
    const cell = oneCall("k13");
    once(cell, "arrived", () => {
      rig.shoot();
      return "lose";
    });
    await cell.sayIntoKill();
    await rig.risen();
    await isDoneOnce(cell);
    assert.equal(node.callOf(cell.name)?.arrivals, 1);
  });

  it("[K13] [K14] the link breaks with a call on its way that never arrived: it is sent again and started once", async () => {
    const cell = oneCall("k14 link");
    once(cell, "arrived", () => {
      node.leave();
      return "lose";
    });
    await cell.sayIntoKill();
    await until("the link is cut", () => !node.online);
    await node.join();
    await isDoneOnce(cell);
  });

  it("[K16] workerd is killed and stays away while the command ends: the result waits on the node", async () => {
    const cell = oneCall("k16 away");
    let go = (): void => undefined;
    once(cell, "started", () => {
      rig.shoot();
      return new Promise<void>((resolve) => {
        go = resolve;
      });
    });
    await cell.sayIntoKill();
    await until("the gateway is gone", () => rig.isShot && !node.online);
    go();
    await until("the call has ended", () => node.callOf(cell.name)?.state === "finished");
    await rig.risen();
    await isDoneOnce(cell);
  });

  it("[K16] workerd is killed twice while one command runs: it continues, and its result arrives", async () => {
    const cell = oneCall("k16 twice");
    let go = (): void => undefined;
    once(cell, "started", () => {
      rig.shoot();
      return new Promise<void>((resolve) => {
        go = resolve;
      });
    });
    await cell.sayIntoKill();
    await rig.risen();
    await until("the node is back", () => node.online);
    rig.shoot();
    await rig.risen();
    await until("the node is back", () => node.online);
    go();
    await isDoneOnce(cell);
  });

  it("[K20] [P7] missing acknowledgements and repeated results change nothing", async () => {
    const cell = oneCall("k20 deaf");
    let lost = 0;
    node.at.acked = (call, nth) => {
      if (call.args["cell"] !== cell.name || nth > 2) return undefined;
      lost += 1;
      return "lose";
    };
    await cell.sayIntoKill();
    await until(
      "the gateway has the result, and its acknowledgement is lost",
      () => node.callOf(cell.name)?.state === "finished" && rig.model.turns(cell.name).length === 2 && lost === 1,
    );
    rig.shoot();
    await rig.risen();
    await until("the node is back, and the next acknowledgement is lost too", () => node.online && lost === 2);
    const callId = node.callOf(cell.name)?.callId ?? "";
    for (let i = 0; i < 3; i++) assert.deepEqual(await node.repeat(callId), { ok: true });
    node.leave();
    await until("the link is gone", () => !node.online);
    await node.join();
    await isDoneOnce(cell, 3);
  });

  it("[K10] [K16] [K19] workerd is killed with five calls of one step at different stages: each has its own result", async () => {
    const cell = rig.cell("five");
    const held: readonly Stage[] = ["arrived", "accepted", "started", "stored", "sent"];
    const calls = held.map((stage) => ({ name: "box__Do", arguments: { cell: `${cell.name}/${stage}` } }));
    rig.model.serve(cell.name, { answer: callsThenTells(...calls) });
    const there = new Set<string>();
    const back = until("the gateway was killed", () => rig.isShot).then(() => undefined);
    for (const stage of held)
      node.at[stage] = (call, nth) => {
        if (call.args["cell"] !== `${cell.name}/${stage}` || nth > 1) return undefined;
        there.add(stage);
        // Written frames cannot be held back; when the last has arrived, all have.
        return stage === "sent" ? undefined : back;
      };
    await rig.with(async (client) => {
      await cell.say(client);
      await until("each call is at its stage", () => there.size === held.length);
      rig.shoot();
    });
    await rig.risen();
    const seen = await cell.judge();
    const results = resultTexts(seen.messages);
    assert.equal(results.length, held.length);
    for (const stage of held)
      assert.equal(results.filter((text) => text.includes(`"${cell.name}/${stage}"`)).length, 1, results.join("\n"));
  });

  describe("the node is killed", () => {
    const beforeStart: readonly [string, Stage][] = [
      ["[K14] when the call has arrived, and before it is on disk", "arrived"],
      ["[K15] when it has accepted it", "accepted"],
      ["[K18] when the result is stored", "stored"],
      ["[K19] when the result is on the wire", "sent"],
      ["[K20] when the result is acknowledged", "acked"],
    ];
    for (const [title, stage] of beforeStart) {
      it(`${title}: after its start the call is done once`, async () => {
        const cell = oneCall(`node ${stage}`);
        once(cell, stage, () => node.die());
        await cell.sayIntoKill();
        await until("the node is gone", () => (node.callOf(cell.name) !== undefined || stage === "arrived") && !node.online);
        await node.join();
        await isDoneOnce(cell);
      });
    }

    it("[K16'] [P6] when it has started: the model is told that the outcome is unknown, and the call is not run again", async () => {
      const cell = oneCall("node started");
      once(cell, "started", () => node.die());
      await cell.sayIntoKill();
      await until("the node is gone", () => node.callOf(cell.name)?.state === "lost");
      await node.join();
      const seen = await cell.judge();
      assert.equal(node.callOf(cell.name)?.starts, 1);
      const ended = seen.events.find(({ tool }) => tool?.phase === "ended");
      assert.equal(ended?.tool?.outcome, "unknown");
      assert.match(resultTexts(seen.messages)[0] ?? "", /stopped|not known|unknown/i);
    });

    it("[K16'] and workerd with it: the same", async () => {
      const cell = oneCall("both started");
      once(cell, "started", () => {
        rig.shoot();
        node.die();
      });
      await cell.sayIntoKill();
      await rig.risen();
      await node.join();
      const seen = await cell.judge();
      assert.equal(node.callOf(cell.name)?.starts, 1);
      assert.equal(seen.events.find(({ tool }) => tool?.phase === "ended")?.tool?.outcome, "unknown");
    });

    it("[K15] [K18] and workerd with it, once before the start and once after the end: both calls are done once", async () => {
      for (const stage of ["accepted", "stored"] as const) {
        const cell = oneCall(`both ${stage}`);
        once(cell, stage, () => {
          rig.shoot();
          node.die();
        });
        await cell.sayIntoKill();
        await rig.risen();
        await node.join();
        await isDoneOnce(cell);
      }
    });

    it("[T5] when a read-only call has started: it may be repeated, and the run goes on at once", async () => {
      const cell = oneCall("read only", "box__Look");
      once(cell, "started", () => node.die());
      await cell.sayIntoKill();
      await until("the node is gone", () => node.callOf(cell.name)?.state === "lost");
      const seen = await cell.judge();
      assert.equal(seen.messages.filter(({ role }) => role === "toolResult").length, 1);
      await node.join();
    });
  });

  describe("only the link is cut", () => {
    for (const stage of ["accepted", "started", "stored", "sent"] as const) {
      it(`[K16] [P7] when the call is ${stage}: it goes on, and its result arrives once`, async () => {
        const cell = oneCall(`link ${stage}`);
        let go = (): void => undefined;
        once(cell, stage, () => {
          node.leave();
          return new Promise<void>((resolve) => {
            go = resolve;
          });
        });
        await cell.sayIntoKill();
        await until("the link is cut", () => node.callOf(cell.name) !== undefined && !node.online);
        go();
        await node.join();
        await isDoneOnce(cell);
      });
    }
  });

  describe("a stop", () => {
    it("[P14] [K16] that was answered before workerd is killed: the node still gets the cancel, and the run stays stopped", async () => {
      const cell = oneCall("stop");
      once(cell, "started", () => new Promise(() => undefined));
      await rig.with(async (client) => {
        await cell.say(client);
        await until("the call runs", () => node.callOf(cell.name)?.state === "started");
        await client.call("chat.abort", { sessionKey: cell.sessionKey });
        rig.shoot();
      });
      await rig.risen();
      const seen = await cell.judge({ outcome: "aborted" });
      assert.equal(seen.events.find(({ tool }) => tool?.phase === "ended")?.tool?.outcome, "cancelled");
      await until("the node is told", () => node.cancelled.includes(node.callOf(cell.name)?.callId ?? "?"));
    });
  });

  describe("a client's own call", () => {
    for (const stage of ["arrived", "started", "sent"] as const) {
      it(`[K13] [T1] workerd is killed when it is ${stage}: the same request again is recognised, and the call is done once`, async () => {
        const name = rig.cell(`own ${stage}`).name;
        once({ name }, stage, () => rig.shoot());
        const params = { tool: "box__Do", args: { cell: name }, callId: name };
        await rig.with(async (client) => {
          client.call("tool.invoke", params).catch(() => undefined);
          await rig.risen();
        });
        await until("the node is back", () => node.online);
        const answer = await rig.with((client) => client.call("tool.invoke", params));
        assert.deepEqual(answer["result"], { did: name, start: 1 });
        assert.equal(node.callOf(name)?.starts, 1);
      });
    }
  });

  describe("the gateway's own tools", () => {
    for (const delay of delays([0, 2])) {
      it(`[K10] [P8] workerd killed ${delay} ms after a step with a file tool was shown: each took effect once, each has one result`, async () => {
        const cell = rig.cell(`files ${delay}`);
        const path = `notes-${cell.name}.md`;
        rig.model.serve(cell.name, {
          answer: ({ results }) => {
            if (results.length === 0) return { toolCalls: [{ name: "gsv__WriteFile", arguments: { path, content: "one\n" } }] };
            if (results.length === 1)
              return { toolCalls: [{ name: "gsv__EditFile", arguments: { path, oldString: "one\n", newString: "one\ntwo\n" } }] };
            return { text: results.join(" | ") };
          },
        });
        await rig.with(async (client) => {
          await cell.say(client);
          const edits = (name: string | undefined): boolean => name === "gsv__EditFile";
          await client.waitForChat("the edit is shown", ({ runId, tool }) => runId === cell.said[0]?.runId && edits(tool?.name));
          spin(delay);
          rig.shoot();
        });
        await rig.risen();
        const seen = await cell.judge();
        const file = join(rig.machine.home, "workspace", "agents", "main", path);
        assert.ok(existsSync(file));
        assert.equal(readFileSync(file, "utf8"), "one\ntwo\n");
        assert.deepEqual(
          seen.events.filter(({ tool }) => tool?.phase === "ended").map(({ tool }) => tool?.outcome),
          ["ok", "ok"],
          resultTexts(seen.messages).join("\n"),
        );
      });
    }
  });
});

describe("a call on a node without a ledger", () => {
  let rig: Rig;
  let node: ScriptedNode;
  before(async () => {
    rig = await Rig.start();
    node = await rig.node({ id: "old", ledger: false });
  });
  after(async () => {
    await rig.end();
  });
  beforeEach(async () => {
    await rig.calm();
  });

  it("[T4] [K16] workerd is killed when it has started, and the node sends its result over the next link: the result counts, and nothing was sent twice", async () => {
    const cell = rig.cell("old result");
    rig.model.serve(cell.name, { answer: callsThenTells({ name: "old__Do", arguments: { cell: cell.name } }) });
    let go = (): void => undefined;
    node.at.started = () => {
      rig.shoot();
      return new Promise<void>((resolve) => {
        go = resolve;
      });
    };
    await cell.sayIntoKill();
    await rig.risen();
    await until("the node is back", () => node.online);
    go();
    const seen = await cell.judge();
    assert.match(seen.text, /"start":1/);
    assert.deepEqual([node.callOf(cell.name)?.starts, node.callOf(cell.name)?.arrivals], [1, 1]);
    rig.checkLog();
  });
});
