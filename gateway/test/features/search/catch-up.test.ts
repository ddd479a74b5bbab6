/** The search index catches up with files, sessions and transcripts, with failures and interruptions at any point. */
import { env } from "cloudflare:workers";
import { withoutMarks } from "../../../src/features/search/text.ts";
import { describe, expect, it } from "vitest";
import { ROWS_PER_PAGE } from "../../../src/features/search/pull-sessions.ts";
import { Index, said } from "./support.ts";
import { evict } from "../../support/evict.ts";

describe("[SE5] files", () => {
  it("are found with their line, also after changes, but not after deletion", async () => {
    const index = new Index();
    await index.file("MEMORY.md", "# Memory\n\nThe boat is blue.\n");
    await index.file("memory/2026-01-31.md", "Fed the boat's cat.");
    await index.file("skills/sail/SKILL.md", "How to sail a boat.");
    expect(await index.places("boat")).toEqual([
      "workspace MEMORY.md:3",
      "workspace memory/2026-01-31.md:1",
      "workspace skills/sail/SKILL.md:1",
    ]);
    await index.file("MEMORY.md", "The car is red.\n");
    await env.STORAGE.delete(`agents/${index.agent}/skills/sail/SKILL.md`);
    expect(await index.places("boat")).toEqual(["workspace memory/2026-01-31.md:1"]);
    expect(await index.places("car")).toEqual(["workspace MEMORY.md:1"]);
    await index.inside((_service, _store, sql) => {
      expect(sql.exec("SELECT count(*) AS n FROM sources WHERE kind = 'workspace'").one()["n"]).toBe(2);
    });
  });
  it("[TA13] that are binary, too large, versions, tool results or in quarantine are not indexed", async () => {
    const index = new Index();
    await index.file("photo.bin", new Uint8Array([0, 1, 2, 255]));
    await index.file("huge.txt", `needle ${"x".repeat(1_100_000)}`);
    await env.STORAGE.put(`versions/${index.agent}/MEMORY.md/@1-a`, "needle");
    await index.file("results/call.txt", "needle");
    await index.file("memory/quarantine/K7Q2ABCD.json", "needle");
    await index.file("plain.txt", "needle");
    expect(await index.places("needle")).toEqual(["workspace plain.txt:1"]);
    index.watched.taken();
    await index.find("needle");
    // Without changes nothing is read again, not even damaged sources.
    expect(index.watched.taken().filter((operation) => operation !== "list")).toEqual([]);
  });
  it("[SE2] [F67] memory files are found by line, with the lines beside it, also by the words of their date", async () => {
    const index = new Index();
    await index.file("memory/2026-03-09.md", "# Notes\n\nWe talked about the boat.\nShe repaired it herself.\nThen it rained.\n");
    await index.file("notes.md", "A boat.\nAnd a ship.\n");
    const memory = { memoryOf: { keys: [], prefix: `agent:${index.agent}:cli:dm:` } };
    const { hits } = await index.find("Who is repairing boats?", memory);
    expect(hits).toHaveLength(1);
    const [hit] = hits;
    expect([...(hit?.before ?? []), withoutMarks(hit?.marked ?? ""), ...(hit?.after ?? [])].join("\n")).toContain(
      "We talked about the boat.\nShe repaired it herself.\nThen it rained.",
    );
    expect(await index.places("march", memory)).toEqual(["workspace memory/2026-03-09.md:1", "workspace memory/2026-03-09.md:5"]);
    expect((await index.find("ship")).hits).toMatchObject([{ name: "notes.md", position: 2, before: [], after: [] }]);
    expect(await index.places("+repairing")).toEqual([]);
    expect(await index.places("+repaired -boat")).toEqual(["workspace memory/2026-03-09.md:4"]);
    expect(await index.places('"the boat"')).toEqual(["workspace memory/2026-03-09.md:3"]);
  });
  it("[SE2] without accents, in scripts without spaces, by the beginning of a word", async () => {
    const index = new Index();
    await index.file("a.md", "Le café est fermé. 明日は東京へ行きます。 iPhone版がある。 나는 서울에서 산다");
    for (const query of ["cafe", "CAFÉ", "東京", "行きます", "iphone", "版", "서울", "ferm*", '"est fermé"', "café -thé"])
      expect([query, await index.places(query)]).toEqual([query, ["workspace a.md:1"]]);
    for (const query of ["京東", "caf", "東京 -明日", "thé"]) expect([query, await index.places(query)]).toEqual([query, []]);
    expect(await index.texts("東京")).toEqual(["Le café est fermé. 明日は東京へ行きます。 iPhone版がある。 나는 서울에서 산다"]);
  });
});

describe("[SE6] conversations", () => {
  it("are read in pages from the last position, and asked only when something may be new", async () => {
    const index = new Index();
    const session = index.session("main");
    for (let i = 0; i < ROWS_PER_PAGE + 5; i++) session.say(`apple number${i}`);
    index.session("unused");
    index.sessions.delete(`agent:${index.agent}:unused`);
    expect(await index.places(`number${ROWS_PER_PAGE + 4}`)).toEqual([`sessions main:${ROWS_PER_PAGE + 5}`]);
    expect(session.asked).toBe(2);
    session.say("pear");
    expect(await index.places("pear")).toHaveLength(1);
    expect(session.asked).toBe(3);
    session.quietSince = Date.now() - 1;
    await index.find("pear");
    await index.find("pear");
    expect(session.asked).toBe(4);
  });
  it("are asked each time while they are busy", async () => {
    const index = new Index();
    const session = index.session("main").say("one");
    Object.assign(session, { busy: true, quietSince: 1 });
    await index.find("one");
    session.rows.push({ seq: session.nextSeq++, role: "assistant", at: 9, text: "two" });
    expect(await index.places("two")).toEqual(["sessions main:2"]);
  });
  it("are found once after a reset or compaction: in the session until the transcript is indexed", async () => {
    const index = new Index();
    const session = index.session("main").say("the first apple").say("the second apple");
    expect(await index.places("apple")).toEqual(["sessions main:1", "sessions main:2"]);
    await index.archive("main", "s1", [said("the first apple")], 5);
    session.contextFrom = 2;
    expect(await index.places("apple")).toEqual(["archives sessions/s1-part5.jsonl.gz:0", "sessions main:2"]);
    await index.archive("main", "s1", [said("the second apple")]);
    Object.assign(session, { contextFrom: 3, sessionId: "s2" });
    session.say("a pear");
    expect(await index.places("apple")).toEqual(["archives sessions/s1-part5.jsonl.gz:0", "archives sessions/s1.jsonl.gz:0"]);
    expect(await index.places("pear")).toEqual(["sessions main:3"]);
  });
  it("keep archived messages in the index while the transcript can't be read", async () => {
    const index = new Index();
    const session = index.session("main").say("the apple");
    await index.find("apple");
    await index.archive("main", "s1", [said("the apple")]);
    session.contextFrom = 2;
    index.watched.interfere((operation) => {
      if (operation === "get") throw new Error("away");
    });
    const { hits, notes } = await index.find("apple");
    expect(hits.map(({ kind }) => kind)).toEqual(["sessions"]);
    expect(notes.join()).toContain("Some transcripts could not be read");
    index.watched.interfere(undefined);
    expect(await index.places("apple")).toEqual(["archives sessions/s1.jsonl.gz:0"]);
  });
  it("are read again after a reset under the same key", async () => {
    const index = new Index();
    index.session("main").say("old apple").say("old pear");
    await index.find("apple");
    index.sessions.clear();
    index.session("main").say("new apple");
    expect(await index.texts("apple")).toEqual(["new apple"]);
  });
  it("are read again after a reset, also when the removal of many old messages was cut off", async () => {
    // The time of a pass is over after ever more steps.
    for (const tick of [5_000, 2_000, 1_000, 500]) {
      const index = new Index();
      const old = index.session("main");
      for (let i = 0; i < 1_200; i++) old.say(`old apple ${i}`);
      expect(await index.texts('"apple 1199"')).toHaveLength(1);
      index.sessions.clear();
      index.session("main").say("new apple");
      index.tick = tick;
      await index.find("apple");
      index.tick = 0;
      expect([tick, await index.texts("apple")]).toEqual([tick, ["new apple"]]);
    }
  });
});

describe("[SE7] transcripts", () => {
  it("are found by message, with role, time and conversation", async () => {
    const index = new Index();
    await index.archive("cli:dm:x", "s9", [said("hello"), said("the output has a needle", 42, "toolResult")]);
    const { hits } = await index.find("needle");
    expect(hits).toMatchObject([
      {
        kind: "archives",
        name: "sessions/s9.jsonl.gz",
        position: 1,
        role: "toolResult",
        at: 42,
        sessionId: "s9",
        sessionKey: `agent:${index.agent}:cli:dm:x`,
      },
    ]);
    await env.STORAGE.delete(`agents/${index.agent}/sessions/s9.jsonl.gz`);
    expect(await index.places("needle")).toEqual([]);
  });
  it("give a note when they are damaged, and their readable part is found", async () => {
    const index = new Index();
    const key = await index.archive("main", "whole", [said("a good needle")]);
    const bytes = await (await env.STORAGE.get(key))?.arrayBuffer();
    await index.file("sessions/cut.jsonl.gz", new Uint8Array(bytes ?? new ArrayBuffer(0)).slice(0, -6));
    await index.file("sessions/rubbish.jsonl.gz", "this is no gzip");
    const gzip = new Response('{"role":"user","content":"needle here"}\nnot json\n{"no":"message"}\n').body?.pipeThrough(
      new CompressionStream("gzip"),
    );
    await index.file("sessions/lines.jsonl.gz", new Uint8Array(await new Response(gzip).arrayBuffer()));
    await index.file("sessions/notes.txt", "needle");
    const { hits, notes } = await index.find("needle");
    expect(hits.map(({ name }) => name)).toEqual(expect.arrayContaining(["sessions/whole.jsonl.gz", "sessions/lines.jsonl.gz"]));
    expect(hits.map(({ name }) => name)).not.toContain("sessions/notes.txt");
    expect(notes.join("\n")).toMatch(/cut\.jsonl\.gz` is damaged/);
    expect(notes.join("\n")).toMatch(/rubbish\.jsonl\.gz` is damaged; its first 0 messages/);
    expect(notes.join("\n")).toMatch(/lines\.jsonl\.gz` has 2 damaged lines/);
    index.watched.taken();
    expect((await index.find("needle")).notes).toEqual(notes);
    expect(index.watched.taken().filter((operation) => operation === "get")).toEqual([]);
    // The transcript is repaired.
    await index.archive("main", "rubbish2", [said("x")]);
    await env.STORAGE.delete(`agents/${index.agent}/sessions/rubbish.jsonl.gz`);
    expect((await index.find("needle")).notes.join("\n")).not.toContain("rubbish");
  });
});

describe("[SE8] bounds", () => {
  it("a search that runs out of time adds a note, and the alarm continues until the index is complete", async () => {
    const index = new Index();
    for (let i = 0; i < 30; i++) await index.file(`f${i}.md`, `needle ${i}`);
    const session = index.session("main");
    for (let i = 0; i < ROWS_PER_PAGE * 3; i++) session.say(`needle ${i}`);
    for (let i = 0; i < 3; i++) await index.archive("main", `s${i}`, [said(`needle ${i}`)]);
    index.tick = 2_000;
    const { hits, notes } = await index.find("needle", { limit: 100 });
    expect(hits.length).toBeGreaterThan(0);
    expect(hits.length).toBeLessThan(100);
    expect(notes.join()).toMatch(/\d+ files are not indexed yet; search again/);
    expect(index.wakes).toEqual([1_000]);
    let alarms = 0;
    for (; index.wakes.length > 0 && alarms < 200; alarms++) {
      index.wakes.length = 0;
      await index.inside((service) => service.alarm());
    }
    expect(alarms).toBeGreaterThan(1);
    index.tick = 0;
    const done = await index.find("needle", { limit: 1_000 });
    expect(done.notes).toEqual([]);
    expect(done.hits).toHaveLength(30 + ROWS_PER_PAGE * 3 + 3);
    expect(index.wakes).toEqual([]);
  });
  it("does nothing without a search", async () => {
    const index = new Index();
    await index.inside(async (service, _store, sql) => {
      await service.alarm();
      expect(sql.exec("SELECT count(*) AS n FROM sqlite_master WHERE name = 'sources'").one()["n"]).toBe(0);
    });
    expect(index.watched.taken()).toEqual([]);
  });
});

describe("[SE9] interruptions", () => {
  it("[P12] an object that is evicted between any two steps continues, and nothing is found twice", async () => {
    const index = new Index();
    for (let i = 0; i < 5; i++) await index.file(`f${i}.md`, `needle file${i}`);
    const session = index.session("main");
    for (let i = 0; i < ROWS_PER_PAGE + 1; i++) session.say(`needle row${i}`);
    // Two batches of lines.
    await index.archive(
      "main",
      "s0",
      Array.from({ length: 9 }, (_, i) => said(`needle ${i} ${"word ".repeat(12_000)}`)),
    );
    index.tick = 3_000;
    for (let life = 0; life < 60; life++) {
      await index.find("needle");
      await evict(index.stub);
    }
    index.tick = 0;
    const { hits, notes } = await index.find("row0 OR file3 OR (needle 8)", { limit: 1_000 });
    expect(notes).toEqual([]);
    expect(hits.map(({ kind }) => kind).sort()).toEqual(["archives", "sessions", "workspace"].sort());
    const all = await index.find("needle", { limit: 1_000 });
    expect(all.hits).toHaveLength(5 + ROWS_PER_PAGE + 1 + 9);
    expect(new Set(all.hits.map(({ kind, name, position }) => `${kind} ${name} ${position}`)).size).toBe(all.hits.length);
  });
  it("another version of the tables rebuilds the index", async () => {
    const index = new Index();
    await index.file("a.md", "needle");
    await index.find("needle");
    await index.inside((_service, _store, sql) => void sql.exec("UPDATE meta SET value = '0' WHERE name = 'schema'"));
    expect(await index.places("needle")).toEqual(["workspace a.md:1"]);
  });
  it("concurrent searches share the work and see everything written before them", async () => {
    const index = new Index();
    await index.file("a.md", "needle one");
    const seen = await index.inside(async (service) => {
      const ask = () =>
        service
          .query({ agentId: index.agent, match: { words: ['"needle"'] }, sources: ["workspace"], limit: 20, offset: 0 })
          .then(({ hits }) => hits.length);
      const first = ask();
      await index.file("b.md", "needle two");
      return Promise.all([first, ask(), ask(), ask()]);
    });
    expect(seen.slice(1)).toEqual([2, 2, 2]);
    // The first search's listings, and one more set for all others together.
    expect(index.watched.taken().filter((operation) => operation === "list").length).toBeLessThanOrEqual(4);
  });
});

describe("[SE10] failures", () => {
  it.each(["list", "get"] as const)(
    "a bucket failure at any %s is a note, never a failed search, and the next search is complete",
    async (failing) => {
      for (let at = 0; at < 4; at++) {
        const index = new Index();
        await index.file("a.md", "needle");
        await index.file("memory/b.md", "needle");
        await index.archive("main", "s1", [said("needle")]);
        index.session("main").say("needle");
        let seen = 0;
        index.watched.interfere((operation) => {
          if (operation === failing && seen++ === at) throw new Error("the bucket is away");
        });
        const { hits, notes } = await index.find("needle");
        if (seen > at) {
          expect(notes.join()).toMatch(/could not be (listed|read) now/);
          expect(hits.length).toBeGreaterThan(0);
          expect(hits.length).toBeLessThan(4);
        }
        index.watched.interfere(undefined);
        expect(await index.places("needle")).toHaveLength(4);
        expect((await index.find("needle")).notes).toEqual([]);
      }
    },
  );
  it("a bucket failure in the middle of a transcript does not mark it as damaged", async () => {
    const index = new Index();
    await index.archive("main", "s1", [said("needle")]);
    const { bucket } = index.watched;
    const get = bucket.get.bind(bucket);
    Object.assign(bucket, {
      get: async (key: string) => {
        const object = await get(key);
        if (object === null) return null;
        await object.arrayBuffer();
        const body = new ReadableStream({ pull: (controller) => controller.error(new Error("broke off")) });
        return { size: object.size, etag: object.etag, uploaded: object.uploaded, customMetadata: object.customMetadata ?? {}, body };
      },
    });
    expect((await index.find("needle")).notes.join()).toContain("Some transcripts could not be read");
    Object.assign(bucket, { get });
    expect(await index.places("needle")).toHaveLength(1);
  });
  it("a session that never answers does not block a search", async () => {
    const index = new Index();
    await index.file("a.md", "needle");
    index.session("main").say("needle");
    index.sessionsHang = true;
    const { hits, notes } = await index.find("needle");
    expect([hits.length, notes]).toEqual([1, [expect.stringContaining("still catching up")]]);
    index.sessionsHang = false;
  });
  it("a gateway failure is a note, and indexed texts are found", async () => {
    const index = new Index();
    index.session("main").say("needle");
    await index.file("a.md", "needle");
    index.sessionsFail = true;
    const { hits, notes } = await index.find("needle");
    expect([hits.length, notes.join()]).toEqual([1, expect.stringContaining("conversations could not be listed")]);
    index.sessionsFail = false;
    expect(await index.places("needle")).toHaveLength(2);
  });
});

describe("[SE3] ranking and pages", () => {
  it("better matches come first, then later ones; pages have no gaps or duplicates", async () => {
    const index = new Index();
    const session = index.session("main");
    for (let i = 0; i < 50; i++) session.say(`filler text ${i}`);
    session.say("the zebra in a long text about many other things that have nothing to do with it at all");
    session.say("zebra zebra");
    const first = await index.find("zebra");
    expect(first.hits.map(({ position }) => position)).toEqual([52, 51]);
    expect(first.hits[0]?.score).toBeGreaterThan(first.hits[1]?.score ?? Number.POSITIVE_INFINITY);
    const seen: number[] = [];
    for (let offset = 0; ; offset += 7) {
      const page = await index.find("filler", { limit: 7, offset });
      seen.push(...page.hits.map(({ position }) => position));
      if (!page.more) break;
    }
    expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => 50 - i));
  });
});

describe("[SE11] scopes", () => {
  it("limits the search to one session, some sources, or memory", async () => {
    const index = new Index();
    await index.file("MEMORY.md", "needle");
    await index.file("memory/2026-01-01.md", "needle");
    await index.file("notes.md", "needle");
    index.session("main").say("needle");
    index.session("wa:group:g").say("needle");
    await index.archive("main", "own", [said("needle")]);
    await index.archive("cli:dm:x", "cli", [said("needle")]);
    await index.archive("wa:group:g", "group", [said("needle")]);
    await index.archive("dm:wa%3Ame", "mine", [said("needle")]);
    await index.archive("dm:wa%3Aanna", "annas", [said("needle")]);
    await index.file("sessions/bad.jsonl.gz", "rubbish");
    const key = (name: string): string => `agent:${index.agent}:${name}`;
    expect(await index.places("needle", { sources: ["workspace"] })).toHaveLength(3);
    expect(await index.places("needle", { sessionKey: key("wa:group:g") })).toEqual([
      "archives sessions/group.jsonl.gz:0",
      "sessions wa:group:g:1",
    ]);
    expect(await index.places("needle", { memoryOf: { keys: [key("main")], prefix: key("cli:dm:") } })).toEqual([
      "archives sessions/cli.jsonl.gz:0",
      "archives sessions/own.jsonl.gz:0",
      "workspace MEMORY.md:1",
      "workspace memory/2026-01-01.md:1",
    ]);
    // [S8][X8] The owner's sessions over a channel are searched too; sessions of guests and groups are not.
    expect(
      await index.places("needle", { sources: ["archives"], memoryOf: { keys: [key("main"), key("dm:wa%3Ame")], prefix: key("cli:dm:") } }),
    ).toEqual(["archives sessions/cli.jsonl.gz:0", "archives sessions/mine.jsonl.gz:0", "archives sessions/own.jsonl.gz:0"]);
    expect((await index.find("needle", { sources: ["workspace"] })).notes).toEqual([]);
    expect((await index.find("needle", { sources: ["archives"] })).notes).toHaveLength(1);
    // Its session is unknown, so a search of a single session gets no note about it.
    expect((await index.find("needle", { sessionKey: key("wa:group:g") })).notes).toEqual([]);
  });
});
