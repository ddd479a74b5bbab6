/**
 * A call that waits for a machine that is not running, with the real gateway and a real `gsv node`: the gateway is killed meanwhile, the
 * machine comes back, and the command has run once. A command writes one line, and the tests count these lines.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { callsThenTells, Rig } from "./kill-support.ts";
import { type NodeProcess, until } from "./support.ts";

interface Listed {
  readonly nodes: readonly {
    readonly nodeId: string;
    readonly online: boolean;
    readonly waiting?: readonly { readonly sessionKey: string }[];
  }[];
}

describe("a call that waits for a machine", () => {
  let rig: Rig;
  let node: NodeProcess | undefined;
  const box = async (): Promise<Listed["nodes"][number] | undefined> => {
    const { nodes } = (await rig.with((client) => client.call("nodes.list"))) as unknown as Listed;
    return nodes.find(({ nodeId }) => nodeId === "box");
  };
  before(async () => {
    rig = await Rig.start();
  });
  after(async () => {
    rig.checkLog();
    await rig.end();
  });

  /** The machine was there once, and is not now. The model calls it with this wait. */
  async function waiting(title: string, wait: string): Promise<ReturnType<Rig["cell"]>> {
    await node?.kill();
    await until("the machine is away", async () => (await box())?.online !== true);
    node = rig.realNode("box");
    await rig.isOnline("box");
    await node.kill();
    await until("the machine is away", async () => (await box())?.online === false);
    const cell = rig.cell(title);
    const command = `echo ran >> ${cell.name}.ran; echo RESULT-${cell.name}`;
    rig.model.serve(cell.name, { answer: callsThenTells({ name: "box__Bash", arguments: { command, wait } }) });
    await rig.with((client) => cell.say(client));
    await until("the call waits", async () => (await box())?.waiting?.some(({ sessionKey }) => sessionKey === cell.sessionKey));
    return cell;
  }
  const lines = (name: string): readonly string[] => node?.lines(`${name}.ran`) ?? [];

  it("[OM1] [OM2] [OM4] [OM9] [P6] the gateway is killed while it waits, and the machine comes back: it ran once, and the answer has its output", async () => {
    const cell = await waiting("killed while it waits", "2h");
    assert.match(await rig.machine.ok("nodes", "list"), /box\s+offline, 1 call waits until \d\d:\d\d/);
    assert.match(await rig.machine.ok("why", "-s", cell.sessionKey), /not yet: it waits for box, 1 h 59 min more \(box__Bash\)/);
    rig.shoot();
    await rig.risen();
    node = rig.realNode("box");
    const seen = await cell.judge();
    assert.deepEqual(lines(cell.name), ["ran"]);
    assert.match(seen.text, new RegExp(`RESULT-${cell.name}`));
    assert.equal((await box())?.waiting, undefined);
  });

  it("[OM3] [OM4] the gateway is killed right after the machine came back: it ran once", async () => {
    const cell = await waiting("killed when it is back", "2h");
    node = rig.realNode("box");
    await rig.isOnline("box");
    rig.shoot();
    await rig.risen();
    const seen = await cell.judge();
    assert.deepEqual(lines(cell.name), ["ran"]);
    assert.match(seen.text, new RegExp(`RESULT-${cell.name}`));
  });

  it("[OM3] the owner forbids it meanwhile: it does not run, and the model is told", async () => {
    const cell = await waiting("forbidden meanwhile", "2h");
    await rig.with((client) =>
      client.call("config.set", { path: "toolApproval.rules", value: [{ id: "no", tool: "box__*", decision: "deny" }] }),
    );
    node = rig.realNode("box");
    await cell.judge();
    await rig.with((client) => client.call("config.set", { path: "toolApproval.rules", value: [] }));
    assert.deepEqual(lines(cell.name), []);
  });

  it("[OM2] its time is over: it does not run, also when the machine comes later", async () => {
    const cell = await waiting("too late", "2s");
    const seen = await cell.judge();
    assert.match(JSON.stringify(seen.messages), /did not connect within \d s/);
    node = rig.realNode("box");
    await rig.isOnline("box");
    assert.deepEqual(lines(cell.name), []);
  });
});
