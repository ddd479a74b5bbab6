/** Search with the built program: files, conversations, transcripts, over restarts. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Machine } from "./support.ts";

interface Found {
  readonly hits: readonly { readonly source: string; readonly path?: string; readonly snippet: string; readonly role?: string }[];
  readonly notes: readonly string[];
}

describe("[SE12] gsv search", () => {
  const machine = new Machine();
  const search = async (...args: string[]): Promise<Found> => JSON.parse(await machine.ok("search", "--json", ...args)) as Found;
  const sources = async (...args: string[]): Promise<string[]> => (await search(...args)).hits.map(({ source }) => source).sort();
  before(() => machine.up());
  after(() => machine.end());

  it("finds a new message, and a file that a person put on the disk", async () => {
    await machine.ok("chat", "say the zephyr is warm");
    const folder = join(machine.home, "workspace", "agents", "main", "notes");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "wind.md"), "# Wind\n\nA zephyr blows from the west. 東風も吹く。\n");
    assert.deepEqual(await sources("zephyr"), ["sessions", "sessions", "workspace"]);
    assert.deepEqual(await sources("東風"), ["workspace"]);
    const shown = await machine.gsv(["search", "zephyr west"]);
    assert.match(shown.stdout, /^notes\/wind\.md:3 .*\n {4}.*A zephyr blows from the west/m);
    assert.match(shown.stderr, /gsv workspace cat notes\/wind\.md/);
    rmSync(folder, { recursive: true });
    assert.deepEqual(await sources("zephyr", "--in", "workspace"), []);
  });
  it("[P12] finds it after a kill, and after a reset in the transcript", async () => {
    await machine.killWorkerd();
    assert.deepEqual(await sources("zephyr"), ["sessions", "sessions"]);
    await machine.ok("chat", "/reset");
    const { hits, notes } = await search("zephyr");
    assert.deepEqual(notes, []);
    assert.deepEqual(hits.map(({ source, role }) => `${source} ${role}`).sort(), ["archives assistant", "archives user"]);
    assert.ok(existsSync(join(machine.home, "workspace", "agents", "main", hits[0]?.path ?? "none")));
  });
  it("[SE9] a deleted index is built again by the next search", async () => {
    await machine.ok("down");
    const durable = readdirSync(machine.home, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith("gsv-SearchIndex"));
    assert.equal(durable.length, 1);
    rmSync(join(machine.home, durable[0] ?? "none"), { recursive: true });
    await machine.up();
    assert.deepEqual(await sources("zephyr"), ["archives", "archives"]);
  });
  it("reports what it could not read, and refuses an invalid query", async () => {
    writeFileSync(join(machine.home, "workspace", "agents", "main", "sessions", "broken.jsonl.gz"), "no gzip");
    const shown = await machine.gsv(["search", "zephyr"]);
    assert.equal(shown.code, 0);
    assert.match(shown.stderr, /broken\.jsonl\.gz` is damaged/);
    const wrong = await machine.gsv(["search", "!!"]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /Name at least one word/);
  });
});
