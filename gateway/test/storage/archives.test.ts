import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { Message } from "../../src/ports/messages.ts";
import type { ArchiveInput } from "../../src/ports/archives.ts";
import { createArchives } from "../../src/storage/archives.ts";
import { deleteMedia, putMedia } from "../../src/storage/media-objects.ts";
import { createResultFiles } from "../../src/storage/results.ts";
import { newAgent, reason, textAt, value, watched } from "../support/workspace.ts";

const archives = createArchives(env.STORAGE);
const messages = (n: number): Message[] =>
  Array.from({ length: n }, (_, i) => ({
    role: "user",
    content: `message ${i} – zwölf 🌍 ${"x".repeat(i % 300)}`,
    timestamp: 1_708_300_000_000 + i,
  }));
const input = (agentId: string, more: Partial<ArchiveInput> = {}): ArchiveInput => ({
  agentId,
  sessionKey: `agent:${agentId}:main`,
  sessionId: "s-1",
  archivedAt: 1_708_300_000_000,
  messages: messages(3),
  tokens: { input: 10, output: 20, total: 30 },
  ...more,
});
const keysOf = async (agent: string): Promise<string[]> =>
  (await env.STORAGE.list({ prefix: `agents/${agent}/sessions/` })).objects.map(({ key }) => key.slice(`agents/${agent}/sessions/`.length));

describe("[P17] archives", () => {
  it("[P5.1] a reset's archive: key, JSONL, gzip and metadata of the layout", async () => {
    const agent = newAgent();
    const receipt = value(await archives.put(input(agent)));
    expect(receipt).toMatchObject({ key: `agents/${agent}/sessions/s-1.jsonl.gz`, count: 3 });
    const object = await env.STORAGE.get(receipt.key);
    expect(object?.customMetadata).toEqual({
      sessionKey: `agent:${agent}:main`,
      sessionId: "s-1",
      agentId: agent,
      messageCount: "3",
      archivedAt: "1708300000000",
      inputTokens: "10",
      outputTokens: "20",
      totalTokens: "30",
      sha256: receipt.sha256,
    });
    expect(object?.size).toBe(receipt.sizeBytes);
    const text = await new Response(object?.body.pipeThrough(new DecompressionStream("gzip"))).text();
    expect(
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(messages(3));
    expect(value(await archives.read(receipt.key))).toEqual(messages(3));
  });
  it("[P5.1] a compaction's archive is a part", async () => {
    const agent = newAgent();
    const receipt = value(await archives.put(input(agent, { part: 1_708_300_000_123 })));
    expect(receipt.key).toBe(`agents/${agent}/sessions/s-1-part1708300000123.jsonl.gz`);
    expect((await env.STORAGE.head(receipt.key))?.customMetadata).toMatchObject({ partNumber: "1708300000123", messageCount: "3" });
    expect((await env.STORAGE.head(receipt.key))?.customMetadata).not.toHaveProperty("inputTokens");
  });
  it("storing the same archive again puts it once", async () => {
    const agent = newAgent();
    const { bucket, taken } = watched();
    const first = value(await createArchives(bucket).put(input(agent)));
    taken();
    expect(value(await createArchives(bucket).put(input(agent, { archivedAt: 1_708_300_999_999 })))).toEqual(first);
    expect(taken()).not.toContain("put");
    expect(await keysOf(agent)).toEqual(["s-1.jsonl.gz"]);
  });
  it("another transcript under the same name does not overwrite it", async () => {
    const agent = newAgent();
    const first = value(await archives.put(input(agent)));
    const second = value(await archives.put(input(agent, { messages: messages(5) })));
    expect(second.key).not.toBe(first.key);
    expect(value(await archives.read(first.key)).length).toBe(3);
    expect(value(await archives.read(second.key)).length).toBe(5);
  });
  it("an archive counts only after it was read back unchanged", async () => {
    const agent = newAgent();
    const { bucket, interfere } = watched();
    interfere(async (operation, key) => {
      if (operation === "put") await env.STORAGE.put(key, "something else");
    }, "after");
    expect(reason(await createArchives(bucket).put(input(agent)))).toBe("session.archive_failed");
    interfere(async (operation, key) => {
      if (operation === "put") await env.STORAGE.delete(key);
    }, "after");
    expect(reason(await createArchives(bucket).put(input(newAgent())))).toBe("session.archive_failed");
  });
  it("[K25] a crash before or after the put leaves one archive", async () => {
    for (const when of ["before", "after"] as const) {
      const agent = newAgent();
      const { bucket, interfere } = watched();
      interfere((operation) => {
        if (operation === "put") throw new Error("killed");
      }, when);
      expect(reason(await createArchives(bucket).put(input(agent)))).toBe("storage.failed");
      interfere(undefined);
      value(await createArchives(bucket).put(input(agent)));
      expect(await keysOf(agent)).toEqual(["s-1.jsonl.gz"]);
    }
  });
  it("thousands of messages, and none", async () => {
    const agent = newAgent();
    const many = value(await archives.put(input(agent, { messages: messages(5000) })));
    expect(value(await archives.read(many.key))).toEqual(messages(5000));
    const none = value(await archives.put(input(newAgent(), { messages: [] })));
    expect([none.count, value(await archives.read(none.key))]).toEqual([0, []]);
  });
  it("other objects are not archives", async () => {
    await env.STORAGE.put("agents/x/sessions/bad.jsonl.gz", "no gzip");
    expect(reason(await archives.read("agents/x/sessions/bad.jsonl.gz"))).toBe("storage.failed");
    expect(reason(await archives.read("agents/x/sessions/none.jsonl.gz"))).toBe("path.not_found");
  });
});

describe("results and media", () => {
  it("[G4] a long result is stored, and storing it again changes nothing", async () => {
    const agent = newAgent();
    const files = createResultFiles(env.STORAGE);
    const text = "line\n".repeat(500_000);
    for (let i = 0; i < 2; i++) expect(reason(await files.put(agent, "results/s-r1-0-0.txt", text))).toBe("ok");
    expect((await textAt(`agents/${agent}/results/s-r1-0-0.txt`))?.length).toBe(text.length);
    expect(reason(await files.put(agent, "../x", text))).toBe("path.invalid");
  });
  it("[P5.1] media: key, content type and metadata of the layout; all media of a session are deleted together", async () => {
    const sessionKey = `agent:${newAgent()}:whatsapp:dm:a%2Fb`;
    const uuid = crypto.randomUUID();
    const put = (id: string) =>
      putMedia(env.STORAGE, {
        sessionKey,
        uuid: id,
        mimeType: "image/png",
        bytes: new Uint8Array([1, 2]),
        filename: "a.png",
        uploadedAt: 5,
      });
    expect(value(await put(uuid)).key).toBe(`media/${sessionKey}/${uuid}.png`);
    const object = await env.STORAGE.head(`media/${sessionKey}/${uuid}.png`);
    expect([object?.httpMetadata?.contentType, object?.customMetadata]).toEqual([
      "image/png",
      { originalFilename: "a.png", uploadedAt: "5", sessionKey },
    ]);
    await put(crypto.randomUUID());
    expect(value(await deleteMedia(env.STORAGE, sessionKey))).toBe(2);
    expect(value(await deleteMedia(env.STORAGE, sessionKey))).toBe(0);
  });
  it("[F76] [P5.1] media: all of a session are deleted, however many pages a listing has, and none of another session", async () => {
    const sessionKey = `agent:${newAgent()}:main`;
    const put = (key: string, uuid: string) =>
      putMedia(env.STORAGE, { sessionKey: key, uuid, mimeType: "image/png", bytes: new Uint8Array([1]), uploadedAt: 5 });
    const other = `${sessionKey}x`;
    await put(other, crypto.randomUUID());
    const uuids = Array.from({ length: 1_005 }, () => crypto.randomUUID());
    for (let at = 0; at < uuids.length; at += 50) await Promise.all(uuids.slice(at, at + 50).map((uuid) => put(sessionKey, uuid)));
    expect(value(await deleteMedia(env.STORAGE, sessionKey))).toBe(uuids.length);
    expect((await env.STORAGE.list({ prefix: `media/${sessionKey}/` })).objects).toEqual([]);
    expect((await env.STORAGE.list({ prefix: `media/${other}/` })).objects).toHaveLength(1);
  });
});
