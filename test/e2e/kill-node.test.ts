/**
 * The kill matrix, a real `gsv node`: SIGKILL of the node, of workerd, of both, and a broken link, at each stage of a command (K15 to
 * K19). A command writes one line when it begins and one when it ends; the tests count these lines.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { callsThenTells, delays, LinkProxy, resultTexts, Rig, type Seen, spin } from "./kill-support.ts";
import { type NodeProcess, processesWith, until } from "./support.ts";

type Phase = "accepted" | "started";
const RECORDED_MS = 30_000;

describe("a command on a real node", () => {
  let rig: Rig;
  let proxy: LinkProxy;
  /** One node connects directly, the other through a link that can be cut. */
  let node: NodeProcess;
  let far: NodeProcess;
  before(async () => {
    rig = await Rig.start();
    proxy = await LinkProxy.start(rig.machine);
    node = rig.realNode("box");
    far = rig.realNode("far", proxy.url);
    await rig.isOnline("box");
    await rig.isOnline("far");
  });
  after(async () => {
    await rig.end();
    await proxy.close();
  });
  beforeEach(async () => {
    await rig.calm();
    await rig.isOnline("box");
    await rig.isOnline("far");
  });
  afterEach(() => {
    rig.checkLog();
  });

  /** A command that writes a line, waits for the test, and writes another line. */
  function command(title: string, on = "box"): { cell: ReturnType<Rig["cell"]>; gate: string } {
    const cell = rig.cell(title);
    const gate = cell.name;
    const script = `echo begun >> ${gate}.begun; until [ -e ${gate} ]; do sleep 0.02; done; echo RESULT-${gate}; echo ended >> ${gate}.ended`;
    rig.model.serve(cell.name, { answer: callsThenTells({ name: `${on}__Bash`, arguments: { command: script } }) });
    return { cell, gate };
  }
  /** Sends the message and calls back, synchronously, when the node has recorded the call, or when a client sees that it was started. */
  async function atPhase(cell: ReturnType<Rig["cell"]>, phase: Phase, then: () => void, on = "box"): Promise<void> {
    const recorded = (): string => readFileSync(join(rig.machine.home, "node", on, "ledger", "ledger.log"), "latin1");
    await rig.with(async (client) => {
      const before = recorded();
      await cell.say(client);
      if (phase === "accepted") {
        const patience = Date.now() + RECORDED_MS;
        while (recorded() === before) {
          if (Date.now() > patience) throw new Error("the node has not recorded the call");
          await new Promise((resolve) => setImmediate(resolve));
        }
      } else
        await client.waitFor(
          "the call is started",
          ({ event, payload }) => event === "tool.progress" && payload["sessionKey"] === cell.sessionKey && payload["phase"] === phase,
        );
      then();
    });
  }
  async function begun(cell: ReturnType<Rig["cell"]>, gate: string, on = node): Promise<void> {
    await rig.with((client) => cell.say(client));
    await until("the command runs", () => on.lines(`${gate}.begun`).length > 0);
  }
  const open = (gate: string, on = node): void => writeFileSync(on.file(gate), "");
  const restarted = async (): Promise<void> => {
    node = rig.realNode("box");
    await rig.isOnline("box");
  };
  /** The command ran once from beginning to end, and the model has its output. */
  function ranOnce(seen: Seen, gate: string, on = node): void {
    assert.deepEqual([on.lines(`${gate}.begun`), on.lines(`${gate}.ended`)], [["begun"], ["ended"]]);
    assert.match(seen.text, new RegExp(`RESULT-${gate}`), JSON.stringify(seen.events));
  }

  /** The model was told what happened: done, not begun, or unknown; and the command did not begin twice. */
  function ranAsTold(seen: Seen, gate: string): void {
    const { outcome } = seen.events.find(({ tool }) => tool?.phase === "ended")?.tool ?? {};
    const begun = node.lines(`${gate}.begun`).length;
    if (outcome === "ok") ranOnce(seen, gate);
    else if (outcome === "error") assert.equal(begun, 0, JSON.stringify(seen.events));
    else assert.deepEqual([outcome, begun <= 1], ["unknown", true], JSON.stringify(seen.events));
  }

  describe("when the node is killed", () => {
    for (const phase of ["accepted", "started"] as const) {
      for (const delay of delays([0])) {
        it(`[K15] [K16'] ${delay} ms after the call was ${phase}: it starts at most once, and the model is told what is known`, async () => {
          const { cell, gate } = command(`node ${phase}`);
          await atPhase(cell, phase, () => {
            spin(delay);
            void node.kill();
          });
          await restarted();
          open(gate);
          const seen = await cell.judge();
          ranAsTold(seen, gate);
        });
      }
    }

    it("[K16] and the command continues: the restarted node attaches to it", async () => {
      const { cell, gate } = command("survives");
      await begun(cell, gate);
      await node.kill();
      await restarted();
      open(gate);
      ranOnce(await cell.judge(), gate);
    });

    it("[K17] and the command ends meanwhile: the restarted node has its result", async () => {
      const { cell, gate } = command("ends alone");
      await begun(cell, gate);
      await node.kill();
      open(gate);
      await until("the command has ended", () => node.lines(`${gate}.ended`).length > 0);
      await restarted();
      ranOnce(await cell.judge(), gate);
    });

    for (const delay of delays([0, 6])) {
      it(`[K17] [K18] [K19] ${delay} ms after the command had ended`, async () => {
        const { cell, gate } = command("at the end");
        await begun(cell, gate);
        open(gate);
        await until("the command has ended", () => node.lines(`${gate}.ended`).length > 0);
        spin(delay);
        await node.kill();
        await restarted();
        ranOnce(await cell.judge(), gate);
      });
    }

    it("[K16'] with the command and its supervisor too, as in a power failure: the outcome is unknown, and the last output is reported", async () => {
      const cell = rig.cell("machine down");
      const gate = cell.name;
      const script = `echo LAST-WORDS; echo begun >> ${gate}.begun; sleep 300`;
      rig.model.serve(cell.name, { answer: callsThenTells({ name: "box__Bash", arguments: { command: script, timeout: 600_000 } }) });
      await begun(cell, gate);
      await node.kill();
      const killed = processesWith(`${gate}.begun`);
      assert.ok(killed.length >= 2, "the supervisor and the shell");
      // The supervisor first: it would report how the command ended. A process of a sandbox ends with the one that started it.
      for (const pid of killed)
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          assert.ok(!existsSync(`/proc/${pid}`));
        }
      await restarted();
      const seen = await cell.judge();
      const ended = seen.events.find(({ tool }) => tool?.phase === "ended");
      assert.equal(ended?.tool?.outcome, "unknown", JSON.stringify(ended));
      assert.match(resultTexts(seen.messages)[0] ?? "", /LAST-WORDS/);
      assert.deepEqual(node.lines(`${gate}.begun`), ["begun"]);
    });

    it("[K15] with eight calls running and two waiting: each of the ten is done once", async () => {
      const cell = rig.cell("ten");
      const gate = cell.name;
      const calls = Array.from({ length: 10 }, (_, i) => ({
        name: "box__Bash",
        arguments: { command: `echo begun ${i} >> ${gate}.begun; until [ -e ${gate} ]; do sleep 0.05; done; echo RESULT-${i}-` },
      }));
      rig.model.serve(cell.name, { answer: callsThenTells(...calls) });
      await rig.with((client) => cell.say(client));
      await until("eight run", () => node.lines(`${gate}.begun`).length === 8);
      await node.kill();
      await restarted();
      open(gate);
      const seen = await cell.judge();
      assert.deepEqual(node.lines(`${gate}.begun`).sort(), calls.map((_, i) => `begun ${i}`).sort());
      const results = resultTexts(seen.messages);
      for (const i of calls.keys()) assert.equal(results.filter((text) => text.includes(`RESULT-${i}-`)).length, 1, results.join("\n"));
    });

    it("[P6] during a Write: the file is complete or absent", async () => {
      const cell = rig.cell("write");
      const content = "0123456789".repeat(20_000);
      const path = `${cell.name}.txt`;
      rig.model.serve(cell.name, { answer: callsThenTells({ name: "box__Write", arguments: { path, content } }) });
      await atPhase(cell, "accepted", () => void node.kill());
      await restarted();
      const seen = await cell.judge();
      assert.equal(seen.messages.filter(({ role }) => role === "toolResult").length, 1);
      const { outcome } = seen.events.find(({ tool }) => tool?.phase === "ended")?.tool ?? {};
      const there = existsSync(node.file(path)) ? readFileSync(node.file(path), "utf8") : undefined;
      assert.ok(there === undefined || there === content);
      if (outcome === "ok") assert.equal(there, content);
      else assert.equal(outcome, "unknown", JSON.stringify(seen.events));
    });
  });

  describe("when both are killed", () => {
    for (const phase of ["accepted", "started"] as const) {
      it(`[K15] [K16'] when the call is ${phase}: it starts at most once`, async () => {
        const { cell, gate } = command(`both ${phase}`);
        await atPhase(cell, phase, () => {
          rig.shoot();
          void node.kill();
        });
        await rig.risen();
        await restarted();
        open(gate);
        const seen = await cell.judge();
        ranAsTold(seen, gate);
      });
    }

    for (const first of ["gateway", "node"] as const) {
      it(`[K16] [K17] while the command runs, the ${first} back first: the command's result arrives`, async () => {
        const { cell, gate } = command(`both ${first} first`);
        await begun(cell, gate);
        rig.shoot();
        await node.kill();
        open(gate);
        await until("the command has ended", () => node.lines(`${gate}.ended`).length > 0);
        if (first === "gateway") await rig.risen();
        node = rig.realNode("box");
        if (first === "node") await rig.risen();
        await rig.isOnline("box");
        ranOnce(await cell.judge(), gate);
      });
    }

    it("[K18] [P12] all but the command killed: `gsv up` and `gsv node` complete the run", async () => {
      const { cell, gate } = command("power");
      await begun(cell, gate);
      await Promise.all([rig.powerCut(), node.kill()]);
      open(gate);
      await restarted();
      ranOnce(await cell.judge(), gate);
    });
  });

  describe("when workerd is killed", () => {
    for (const phase of ["accepted", "started"] as const) {
      it(`[K15] [K16] when the call is ${phase}: the node goes on, and its result arrives`, async () => {
        const { cell, gate } = command(`gateway ${phase}`);
        await atPhase(cell, phase, () => rig.shoot());
        await rig.risen();
        open(gate);
        ranOnce(await cell.judge(), gate);
      });
    }
    for (const delay of delays([0, 3])) {
      it(`[K18] [K19] [K20] ${delay} ms after the command had ended`, async () => {
        const { cell, gate } = command(`gateway end ${delay}`);
        await begun(cell, gate);
        open(gate);
        await until("the command has ended", () => node.lines(`${gate}.ended`).length > 0);
        spin(delay);
        rig.shoot();
        await rig.risen();
        ranOnce(await cell.judge(), gate);
      });
    }
  });

  describe("when only the link is cut", () => {
    afterEach(() => {
      proxy.restore();
    });
    for (const phase of ["accepted", "started"] as const) {
      it(`[K14] [K16] when the call is ${phase}: it goes on, and its result arrives`, async () => {
        const { cell, gate } = command(`link ${phase}`, "far");
        await atPhase(cell, phase, () => proxy.cut(), "far");
        open(gate, far);
        await until("the command has ended", () => far.lines(`${gate}.ended`).length > 0);
        proxy.restore();
        ranOnce(await cell.judge(), gate, far);
      });
    }
    for (const delay of delays([0, 2])) {
      it(`[K18] [K19] ${delay} ms after the command had ended`, async () => {
        const { cell, gate } = command(`link end ${delay}`, "far");
        await begun(cell, gate, far);
        open(gate, far);
        await until("the command has ended", () => far.lines(`${gate}.ended`).length > 0);
        spin(delay);
        proxy.cut();
        proxy.restore();
        ranOnce(await cell.judge(), gate, far);
      });
    }
  });
});

/** True for a process at work in this node's workspace; ids of processes that are gone may belong to others by now. */
