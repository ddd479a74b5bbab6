/**
 * The kill matrix, nodes that stay away: within the grace the model is told what is known and the user sees it, nothing is run again, and
 * a later result becomes a note (G2, G3, P6, P7). The cells wait for the same ten seconds together.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LIMITS } from "../../protocol/gen/limits.ts";
import { callsThenTells, resultTexts, Rig, type ScriptedNode, type Seen } from "./kill-support.ts";
import { type Chat, type NodeProcess, until } from "./support.ts";

/** From the loss of a node to the message about it, at most. */
const TOLD_MS = LIMITS.nodeGraceMs + 5_000;
/** The gateway's restart, and the session's resumption. */
const RESTART_MS = 5_000;

describe("nodes that stay away", { concurrency: true }, () => {
  describe("while the gateway lives", { concurrency: true }, () => {
    let rig: Rig;
    const nodes = new Map<string, ScriptedNode>();
    const node = (id: string): ScriptedNode => {
      const found = nodes.get(id);
      assert(found);
      return found;
    };
    let box: NodeProcess;
    before(async () => {
      rig = await Rig.start();
      for (const id of ["dies", "accepted", "never", "late", "look", "own", "clock"]) nodes.set(id, await rig.node({ id, ledger: true }));
      for (const id of ["olddies", "oldcut"]) nodes.set(id, await rig.node({ id, ledger: false }));
      box = rig.realNode("box");
      await rig.isOnline("box");
    });
    after(async () => {
      rig.checkLog();
      await rig.end();
    });
    const oneCall = (id: string, tool = "Do"): ReturnType<Rig["cell"]> => {
      const cell = rig.cell(`grace ${id}`);
      rig.model.serve(cell.name, { answer: callsThenTells({ name: `${id}__${tool}`, arguments: { cell: cell.name } }) });
      return cell;
    };
    const endOf = ({ events }: Pick<Seen, "events">): Chat | undefined =>
      events.find(({ state, tool }) => state === "tool" && tool?.phase === "ended");
    /** The one result says in time that the outcome is unknown, in words that keep the model from repeating the call. */
    function isUnknown(seen: Seen, tookMs: number): void {
      const end = endOf(seen);
      assert.deepEqual([end?.tool?.outcome, end?.reason], ["unknown", "tool.outcome_unknown"], JSON.stringify(seen.events));
      assert.match(resultTexts(seen.messages)[0] ?? "", /not known/i);
      assert.ok(tookMs < TOLD_MS, `the model was told after ${tookMs} ms`);
    }
    /** Sends the message, disconnects the node at the given stage of the call, and waits for the end. */
    async function lose(
      id: string,
      stage: "arrived" | "accepted" | "started",
      how: (lost: ScriptedNode) => void,
    ): Promise<{ cell: ReturnType<Rig["cell"]>; seen: Seen; tookMs: number }> {
      const cell = oneCall(id);
      let lostAt = 0;
      node(id).at[stage] = () => {
        lostAt = Date.now();
        how(node(id));
        return stage === "arrived" ? "lose" : new Promise(() => undefined);
      };
      await rig.with(async (client) => {
        await cell.say(client);
        await client.ending(cell.said[0]?.runId ?? "");
      });
      const tookMs = Date.now() - lostAt;
      return { cell, seen: await cell.judge(), tookMs };
    }

    it("[K16'] [P6] killed when the call had started", async () => {
      const { cell, seen, tookMs } = await lose("dies", "started", (lost) => lost.die());
      isUnknown(seen, tookMs);
      assert.equal(node("dies").callOf(cell.name)?.starts, 1);
      // The node reconnects and reports the lost call: a note, no run, no second start.
      await node("dies").join();
      await until("the node may forget the call", () => node("dies").callOf(cell.name)?.state === "released");
      assert.equal(rig.model.turns(cell.name).length, 2);
      assert.equal(node("dies").callOf(cell.name)?.starts, 1);
    });

    it("[K15] killed when it had only accepted the call: it does not start it later, when the run has gone on", async () => {
      const { cell, seen, tookMs } = await lose("accepted", "accepted", (lost) => lost.die());
      isUnknown(seen, tookMs);
      node("accepted").at = { accepted: () => new Promise(() => undefined) };
      await node("accepted").join();
      await until("the node is told to drop it", () => node("accepted").cancelled.length > 0);
      assert.equal(node("accepted").callOf(cell.name)?.starts, 0);
    });

    it("[K14] cut off with a call on its way: the outcome is unknown", async () => {
      const { seen, tookMs } = await lose("never", "arrived", (lost) => lost.leave());
      isUnknown(seen, tookMs);
    });

    it("[T4] without a ledger, killed when the call had started", async () => {
      const { seen, tookMs } = await lose("olddies", "started", (lost) => lost.die());
      isUnknown(seen, tookMs);
    });

    it("[T4] without a ledger, cut off and back: the call is not sent again", async () => {
      const cell = oneCall("oldcut");
      let lostAt = 0;
      node("oldcut").at.started = () => {
        lostAt = Date.now();
        node("oldcut").leave();
        return new Promise(() => undefined);
      };
      const tookMs = await rig.with(async (client) => {
        await cell.say(client);
        await until("the link is cut", () => lostAt > 0);
        await node("oldcut").join();
        await client.ending(cell.said[0]?.runId ?? "");
        return Date.now() - lostAt;
      });
      isUnknown(await cell.judge(), tookMs);
      assert.deepEqual([node("oldcut").callOf(cell.name)?.arrivals, node("oldcut").callOf(cell.name)?.starts], [1, 1]);
    });

    it("[P7] [G3] back with the result after the run has ended: a note for the user, and for the model with the next message", async () => {
      const cell = oneCall("late");
      let go = (): void => undefined;
      node("late").at.started = () => {
        node("late").leave();
        return new Promise<void>((resolve) => {
          go = resolve;
        });
      };
      await rig.with(async (client) => {
        await cell.say(client);
        await client.ending(cell.said[0]?.runId ?? "");
        go();
        await node("late").join();
        await client.waitFor(
          "the note",
          ({ event, payload }) => event === "session" && payload["sessionKey"] === cell.sessionKey && payload["kind"] === "note",
        );
      });
      await until("the node may forget the call", () => node("late").callOf(cell.name)?.state === "released");
      assert.equal(rig.model.turns(cell.name).length, 2, "a late result starts nothing");
      const { messages } = (await rig.with((client) => client.call("session.preview", { sessionKey: cell.sessionKey, notes: true }))) as {
        messages: readonly { readonly kind?: string; readonly content: string }[];
      };
      const late = messages.filter(({ kind }) => kind === "late").map(({ content }) => content);
      assert.ok(late.length === 1 && late[0]?.includes(`"did":"${cell.name}"`), "[TR5] the user can read the late result");
      rig.model.serve(cell.name, { answer: ({ text }) => ({ text }) });
      await rig.with((client) => cell.say(client));
      assert.match((await cell.judge()).text, new RegExp(`"did":"${cell.name}"`), "the model is shown the late result");
    });

    it("[T5] [G3] a read-only call fails without the grace that a changing call gets, which was lost with it", async () => {
      const cells = { readOnly: oneCall("look", "Look"), changing: oneCall("look") };
      let started = 0;
      node("look").at.started = () => {
        started += 1;
        if (started === 2) node("look").leave();
        return new Promise(() => undefined);
      };
      const runs = await rig.with(async (client) => {
        for (const cell of Object.values(cells)) await cell.say(client);
        const ids = Object.values(cells).map(({ said }) => said[0]?.runId ?? "");
        for (const id of ids) await client.ending(id);
        return client.chats().flatMap(({ runId, tool }) => (tool?.phase === "ended" && ids.some((id) => id === runId) ? [runId] : []));
      });
      assert.deepEqual(runs, [cells.readOnly.said[0]?.runId, cells.changing.said[0]?.runId]);
      const ends = [endOf(await cells.readOnly.judge()), endOf(await cells.changing.judge())];
      assert.deepEqual(
        ends.map((end) => [end?.tool?.outcome, end?.reason]),
        [
          ["error", "node.offline"],
          ["unknown", "tool.outcome_unknown"],
        ],
      );
    });

    it("[T2] [G5] a client's own call survives a broken link until its own deadline", async () => {
      const own = node("own");
      let go = (): void => undefined;
      own.at.started = () => {
        own.leave();
        return new Promise<void>((resolve) => {
          go = resolve;
        });
      };
      await rig.with(async (client) => {
        const answered = client.call("tool.invoke", { tool: "own__Do", args: { cell: "own" }, timeoutMs: 60_000 });
        await until("the link is cut", () => own.callOf("own")?.state === "started" && !own.online);
        await own.join();
        // The loss of another node shows that the grace is over.
        await lose("clock", "started", (lost) => lost.die());
        assert.deepEqual(own.cancelled, []);
        go();
        assert.deepEqual((await answered)["result"], { did: "own", start: 1 });
      });
    });

    it("[K16'] [P10] a real node, killed while a command runs: the user sees that it disconnected, and after the grace that the outcome is unknown", async () => {
      const cell = rig.cell("grace real");
      const command = `echo begun >> ${cell.name}; sleep 20`;
      rig.model.serve(cell.name, { answer: callsThenTells({ name: "box__Bash", arguments: { command } }) });
      let lostAt = 0;
      await rig.with(async (client) => {
        await cell.say(client);
        await until("the command runs", () => box.lines(cell.name).length > 0);
        lostAt = Date.now();
        await box.kill();
        const runId = cell.said[0]?.runId ?? "";
        await client.ending(runId);
        const seen = client.chats(runId);
        const told = seen.findIndex(({ state, text }) => state === "status" && (text ?? "").includes("box"));
        const ended = seen.findIndex(({ tool }) => tool?.phase === "ended");
        assert.ok(told >= 0 && told < ended, JSON.stringify(seen));
      });
      isUnknown(await cell.judge(), Date.now() - lostAt);
      assert.deepEqual(box.lines(cell.name), ["begun"]);
    });
  });

  describe("after workerd was killed too", () => {
    let rig: Rig;
    const ids = ["ledger", "old", "oldback", "oldlost"] as const;
    const cells = new Map<string, ReturnType<Rig["cell"]>>();
    const nodes = new Map<string, ScriptedNode>();
    before(async () => {
      rig = await Rig.start();
      const there = new Set<string>();
      for (const id of ids) {
        const node = await rig.node({ id, ledger: id === "ledger" });
        nodes.set(id, node);
        const stage = id === "oldlost" ? "arrived" : "started";
        node.at[stage] = () => {
          there.add(id);
          return new Promise(() => undefined);
        };
        const cell = rig.cell(`grace both ${id}`);
        cells.set(id, cell);
        rig.model.serve(cell.name, { answer: callsThenTells({ name: `${id}__Do`, arguments: { cell: cell.name } }) });
      }
      await rig.with(async (client) => {
        for (const cell of cells.values()) await cell.say(client);
        await until("each call is where it should be", () => there.size === ids.length);
      });
      rig.shoot();
      for (const id of ["ledger", "old"]) nodes.get(id)?.die();
      await rig.risen();
    });
    after(async () => {
      rig.checkLog();
      await rig.end();
    });

    const titles: Readonly<Record<(typeof ids)[number], string>> = {
      ledger: "[K16'] with a ledger, never back: unknown within the grace",
      old: "[G2] [T4] without a ledger, never back: unknown within the grace",
      oldback: "[G2] [T4] without a ledger, back without the result: unknown within the grace, and not sent again",
      oldlost: "[G2] [K14] without a ledger, back, the call lost on its way: unknown within the grace, and not sent again",
    };
    for (const id of ids) {
      it(titles[id], async () => {
        const cell = cells.get(id);
        assert(cell);
        const seen = await until(
          `${id} has ended`,
          async () => {
            const { events } = await cell.look();
            return events.some(({ state }) => state === "final") ? events : undefined;
          },
          TOLD_MS + RESTART_MS,
        );
        const end = seen.find(({ tool }) => tool?.phase === "ended");
        assert.deepEqual([end?.tool?.outcome, end?.reason], ["unknown", "tool.outcome_unknown"], JSON.stringify(seen));
        await cell.judge();
        const call = nodes.get(id)?.callOf(cell.name);
        // A call that was lost on its way is not on the node's disk.
        assert.deepEqual(
          call && { arrivals: call.arrivals, starts: call.starts },
          id === "oldlost" ? undefined : { arrivals: 1, starts: 1 },
        );
      });
    }
  });
});
