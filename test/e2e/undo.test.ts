/** Undo, from outside: the built program, a real gateway and a real node, each of which is killed in the middle. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { type Client, type FakeModel, Machine, type NodeProcess, until, withModel } from "./support.ts";

const CALLS_PER_STEP = 32;
type Call = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

describe("undo of a run", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  withModel(machine, (model) => {
    fake = model;
  });
  before(async () => {
    node = await machine.node("laptop");
  });

  /** Undefined: there is no such file. */
  const contentOf = (name: string): string | undefined => {
    try {
      return statSync(node.file(name)).isFile()
        ? `${statSync(node.file(name)).mode & 0o777} ${readFileSync(node.file(name), "base64")}`
        : undefined;
    } catch {
      return undefined;
    }
  };
  const contents = (): Record<string, string> => {
    const names = readdirSync(node.workspace, { recursive: true, encoding: "utf8" }).sort();
    return Object.fromEntries(
      names.flatMap((name) => [contentOf(name)].flatMap((content) => (content === undefined ? [] : [[name, content]]))),
    );
  };

  it("[UN1] [UN3] [UN4] [UN5] [UN6] 200 rewritten and 40 deleted files on a node and 20 in the workspace come back byte for byte, also after a kill", async () => {
    mkdirSync(node.file("deep/folder"), { recursive: true });
    for (let i = 0; i < 200; i++) writeFileSync(node.file(`r${i}`), Buffer.from([i, 0, 255, 10, i]));
    for (let i = 0; i < 40; i++) writeFileSync(node.file(`deep/folder/d${i}`), `delete me ${i}\r\n`);
    chmodSync(node.file("deep/folder/d7"), 0o750);
    const client = await machine.client();
    for (let i = 0; i < 20; i++) await client.call("workspace.write", { path: `notes/n${i}.md`, content: `note ${i} ü\n` });
    const first = contents();
    const calls: Call[] = [
      ...Array.from({ length: 200 }, (_, i) => ({ name: "laptop__Write", arguments: { path: `r${i}`, content: `rewritten ${i}` } })),
      ...Array.from({ length: 40 }, (_, i) => ({ name: "laptop__Delete", arguments: { path: `deep/folder/d${i}` } })),
      ...Array.from({ length: 20 }, (_, i) => ({ name: "gsv__WriteFile", arguments: { path: `notes/n${i}.md`, content: `new ${i}` } })),
    ];
    for (let at = 0; at < calls.length; at += CALLS_PER_STEP)
      fake.enqueue({ text: "Next. ", toolCalls: calls.slice(at, at + CALLS_PER_STEP) });
    fake.enqueue({ text: "All done." });
    const runId = await client.say("change everything");
    assert.equal((await client.ending(runId)).state, "final");
    const changed = contents();
    assert.equal(Object.keys(changed).length, 200);
    const notes = async (asker: Client): Promise<unknown[]> => {
      const texts = await Promise.all(Array.from({ length: 20 }, (_, i) => asker.call("workspace.read", { path: `notes/n${i}.md` })));
      return texts.map(({ content }) => content);
    };
    const [firstNotes, newNotes] = [(i: number) => `note ${i} ü\n`, (i: number) => `new ${i}`].map((text) =>
      Array.from({ length: 20 }, (_, i) => text(i)),
    );
    assert.deepEqual(await notes(client), newNotes);
    client.close();

    const dry = await machine.ok("undo", "--dry-run");
    assert.match(dry, /would restore {2}r199/);
    assert.match(dry, /would bring back {2}deep\/folder\/d39/);
    assert.deepEqual(contents(), changed, "a dry run changes nothing");

    // Deleted last, so restored first: the node dies while others are still to be done.
    const restored = (): number => Object.entries(first).filter(([name, content]) => contentOf(name) === content).length;
    const cut = machine.gsv(["undo", "--yes"]);
    await until("the first file is back", () => restored() > 0, undefined, 1);
    await node.kill();
    await cut;
    node = await machine.node("laptop");
    // Then the gateway, while the node works on what is left.
    const before = restored();
    const cutAgain = machine.gsv(["undo", "--yes", runId]);
    await until("another file is back", () => restored() > Math.min(before, 239), undefined, 1);
    await machine.killWorkerd();
    await cutAgain;
    await machine.online("laptop");

    const rest = await machine.gsv(["undo", "--yes", "--json", runId]);
    assert.equal(rest.code, 0, `${rest.stderr}\n${node.output}`);
    assert.deepEqual(contents(), first);
    const later = await machine.client();
    assert.deepEqual(await notes(later), firstNotes);

    // All three were one undo, so its name takes back all of them.
    const { undoId } = JSON.parse(rest.stdout) as { undoId: string };
    await machine.ok("undo", "--yes", undoId);
    assert.deepEqual(contents(), changed);
    assert.deepEqual(await notes(later), newNotes);
    later.close();
  });
});
