/**
 * The kill matrix, workerd: SIGKILL at each point of a message's way through gateway, session and model, observed from outside
 * (K1 to K9, K21 to K24). Each cell has its own session and is judged by the oracle in kill-support.ts.
 */
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { LIMITS } from "../../protocol/gen/limits.ts";
import { callsThenTells, delays, type Rig, says, type ScriptedNode, spin, withRig } from "./kill-support.ts";
import { textOf, until } from "./support.ts";

describe("the gateway, killed", () => {
  let rig: Rig;
  let node: ScriptedNode;
  withRig((started, scripted) => {
    rig = started;
    node = scripted;
  });

  describe("around chat.send", () => {
    for (const delay of delays([0, 3])) {
      it(`[K1] [K2] [P1] ${delay} ms after chat.send was written, and before it was answered: sent again, it is one turn`, async () => {
        const cell = rig.cell("k1");
        rig.model.serve(cell.name, { answer: says("only once") });
        const said = cell.word();
        await rig.with(async (client) => {
          client.call("chat.send", { ...said }).catch(() => undefined);
          // One turn of the event loop, so that the frame is written.
          await new Promise(setImmediate);
          spin(delay);
          rig.shoot();
          await rig.risen();
        });
        await rig.insist(said);
        assert.equal((await cell.judge()).text, "only once");
      });
    }

    for (const delay of delays([0, 2])) {
      it(`[K3] [K5] [K6] ${delay} ms after a message was accepted: it is answered and no one asks again`, async () => {
        const cell = rig.cell("k3");
        rig.model.serve(cell.name, { answer: says("by itself") });
        const leased = Date.now();
        await rig.with(async (client) => {
          await cell.say(client);
          spin(delay);
          rig.shoot();
        });
        await rig.risen();
        const seen = await cell.judge();
        assert.equal(seen.text, "by itself");
        assert.ok(Date.now() < leased + LIMITS.leaseMs, "recovery began by itself, before any lease ran out");
      });
    }

    it("[K4] [P3] with three messages waiting, in the middle of each of them: all are answered, in order", async () => {
      const cell = rig.cell("k4");
      let killed = 0;
      rig.model.serve(cell.name, {
        answer: ({ text }) => ({ text: `about ${text.at(-1)}` }),
        arrived: ({ text }) => {
          if (Number(text.at(-1)) !== killed) return undefined;
          killed += 1;
          // The test may not have noticed the earlier kill yet.
          return until("the gateway is up", () => !rig.isShot).then(() => rig.shoot());
        },
      });
      await rig.with(async (client) => {
        for (let i = 0; i < 3; i++) client.call("chat.send", { ...cell.word() }).catch(() => undefined);
        await rig.risen();
      });
      for (const said of cell.said) await rig.insist(said);
      for (let i = 1; i < 3; i++) await rig.risen();
      const seen = await cell.judge();
      assert.deepEqual(
        seen.messages.filter(({ role }) => role === "assistant").map(({ content }) => JSON.stringify(content).match(/about \d/)?.[0]),
        ["about 0", "about 1", "about 2"],
      );
    });

    it("[K4] [P14] after chat.abort was answered: the run stays stopped, and the queued message is answered", async () => {
      const cell = rig.cell("abort");
      rig.model.serve(cell.name, {
        answer: says("second"),
        arrived: ({ text }) => (text.endsWith("#0") ? new Promise(() => undefined) : undefined),
      });
      await rig.with(async (client) => {
        await cell.say(client);
        await cell.say(client);
        await until("the model is asked", () => rig.model.turns(cell.name).length === 1);
        const aborted = await client.call("chat.abort", { sessionKey: cell.sessionKey, runId: cell.said[0]?.runId });
        assert.equal(aborted["wasRunning"], true);
        rig.shoot();
      });
      await rig.risen();
      await cell.settled();
      const { events } = await cell.look();
      const ends = cell.said.map(({ runId }) =>
        events.filter((event) => event.runId === runId && ["final", "error", "aborted"].includes(event.state)).map(({ state }) => state),
      );
      assert.deepEqual(ends, [["aborted"], ["final"]]);
    });
  });

  for (const wire of ["openai", "anthropic"] as const) {
    describe(`around the model call (${wire})`, () => {
      before(async () => {
        await rig.calm();
        await rig.use(wire);
      });

      it(`[K7] workerd killed when the request has arrived (${wire})`, async () => {
        const cell = rig.cell(`k7 ${wire}`);
        let again = 0;
        rig.model.serve(cell.name, {
          answer: says("the answer"),
          arrived: ({ n }) => {
            if (n === 1) rig.shoot();
            else again = Date.now();
          },
        });
        const leased = Date.now();
        await cell.sayIntoKill();
        await rig.risen();
        assert.equal((await cell.judge()).text, "the answer");
        assert.equal(rig.model.turns(cell.name).length, 2);
        assert.ok(again < leased + LIMITS.leaseMs, "recovery began by itself, before any lease ran out");
      });

      const points = [
        ["[K8] workerd killed after the first piece of text", "text", (nth: number): boolean => nth === 1],
        ["[K8] workerd killed in the middle of the text", "text", (nth: number, of: number): boolean => nth === Math.ceil(of / 2)],
        ["[K8] workerd killed between the last piece of text and the end", "text", (nth: number, of: number): boolean => nth === of],
        ["[K9] workerd killed between the stop and the end of the stream", "stop", (nth: number, of: number): boolean => nth === of],
      ] as const;
      for (const [title, kind, here] of points) {
        it(`${title} (${wire})`, async () => {
          const cell = rig.cell(`k8 ${wire}`);
          rig.model.serve(cell.name, {
            answer: says("one two three four five six"),
            wrote: ({ n }, piece) => {
              if (n === 1 && piece.kind === kind && here(piece.nth, piece.of)) rig.shoot();
            },
          });
          await cell.sayIntoKill();
          await rig.risen();
          assert.equal((await cell.judge()).text, "one two three four five six");
          assert.equal(rig.model.turns(cell.name).length, 2);
        });
      }

      it(`[K8] [P5] workerd killed in the middle of a tool call's arguments: no incomplete call is made (${wire})`, async () => {
        const cell = rig.cell(`k8 args ${wire}`);
        rig.model.serve(cell.name, {
          answer: callsThenTells({ name: "box__Do", arguments: { cell: cell.name, padding: "x".repeat(200) } }),
          wrote: ({ n }, { kind, nth, of }) => {
            if (n === 1 && kind === "args" && nth === Math.ceil(of / 2)) rig.shoot();
          },
        });
        await cell.sayIntoKill();
        await rig.risen();
        assert.match((await cell.judge()).text, /"start":1/);
        assert.equal(node.callOf(cell.name)?.args["padding"], "x".repeat(200));
        assert.equal(node.callOf(cell.name)?.starts, 1);
      });

      for (const delay of delays([0, 2])) {
        it(`[K9] [K22] workerd killed ${delay} ms after the stream had ended (${wire})`, async () => {
          const cell = rig.cell(`k9 ${wire}`);
          rig.model.serve(cell.name, {
            answer: says("all of it"),
            ended: ({ n }) => {
              if (n > 1) return;
              spin(delay);
              rig.shoot();
            },
          });
          await cell.sayIntoKill();
          await rig.risen();
          assert.equal((await cell.judge()).text, "all of it");
        });
      }

      it(`[K21] workerd killed when the second step's request has arrived: the first step is not repeated (${wire})`, async () => {
        const cell = rig.cell(`k21 ${wire}`);
        rig.model.serve(cell.name, {
          answer: callsThenTells({ name: "box__Do", arguments: { cell: cell.name } }),
          arrived: ({ n }) => {
            if (n === 2) rig.shoot();
          },
        });
        await cell.sayIntoKill();
        await rig.risen();
        assert.match((await cell.judge()).text, /"start":1/);
        assert.equal(rig.model.turns(cell.name).length, 3);
      });

      it(`[K10] workerd killed when the client saw the calls of a step: they are made once (${wire})`, async () => {
        const cell = rig.cell(`k10 ${wire}`);
        rig.model.serve(cell.name, {
          answer: callsThenTells(
            { name: "box__Do", arguments: { cell: cell.name, i: 1 } },
            { name: "box__Look", arguments: { i: 2 } },
            { name: "box__Do", arguments: { i: 3 } },
          ),
        });
        await rig.with(async (client) => {
          await cell.say(client);
          await client.waitForChat("the first call is shown", ({ runId, state }) => runId === cell.said[0]?.runId && state === "tool");
          rig.shoot();
        });
        await rig.risen();
        const seen = await cell.judge();
        assert.equal(seen.messages.filter(({ role }) => role === "toolResult").length, 3);
      });
    });
  }

  describe("around the end of a run", () => {
    it("[K22] [K23] right after `final` was seen: there is one final, and the model is not asked again", async () => {
      const cell = rig.cell("k22");
      rig.model.serve(cell.name, { answer: says("committed") });
      await rig.with(async (client) => {
        await cell.say(client);
        await client.ending(cell.said[0]?.runId ?? "");
        rig.shoot();
      });
      await rig.risen();
      assert.equal((await cell.judge()).text, "committed");
      assert.equal(rig.model.turns(cell.name).length, 1);
    });

    it("[K23] [P11] a client that reconnects after the kill gets the events that it has missed, once", async () => {
      const cell = rig.cell("k23");
      // The client has the answer to its request before the kill, also on a slow machine.
      const sent = Promise.withResolvers<undefined>();
      rig.model.serve(cell.name, {
        answer: ({ text }) => ({ text: `about ${text.at(-1)}` }),
        ended: ({ text, n }) => {
          if (n === 2 && text.endsWith("#1")) void sent.promise.then(() => rig.shoot());
        },
      });
      const seen: number[] = await rig.with(async (client) => {
        await cell.say(client);
        await client.ending(cell.said[0]?.runId ?? "");
        await cell.say(client);
        sent.resolve(undefined);
        await until("the link is gone", () => client.closed);
        return client.chats().flatMap(({ sessionSeq }) => sessionSeq ?? []);
      });
      await rig.risen();
      await cell.settled();
      const later = await rig.with(async (client) => {
        const { events } = await client.call("session.subscribe", { sessionKey: cell.sessionKey, afterSeq: Math.max(...seen) });
        return (events as { payload: { sessionSeq: number } }[]).map(({ payload }) => payload.sessionSeq);
      });
      const all = (await cell.judge()).events.map(({ sessionSeq }) => sessionSeq);
      assert.deepEqual([...seen, ...later], all);
    });

    it("[K8] [C4] a client that subscribes again in the middle of the repeated answer shows each word once", async () => {
      const cell = rig.cell("screen");
      let go = (): void => undefined;
      const rest = new Promise<void>((resolve) => {
        go = resolve;
      });
      rig.model.serve(cell.name, {
        answer: says("one two three four"),
        wrote: ({ n }, { kind, nth }) => {
          if (kind !== "text" || nth !== 2) return undefined;
          if (n === 2) return rest;
          rig.shoot();
          return undefined;
        },
      });
      await cell.sayIntoKill();
      await rig.risen();
      await until("the answer is given again", () => rig.model.turns(cell.name).length === 2);
      await rig.with(async (client) => {
        const now = await until("the first words are there", async () => {
          const state = await client.call("session.subscribe", { sessionKey: cell.sessionKey, afterSeq: 0 });
          return typeof state["text"] === "string" ? state : undefined;
        });
        go();
        const runId = cell.said[0]?.runId ?? "";
        const end = await client.ending(runId);
        let shown = String(now["text"]);
        for (const { state, step, attempt, text, offset } of client.chats(runId)) {
          if (state !== "delta" || text === undefined) continue;
          assert.deepEqual([step, attempt], [now["step"], now["attempt"]], "the subscription names the attempt that goes on");
          shown = shown.slice(0, offset) + text;
        }
        assert.equal(shown, textOf(end));
      });
      await cell.judge();
    });

    it("[K24] between one run's end and the next one's start: both are answered once", async () => {
      const cell = rig.cell("k24");
      rig.model.serve(cell.name, { answer: ({ text }) => ({ text: `about ${text.at(-1)}` }) });
      await rig.with(async (client) => {
        await cell.say(client);
        await cell.say(client);
        await client.ending(cell.said[0]?.runId ?? "");
        rig.shoot();
      });
      await rig.risen();
      assert.equal((await cell.judge()).text, "about 1");
    });
  });

  describe("with other processes", () => {
    it("[P12] a power failure in the middle of an answer: `gsv up` completes it", async () => {
      const cell = rig.cell("power");
      const cuts: Promise<void>[] = [];
      rig.model.serve(cell.name, {
        answer: says("one two three"),
        wrote: ({ n }, { kind, nth }) => {
          if (n === 1 && kind === "text" && nth === 2) cuts.push(rig.powerCut());
        },
      });
      await cell.sayIntoKill();
      await until("the power is cut", () => cuts.length === 1);
      await Promise.all(cuts);
      assert.equal((await cell.judge()).text, "one two three");
    });

    it("[P12] only the supervisor killed in the middle of an answer: `gsv up` replaces it, and the answer comes once", async () => {
      const cell = rig.cell("supervisor");
      const repairs: Promise<void>[] = [];
      rig.model.serve(cell.name, {
        answer: says("one two three"),
        wrote: ({ n }, { kind, nth }) => {
          if (n === 1 && kind === "text" && nth === 2) repairs.push(rig.orphan());
        },
      });
      await cell.sayIntoKill();
      await until("the supervisor is killed", () => repairs.length === 1);
      await Promise.all(repairs);
      assert.equal((await cell.judge()).text, "one two three");
    });

    it("[P12] twenty sessions at different points and one kill: each ends as it would have without", async () => {
      const gate = new Promise<void>((open) => {
        node.at.started = async ({ args }) => (typeof args["hold"] === "string" ? gate : undefined);
        void until("the gateway was killed", () => rig.isShot).then(() => open());
      });
      const ready = new Set<string>();
      const cells = Array.from({ length: 20 }, (_, i) => {
        const cell = rig.cell(`many ${i}`);
        const hold = (): Promise<void> => {
          ready.add(cell.name);
          return gate;
        };
        const point = i % 5;
        rig.model.serve(cell.name, {
          answer:
            point < 2
              ? says(`answer ${i}`)
              : callsThenTells({ name: "box__Do", arguments: { cell: cell.name, ...(point === 2 ? { hold: "yes" } : {}) } }),
          // At arrival of the request, in the middle of the text, during a call, in the second step, and after the end.
          arrived: ({ n, results }) => ((n === 1 && point === 0) || (point === 3 && results.length === 1 && n === 2) ? hold() : undefined),
          wrote: ({ n }, { kind }) => (n === 1 && point === 1 && kind === "text" ? hold() : undefined),
        });
        return { cell, point };
      });
      await rig.with(async (client) => {
        for (const { cell } of cells) await cell.say(client);
        await until("every session is at its point", () =>
          cells.every(({ cell, point }) => {
            if (point === 2) return (node.callOf(cell.name)?.starts ?? 0) > 0;
            return point === 4 ? client.chats(cell.said[0]?.runId).some(({ state }) => state === "final") : ready.has(cell.name);
          }),
        );
        rig.shoot();
      });
      await rig.risen();
      for (const [i, { cell, point }] of cells.entries())
        assert.match((await cell.judge()).text, point < 2 ? new RegExp(`^answer ${i}$`) : /"start":1/, cell.name);
    });
  });
});
