/** Reading transcripts: pages, and every kind of damage. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Message } from "../../src/ports/messages.ts";
import { type ArchivePage, createArchiveReader, type Damage } from "../../src/storage/archive-reader.ts";
import { createArchives } from "../../src/storage/archives.ts";
import { gunzipLines } from "../../src/storage/gunzip-lines.ts";
import { newAgent, reason, value, watched } from "../support/workspace.ts";

const reader = createArchiveReader(env.STORAGE);
const archives = createArchives(env.STORAGE);
const message = (i: number, text = `message ${i} – zwölf 🌍`): Message => ({
  role: "user",
  content: text,
  timestamp: 1_708_300_000_000 + i,
});
const messages = (n: number): Message[] => Array.from({ length: n }, (_, i) => message(i));
const put = async (agentId: string, list: Message[], more: { sessionId?: string; part?: number; archivedAt?: number } = {}) =>
  value(
    await archives.put({
      agentId,
      sessionKey: `agent:${agentId}:main`,
      sessionId: "s-1",
      archivedAt: 1_708_300_000_000,
      messages: list,
      tokens: { input: 10, output: 20, total: 30 },
      ...more,
    }),
  );
const gzip = async (text: string): Promise<ArrayBuffer> =>
  new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
const lines = (list: readonly unknown[]): string => list.map((item) => `${JSON.stringify(item)}\n`).join("");
/** An object with an archive's name and any content. */
async function planted(
  agent: string,
  bytes: ArrayBuffer | Uint8Array | string,
  customMetadata: Record<string, string> = {},
): Promise<void> {
  await env.STORAGE.put(`agents/${agent}/sessions/s-1.jsonl.gz`, bytes, { customMetadata });
}
async function all(agent: string, path: string, limit?: number): Promise<{ read: unknown[]; pages: number; first: ArchivePage }> {
  const read: unknown[] = [];
  let first: ArchivePage | undefined;
  let pages = 0;
  for (let offset: number | undefined = 0; offset !== undefined; pages++) {
    const page: ArchivePage = value(
      await reader.page(agent, path, { ...(offset === 0 ? {} : { offset }), ...(limit === undefined ? {} : { limit }) }),
    );
    first ??= page;
    expect(page.offset).toBe(read.length);
    read.push(...page.messages);
    offset = page.nextOffset;
  }
  if (!first) throw new Error("no page");
  return { read, pages, first };
}
const damage = (result: { ok: boolean; error?: { reason: string; details?: unknown } }): Damage => {
  expect(result.error?.reason).toBe("archive.damaged");
  return result.error?.details as Damage;
};

describe("[P5.1] reading transcripts", () => {
  it("lists all transcripts of an agent, newest first, with their metadata", async () => {
    const agent = newAgent();
    await put(agent, messages(2), { archivedAt: 1000 });
    await put(agent, messages(5), { part: 3000, archivedAt: 3000 });
    await put(agent, messages(1), { sessionId: "s-2", archivedAt: 2000 });
    await env.STORAGE.put(`agents/${agent}/sessions/s-3.jsonl.gz`, "no metadata");
    await env.STORAGE.put(`agents/${agent}/sessions/notes.txt`, "no transcript");
    const found = value(await reader.list(agent));
    expect(found.map(({ path, kind, messageCount, tokens }) => [path, kind, messageCount, tokens?.total])).toEqual([
      ["sessions/s-3.jsonl.gz", "reset", undefined, undefined],
      ["sessions/s-1-part3000.jsonl.gz", "part", 5, undefined],
      ["sessions/s-2.jsonl.gz", "reset", 1, 30],
      ["sessions/s-1.jsonl.gz", "reset", 2, 30],
    ]);
    expect(found[1]).toMatchObject({ sessionKey: `agent:${agent}:main`, sessionId: "s-1", archivedAt: 3000 });
    expect(value(await reader.list(newAgent()))).toEqual([]);
  });
  it("reads by path, key and session id, whole or in pages by offset and limit", async () => {
    const agent = newAgent();
    const { key } = await put(agent, messages(10));
    for (const path of ["s-1", "sessions/s-1.jsonl.gz", key]) expect((await all(agent, path)).read).toEqual(messages(10));
    expect(value(await reader.page(agent, "s-1", { offset: 4, limit: 3 }))).toMatchObject({
      messages: messages(10).slice(4, 7),
      offset: 4,
      nextOffset: 7,
      total: 10,
    });
    expect(value(await reader.page(agent, "s-1", { offset: 7 })).nextOffset).toBeUndefined();
    expect(value(await reader.page(agent, "s-1", { offset: 99 }))).toMatchObject({ messages: [], total: 10 });
    expect((await all(agent, "s-1", 3)).pages).toBe(4);
  });
  it("[TR1][P19] a page fits an answer for any messages", async () => {
    const agent = newAgent();
    const list = [
      ...Array.from({ length: 40 }, (_, i) => message(i, "\u0001".repeat(30_000))),
      message(40, "x".repeat(3_000_000)),
      message(41),
    ];
    await put(agent, list);
    const { read, pages } = await all(agent, "s-1");
    expect(pages).toBeGreaterThan(10);
    expect(read.length).toBe(42);
    expect(read[0]).toEqual(list[0]);
    expect(JSON.stringify(read[40])).toMatch(/characters are left out here/);
    expect(JSON.stringify(read[40]).length).toBeLessThan(LIMITS.frameBytes);
    expect(read[41]).toEqual(list[41]);
  });
  it("[P19] a page of 100,000 messages, from their end", async () => {
    const agent = newAgent();
    await put(agent, messages(100_000));
    const page = value(await reader.page(agent, "s-1", { offset: 99_990 }));
    expect([page.messages.length, page.total, page.nextOffset]).toEqual([10, 100_000, undefined]);
    const first = value(await reader.page(agent, "s-1", {}));
    expect(first.messages.length).toBeLessThan(10_000);
  });
  it("missing files and other files are refused", async () => {
    const agent = newAgent();
    await put(agent, messages(1), { part: 5 });
    const parts = await reader.page(agent, "s-1", {});
    expect([reason(parts), parts.ok ? "" : parts.error.message]).toEqual([
      "path.not_found",
      expect.stringContaining("only transcripts of parts"),
    ]);
    expect(reason(await reader.page(agent, "s-9", {}))).toBe("path.not_found");
    for (const path of ["SOUL.md/x", "sessions/x.txt", "../x", "sessions/../../b/sessions/s.jsonl.gz", "", "/etc"])
      expect(reason(await reader.page(agent, path, {})), path).toBe("path.invalid");
    expect(reason(await reader.page(agent, `agents/${newAgent()}/sessions/s-1-part5.jsonl.gz`, {}))).toBe("path.invalid");
  });
});

describe("[TR2][P17] damaged transcripts report their readable part", () => {
  it("no gzip, empty, text", async () => {
    for (const bytes of ["", "not gzip", new Uint8Array([0x1f, 0x8b, 8, 0])]) {
      const agent = newAgent();
      await planted(agent, bytes);
      expect(damage(await reader.page(agent, "s-1", {})).readable).toBe(0);
    }
  });
  it("truncated: the beginning is read with a limit", async () => {
    const agent = newAgent();
    // Random text, so that the remaining part contains some complete lines.
    const list = Array.from({ length: 200 }, (_, i) => message(i, crypto.randomUUID().repeat(8)));
    const bytes = await gzip(lines(list));
    await planted(agent, bytes.slice(0, bytes.byteLength / 2), { messageCount: "200" });
    const error = await reader.page(agent, "s-1", {});
    const { readable, total } = damage(error);
    expect([readable > 10 && readable < 200, total]).toEqual([true, 200]);
    expect(error.ok ? "" : error.error.message).toContain(`first ${readable} of 200 messages`);
    expect(value(await reader.page(agent, "s-1", { limit: readable })).messages).toEqual(list.slice(0, readable));
    expect(damage(await reader.page(agent, "s-1", { limit: readable + 1 })).readable).toBe(readable);
    expect(damage(await reader.page(agent, "s-1", { offset: 150 })).readable).toBe(readable);
  });
  it("the lines before and after a bad line can be read", async () => {
    for (const bad of ["{broken", "[1]", "null", '{"no":"role"}']) {
      const agent = newAgent();
      await planted(agent, await gzip(`${lines(messages(3))}${bad}\n\n${lines(messages(2))}`), { messageCount: "6" });
      expect(damage(await reader.page(agent, "s-1", {}))).toEqual({ readable: 3, resumeAt: 4, total: 6 });
      expect(value(await reader.page(agent, "s-1", { limit: 3 })).messages).toEqual(messages(3));
      expect(value(await reader.page(agent, "s-1", { offset: 4 }))).toMatchObject({ messages: messages(2), total: 6 });
    }
  });
  it("a wrong count, a wrong checksum", async () => {
    const agent = newAgent();
    await planted(agent, await gzip(lines(messages(3))), { messageCount: "4" });
    expect(damage(await reader.page(agent, "s-1", {}))).toEqual({ readable: 3, total: 4 });
    await planted(agent, await gzip(lines(messages(3))), { messageCount: "3", sha256: "0".repeat(64) });
    const wrong = await reader.page(agent, "s-1", {});
    expect(wrong.ok ? "" : wrong.error.message).toContain("checksum differs");
    expect(damage(wrong).readable).toBe(3);
    expect(value(await reader.page(agent, "s-1", { limit: 3 })).messages).toEqual(messages(3));
  });
  it("a file without metadata, stored by a person, can be read", async () => {
    const agent = newAgent();
    await planted(agent, await gzip(lines(messages(3)).trimEnd()));
    expect((await all(agent, "s-1")).first).toMatchObject({ messages: messages(3), total: 3 });
  });
  it("[P19] a gzip bomb and an endless line are stopped in time", async () => {
    const agent = newAgent();
    const zeros = new Uint8Array(1 << 20);
    let pulled = 0;
    const bomb = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(zeros);
        if (++pulled === 600) controller.close();
      },
    });
    const packed = await new Response(bomb.pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
    expect(packed.byteLength).toBeLessThan(1 << 20);
    await planted(agent, packed);
    expect(damage(await reader.page(agent, "s-1", {})).readable).toBe(0);
    let taken = 0;
    const slow = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(packed, taken, 4096));
          taken += 4096;
        },
      },
      { highWaterMark: 0 },
    );
    const stopped = await gunzipLines(slow, { maxLineChars: 1_000_000 }, () => "go on");
    expect([stopped.end, taken]).toEqual(["line too long", expect.any(Number)]);
    // Data that unpacks to a thousand times its size must not be unpacked ahead of the reader.
    expect(taken).toBeLessThan(packed.byteLength / 4);
    const many = await gzip("x\n".repeat(1_000_000));
    let seen = 0;
    const end = await gunzipLines(new Response(many).body ?? new ReadableStream(), { maxBytes: 100_000 }, () => {
      seen++;
      return "go on";
    });
    expect([end.end, seen < 1_000_000]).toEqual(["too large", true]);
  });
  it("[D] a failing bucket is reported without its error text", async () => {
    const agent = newAgent();
    await put(agent, messages(3));
    const { bucket, interfere } = watched();
    interfere(() => {
      throw new Error("10001 secret-detail");
    });
    const broken = createArchiveReader(bucket);
    for (const result of [await broken.list(agent), await broken.page(agent, "s-1", {})]) {
      expect(reason(result)).toBe("storage.failed");
      expect(JSON.stringify(result)).not.toContain("secret-detail");
    }
  });
});
