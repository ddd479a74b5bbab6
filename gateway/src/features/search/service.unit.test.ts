/** [SE8] What a search brings up to date: only what it searches. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { database } from "../../../test/features/search/recall-measure.ts";
import type { SearchRequest } from "../../ports/search.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { IndexStore } from "./index-store.ts";
import { parseQuery } from "./query.ts";
import { SearchService } from "./service.ts";

const FOLDER = "agents/main/";
function world() {
  const files = new Map<string, { text: string; taint?: string }>();
  const asked: string[] = [];
  const broken = { now: false };
  const clock = { ms: 1 };
  /** What a listing waits for. */
  const held: { until?: Promise<void> } = {};
  /** What is written after the listing. */
  const late = new Map<string, { text: string; taint?: string }>();
  const objectOf = (key: string) => {
    const file = files.get(key.slice(FOLDER.length));
    if (file === undefined) return undefined;
    const bytes = new TextEncoder().encode(file.text);
    return {
      key,
      etag: file.text,
      size: bytes.length,
      uploaded: new Date(1_000),
      customMetadata: file.taint === undefined ? {} : { taint: file.taint },
      body: new Blob([bytes]).stream(),
      arrayBuffer: async () => bytes.buffer,
    };
  };
  const bucket = {
    list: async ({ prefix, delimiter }: { prefix: string; delimiter?: string }) => {
      asked.push(prefix.slice(FOLDER.length));
      await held.until;
      const keys = [...files.keys()].map((name) => FOLDER + name).filter((key) => key.startsWith(prefix));
      const isIn = (key: string): boolean => delimiter !== undefined && key.slice(prefix.length).includes(delimiter);
      const folders = keys.filter(isIn).map((key) => `${prefix}${key.slice(prefix.length).split("/")[0]}/`);
      return { objects: keys.filter((key) => !isIn(key)).map(objectOf), delimitedPrefixes: [...new Set(folders)], truncated: false };
    },
    get: async (key: string) => {
      if (broken.now) throw new Error("the bucket does not answer");
      for (const [name, file] of late) files.set(name, file);
      late.clear();
      return objectOf(key) ?? null;
    },
    head: async (key: string) => {
      asked.push(key.slice(FOLDER.length));
      return objectOf(key) ?? null;
    },
  } as unknown as Bucket;
  const db = database();
  /** The words in FTS5's own table. */
  const words = (): string =>
    db.sql
      .exec<{ block: ArrayBuffer }>("SELECT block FROM places_data")
      .toArray()
      .map(({ block }) => Buffer.from(block).toString("latin1"))
      .join();
  const service = new SearchService({
    store: new IndexStore(db),
    bucket,
    sessions: async () => {
      asked.push("conversations");
      return { sessions: [], more: false };
    },
    rows: async () => ({ ok: false, error: { reason: "session.not_found", message: "none" } }),
    memories: async () => {
      asked.push("rows");
      return { ok: true, value: [] };
    },
    now: () => clock.ms,
    wakeIn: () => undefined,
    after: () => () => undefined,
  });
  const search = async (more: Partial<SearchRequest>) => {
    const match = parseQuery("zebra");
    assert.ok(match.ok);
    asked.length = 0;
    const sources = ["workspace", "sessions", "archives"] as const;
    const { hits } = await service.query({ agentId: "main", match: match.value, sources, limit: 20, offset: 0, ...more });
    return { names: hits.map(({ name }) => name).sort(), taints: hits.map(({ taint }) => taint), asked: [...asked].sort() };
  };
  return { asked, broken, clock, files, held, late, search, words };
}
const memoryOf = { keys: ["agent:main:main"], prefix: "agent:main:cli:dm:" };
const REMEMBERED: Partial<SearchRequest> = { memoryOf, sources: ["workspace", "archives", "memory"] };

describe("[SE8] what is brought up to date", () => {
  test("a search of memories lists memory files and transcripts, and no conversation; other files stay found", async () => {
    const { files, search } = world();
    for (const name of ["MEMORY.md", "MEMORY.md.bak", "notes.md", "skills/a/SKILL.md", "memory/2026-01-01.md"])
      files.set(name, { text: `a zebra in ${name}` });
    const remembered = await search(REMEMBERED);
    assert.deepEqual(remembered.names, ["MEMORY.md", "memory/2026-01-01.md"]);
    assert.deepEqual(remembered.asked, ["MEMORY.md", "memory/", "rows", "sessions/"]);
    const all = await search({});
    assert.deepEqual(all.names, [...files.keys()].sort());
    assert.deepEqual(all.asked, ["", "conversations", "memory/", "rows", "sessions/", "skills/"]);
    files.delete("MEMORY.md");
    assert.deepEqual((await search(REMEMBERED)).names, ["memory/2026-01-01.md"], "a removed file is not found any more");
    assert.equal((await search({})).names.length, 4, "files that were not listed are not gone");
  });
  test("a search of rows lists nothing; rows are read again only after a write", async () => {
    const { search } = world();
    const of = async (rowsState?: string) =>
      (await search({ memoryOf, sources: ["memory"], ...(rowsState === undefined ? {} : { rowsState }) })).asked;
    assert.deepEqual([await of("a 0"), await of("a 0"), await of("a 1"), await of("a 1")], [["rows"], [], ["rows"], []]);
    assert.deepEqual([await of("b 0"), await of("b 0"), await of(), await of("b 0")], [["rows"], [], ["rows"], []]);
  });
  test("recalls that follow each other list the files once; what GSV writes is found at once, what others change after two seconds", async () => {
    const { broken, clock, files, search } = world();
    const recall = (filesState = "a 0", rowsState = "a 0") => search({ ...REMEMBERED, filesState, rowsState });
    const looked = ["MEMORY.md", "memory/", "rows", "sessions/"];
    files.set("MEMORY.md", { text: "a zebra" });
    assert.deepEqual((await recall()).asked, looked);
    const again = await recall();
    assert.deepEqual([again.asked, again.names], [[], ["MEMORY.md"]]);
    assert.deepEqual((await search(REMEMBERED)).asked, looked, "who does not say what was written has everything listed");

    files.set("memory/2026-01-01.md", { text: "another zebra" });
    const written = await recall("a 1");
    assert.deepEqual([written.asked.includes("memory/"), written.names], [true, ["MEMORY.md", "memory/2026-01-01.md"]]);
    assert.ok((await recall("a 1", "a 1")).asked.includes("rows"));
    assert.deepEqual((await recall("a 1", "a 1")).asked, []);

    files.delete("MEMORY.md");
    clock.ms += 1_999;
    assert.equal((await recall("a 1", "a 1")).names.length, 2);
    clock.ms += 1;
    assert.deepEqual((await recall("a 1", "a 1")).names, ["memory/2026-01-01.md"]);
    clock.ms -= 1;
    assert.notDeepEqual((await recall("a 1", "a 1")).asked, [], "the clock was set back");

    files.set("MEMORY.md", { text: "a zebra" });
    broken.now = true;
    assert.equal((await recall("a 2", "a 1")).names.length, 1);
    broken.now = false;
    assert.equal((await recall("a 2", "a 1")).names.length, 2, "a file that could not be read is read by the next recall");
  });
  test("searches that wait together read the rows, unless all of them know the same state of them", async () => {
    const { asked, held, search } = world();
    const of = (rowsState?: string) => search({ memoryOf, sources: ["memory"], ...(rowsState === undefined ? {} : { rowsState }) });
    for (const [waiting, reads] of [
      [["a 1", "a 0"], 1],
      [["a 0", "a 1"], 1],
      [[undefined, "a 0"], 1],
      [["a 0", undefined], 1],
      [["a 0", "a 0"], 0],
    ] as const) {
      await of("a 0");
      let release = (): void => undefined;
      held.until = new Promise((resolve) => {
        release = resolve;
      });
      const running = search({});
      const all = waiting.map((state) => of(state));
      await new Promise(setImmediate);
      asked.length = 0;
      release();
      await Promise.all([running, ...all]);
      assert.equal(asked.filter((what) => what === "rows").length, reads, String(waiting));
    }
  });
  test("[TA4] a hit has the label of its file as the listing has it, also when only the label has changed", async () => {
    const { files, search } = world();
    files.set("MEMORY.md", { text: "a zebra", taint: "world a%20page" });
    assert.deepEqual((await search(REMEMBERED)).taints, ["world a%20page"]);
    files.set("MEMORY.md", { text: "a zebra" });
    assert.deepEqual((await search(REMEMBERED)).taints, [undefined]);
    files.set("MEMORY.md", { text: "a zebra", taint: "peer Bo" });
    assert.deepEqual((await search(REMEMBERED)).taints, ["peer Bo"]);
  });
  test("[TA4] a file that is written between the listing and its reading is found with the label of what was read", async () => {
    const { files, late, search } = world();
    files.set("MEMORY.md", { text: "an old zebra" });
    late.set("MEMORY.md", { text: "a new zebra", taint: "world a%20page" });
    assert.deepEqual((await search(REMEMBERED)).taints, ["world a%20page"]);
  });
  test("[TA4] the text of an earlier version has the label of that version until the new one is read", async () => {
    const { broken, files, search } = world();
    files.set("MEMORY.md", { text: "an evil zebra", taint: "world a%20page" });
    await search(REMEMBERED);
    files.set("MEMORY.md", { text: "nothing" });
    broken.now = true;
    assert.deepEqual((await search(REMEMBERED)).taints, ["world a%20page"]);
    broken.now = false;
    assert.deepEqual((await search(REMEMBERED)).taints, []);
  });
  test("[SE5] nothing of a file that is gone stays in the index, down to the words of its tables", async () => {
    const { files, search, words } = world();
    for (let count = 0; count < 40; count++) files.set(`notes${count}.md`, { text: `a zebra and quokka${count}x` });
    await search({});
    assert.match(words(), /quokka/);
    for (let count = 0; count < 20; count++) files.set(`notes${count}.md`, { text: "another animal" });
    for (let count = 20; count < 40; count++) files.delete(`notes${count}.md`);
    await search({});
    assert.doesNotMatch(words(), /quokka|zebra/);
  });
});
