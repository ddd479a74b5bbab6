/** Long-term memory with the built program: rows in the runtime's own D1, an agent that remembers and recalls, kills in between. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { type FakeModel, Machine, until, withModel } from "./support.ts";

interface Row {
  readonly id: string;
  readonly text: string;
  readonly label: string;
  readonly supersededBy?: string;
}

describe("[LM1] [LM2] [LM5] [LM8] [LM10] gsv memory", () => {
  const machine = new Machine();
  let fake: FakeModel;
  const chat = (message: string): Promise<string> => machine.ok("chat", "--agent", "sorter", message);
  const listed = async (...more: string[]): Promise<readonly Row[]> => {
    const text = await machine.ok("memory", "list", "--agent", "sorter", "--json", ...more);
    return (JSON.parse(text) as { memories: readonly Row[] }).memories;
  };
  const offered = (): readonly string[] => {
    const body = fake.requests.at(-1)?.body as { tools?: readonly { function: { name: string } }[] } | undefined;
    return (body?.tools ?? []).map((tool) => tool.function.name);
  };

  withModel(machine, async (model) => {
    fake = model;
    await machine.defineAgent(
      "sorter",
      "metadata: { id: sorter, name: sorter }\ncore_context: { system_prompt: You sort. }\ntools: { allowed: [gsv__ReadFile] }\nmemory_config: { long_term_enabled: true, top_k: 5 }\n",
    );
  });

  it("the agent remembers, and recalls in another conversation after a kill", async () => {
    await chat('call remember {"text":"Anna prefers linen towels."}');
    assert.deepEqual([...offered()].sort(), ["gsv__ReadFile", "recall_memory", "remember"]);
    await machine.killWorkerd();
    await machine.ok("chat", "--agent", "sorter", "/reset");
    const answer = await chat('call recall_memory {"query":"Which towels does Anna prefer?"}');
    assert.match(answer, /Anna prefers linen towels\./);
    await machine.ok("chat", "say hello");
    assert.ok(offered().includes("recall_memory") && !offered().includes("remember"), "the personal agent has MEMORY.md instead");
  });
  it("[SE8] a recall finds at once what a session or a client has written, and soon what a person has changed on the disk", async () => {
    const client = await machine.client();
    const recalled = async (query: string): Promise<string> =>
      JSON.stringify(await client.call("tool.invoke", { tool: "recall_memory", args: { query } }));
    const folder = join(machine.home, "workspace", "agents", "main", "memory");
    await machine.ok("chat", "say hello");
    assert.doesNotMatch(await recalled("zebra"), /Zoe/);
    await machine.ok("chat", 'call gsv__Remember {"text":"The zebra is called Zoe."}');
    assert.match(await recalled("zebra"), /Zoe/);
    await client.call("workspace.write", { path: "memory/2026-01-02.md", content: "- The quokka is called Quentin.\n" });
    assert.match(await recalled("quokka"), /Quentin/);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "2026-01-03.md"), "- The okapi is called Olga.\n");
    await until("the file is found", async () => ((await recalled("okapi")).includes("Olga") ? true : undefined));
    client.close();
  });
  it("[LM11] [LM12] a fact is found by what it means, without any of its words", async () => {
    await machine.ok("memory", "add", "My car is at the workshop.", "--agent", "main");
    await machine.ok("memory", "add", "The cake needs an hour in the oven.", "--agent", "main");
    const found = await machine.ok("memory", "search", "automobile", "vehicle", "repair", "garage", "--json");
    const { memories } = JSON.parse(found) as { memories: readonly { memory: Row }[] };
    assert.equal(memories[0]?.memory.text, "My car is at the workshop.");
  });
  it("the owner adds, finds, exports and forgets; a newer fact supersedes an older one", async () => {
    const [first] = await listed();
    assert.equal(first?.label, "self");
    await machine.ok("memory", "add", "Anna prefers cotton towels.", "--agent", "sorter", "--supersedes", first?.id ?? "");
    assert.match(await machine.ok("memory", "search", "towels", "--agent", "sorter"), /cotton/);
    assert.doesNotMatch(await machine.ok("memory", "search", "towels", "--agent", "sorter"), /linen/);
    assert.deepEqual(
      (await listed("--all")).map(({ text }) => text),
      ["Anna prefers cotton towels.", "Anna prefers linen towels."],
    );
    const file = join(machine.folder, "memories.jsonl");
    await machine.ok("memory", "export", "--agent", "sorter", "-o", file);
    const rows = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Row);
    assert.deepEqual(rows, await listed("--all"));
    const unsure = await machine.gsv(["memory", "forget", rows[0]?.id ?? "", "--agent", "sorter"]);
    assert.deepEqual([unsure.code, /--yes/.test(unsure.stderr)], [2, true]);
    assert.match((await machine.gsv(["memory", "add", "x", "--supersedes", "nonsense"])).stderr, /There is no memory.*\n.*gsv memory list/);
    assert.equal((await machine.gsv(["memory", "add", " "])).code, 2);
  });
  it("what is forgotten is nowhere in the index, also when workerd is killed in the middle", async () => {
    const canary = "quokkacanary";
    for (const delay of [0, 5, 15, 40]) {
      await machine.ok("memory", "add", `The ${canary} eats leaves.`, "--agent", "sorter");
      assert.match(await machine.ok("memory", "search", canary, "--agent", "sorter"), /leaves/);
      const row = (await listed()).find(({ text }) => text.includes(canary));
      const running = machine.gsv(["memory", "forget", "--yes", row?.id ?? "", "--agent", "sorter"]);
      const due = performance.now() + delay;
      while (performance.now() < due) await new Promise(setImmediate);
      await machine.killWorkerd();
      await running;
      // Status 1 says that it was gone before.
      const again = await machine.gsv(["memory", "forget", "--yes", row?.id ?? "", "--agent", "sorter"]);
      assert.ok(again.code === 0 || /was removed before/.test(again.stderr), again.stderr);
      assert.doesNotMatch(await machine.ok("memory", "search", canary, "--agent", "sorter"), /leaves/);
      assert.deepEqual(
        (await listed()).filter(({ text }) => text.includes(canary)),
        [],
      );
    }
    assert.equal((await listed("--all")).length, 2);
  });
  it("[LM19] what is forgotten is in no file of a stopped gateway whose databases were rewritten, and the others are kept", async () => {
    const canaries = ["wombatcanary", "numbatcanary", "bilbycanary"];
    for (const canary of canaries) {
      await machine.ok("memory", "add", `The ${canary} digs. ${"It is seen at night. ".repeat(300)}`, "--agent", "sorter");
      assert.match(await machine.ok("memory", "search", canary, "--agent", "sorter"), /digs/);
    }
    const rows = await listed();
    const [kept, ...gone] = canaries;
    const ids = gone.flatMap((canary) => rows.filter(({ text }) => text.includes(canary)).map(({ id }) => id));
    await machine.ok("memory", "forget", "--yes", ...ids, "--agent", "sorter");
    await machine.ok("down");
    const files = (): readonly string[] =>
      readdirSync(machine.home, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name));
    const databases = files().filter((file) => file.endsWith(".sqlite"));
    assert.ok(databases.length > 2);
    for (const file of databases) {
      const database = new DatabaseSync(file);
      database.exec("VACUUM");
      database.close();
    }
    const withText = (text: string): readonly string[] => files().filter((file) => readFileSync(file).includes(text));
    assert.ok(withText(kept ?? "").length > 0, "the files are those that hold memories");
    for (const canary of gone) assert.deepEqual(withText(canary), []);
    await machine.up();
    assert.match(await machine.ok("memory", "search", kept ?? "", "--agent", "sorter"), /digs/);
    assert.equal((await listed()).length, rows.length - gone.length);
  });
});
