/** Skills that do not fit one frame: sent in chunks, bounded, leased, installed once, kept byte by byte. */
import { env } from "cloudflare:workers";
import { reset, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SkillEntry } from "../../../../protocol/gen/types.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import { SkillUploads } from "../../../src/features/skills/upload-store.ts";
import { encodeBase64 } from "../../../src/storage/base64.ts";
import { sha256Of } from "../../../src/storage/skills/folder.ts";
import { client, fakeSessions, gateway, type Peer, port, seed, silent } from "../../support/gateway.ts";
import { watched } from "../../support/workspace.ts";

let peer: Peer;
beforeAll(async () => {
  await reset();
  fakeSessions();
  await seed();
  peer = await client();
  await peer.ok("config.set", { path: "agents.list", value: Array.from({ length: 40 }, (_, n) => ({ id: `u${n + 1}` })) });
});
afterAll(() => {
  vi.restoreAllMocks();
});
let serial = 0;
const newAgent = (): string => `u${++serial}`;
const newUpload = (): string => crypto.randomUUID();
const utf8 = new TextEncoder();
const manual = utf8.encode("---\nname: x\ndescription: Does things.\n---\n# Body\n");
/** Bytes that are not text, and that no compression shortens much. */
function noise(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  bytes[0] = 0;
  return bytes;
}
interface File {
  readonly path: string;
  readonly bytes: Uint8Array;
}
/** The bytes of all files one after the other, and where each is. */
async function packed(files: readonly File[]) {
  const stream = new Uint8Array(files.reduce((sum, { bytes }) => sum + bytes.length, 0));
  const uploaded: { path: string; offset: number; sizeBytes: number; sha256: string }[] = [];
  let offset = 0;
  for (const { path, bytes } of files) {
    stream.set(bytes, offset);
    uploaded.push({ path, offset, sizeBytes: bytes.length, sha256: await sha256Of(bytes) });
    offset += bytes.length;
  }
  const chunks: string[] = [];
  for (let at = 0; at < stream.length; at += LIMITS.skillChunkBytes)
    chunks.push(encodeBase64(stream.subarray(at, at + LIMITS.skillChunkBytes)));
  return { uploaded, chunks };
}
async function send(uploadId: string, chunks: readonly string[]): Promise<void> {
  for (const [index, content] of chunks.entries()) await peer.ok("skills.upload", { uploadId, index, content });
}
async function install(agentId: string, files: readonly File[], more: Record<string, unknown> = {}) {
  const uploadId = newUpload();
  const { uploaded, chunks } = await packed(files);
  await send(uploadId, chunks);
  return peer.call("skills.install", { agentId, name: "x", files: [], uploadId, uploaded, ...more });
}
const stored = (table: string): Promise<number> =>
  runInDurableObject(gateway(), (_gateway, state) => Number(state.storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one()["n"]));
const written = async (agentId: string): Promise<readonly string[]> =>
  (await env.STORAGE.list({ prefix: `agents/${agentId}/` })).objects.map(({ key }) => key);
let calls = 0;
const read = (agentId: string, path: string) =>
  composeNativeTools(watched().bucket, { log: silent }).run(
    "gsv__ReadFile",
    { path },
    {
      identity: { key: `agent:${agentId}:main`, ref: "r", agentId, isOwnersSession: true },
      callId: `r/r1/1/${calls++}`,
      now: Date.now(),
      userTimezone: "UTC",
      gateway: port(),
    },
  );

describe("[F52] [SK7] a skill of the largest size", () => {
  test("is installed whole: 256 files and 8 MiB, binary files byte by byte", async () => {
    const agentId = newAgent();
    const small = Array.from({ length: LIMITS.skillFiles - 3 }, (_, index) => ({
      path: `ref/${index}.md`,
      bytes: utf8.encode(`# ${index}\n`),
    }));
    const rest = LIMITS.skillFilesBytes - manual.length - 1000 - small.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const files = [
      { path: "SKILL.md", bytes: manual },
      { path: "fonts/A.ttf", bytes: noise(rest, 7) },
      { path: "icon.png", bytes: noise(1000) },
      ...small,
    ];
    const { uploaded, chunks } = await packed(files);
    expect([uploaded.length, chunks.length]).toEqual([256, 16]);
    const uploadId = newUpload();
    // In any order, and each more than once.
    for (const index of [...chunks.keys()].toReversed()) await peer.ok("skills.upload", { uploadId, index, content: chunks[index] });
    await peer.ok("skills.upload", { uploadId, index: 3, content: chunks[3] });
    const params = { agentId, name: "x", files: [], uploadId, uploaded };
    const { skill } = await peer.ok<{ skill: SkillEntry }>("skills.install", params);
    expect(skill).toMatchObject({ name: "x", state: "ready", scope: "agent" });
    for (const { path, bytes } of files.slice(0, 4)) {
      const object = await env.STORAGE.get(`agents/${agentId}/skills/x/${path}`);
      expect(await sha256Of(new Uint8Array((await object?.arrayBuffer()) ?? new ArrayBuffer())), path).toBe(await sha256Of(bytes));
    }
    expect((await env.STORAGE.head(`agents/${agentId}/skills/x/fonts/A.ttf`))?.httpMetadata?.contentType).toBe("application/octet-stream");
    expect((await env.STORAGE.head(`agents/${agentId}/skills/x/SKILL.md`))?.httpMetadata?.contentType).toMatch(/^text\/markdown/);
    expect((await written(agentId)).length).toBe(256);
    expect(await stored("skill_upload_chunks")).toBe(0);
    // A lost answer: the same installation of the same upload is done once.
    expect((await peer.ok<{ skill: SkillEntry }>("skills.install", params)).skill.sha256).toBe(skill.sha256);
    expect(await peer.refused("skills.install", { ...params, name: "y" })).toMatchObject({ reason: "skill.upload_lost" });
    expect(await read(agentId, "skills/x/ref/7.md")).toMatchObject({ ok: true });
    expect(await read(agentId, "skills/x/icon.png")).toMatchObject({ ok: false, error: { reason: "file.binary" } });
    expect(await read(agentId, "skills/x/fonts/A.ttf")).toMatchObject({ ok: false, error: { reason: "file.too_large" } });
  });
  test("is replaced by a smaller one, and its large files stay as versions", async () => {
    const agentId = newAgent();
    const large = noise(2_000_000, 3);
    expect(
      (
        await install(agentId, [
          { path: "SKILL.md", bytes: manual },
          { path: "data.bin", bytes: large },
        ])
      ).ok,
    ).toBe(true);
    expect(await install(agentId, [{ path: "SKILL.md", bytes: manual }])).toMatchObject({ ok: false, error: { reason: "skill.exists" } });
    expect((await install(agentId, [{ path: "SKILL.md", bytes: manual }], { replace: true })).ok).toBe(true);
    expect(await written(agentId)).toEqual([`agents/${agentId}/skills/x/SKILL.md`]);
    const [version] = (await env.STORAGE.list({ prefix: `versions/${agentId}/skills/x/data.bin/` })).objects;
    expect(version?.size).toBe(large.length);
  });
  test("a SKILL.md of 128 KiB is usable, and the model sees where its text is cut", async () => {
    const agentId = newAgent();
    const line = `${"word ".repeat(20)}\n`;
    const text = new TextDecoder().decode(manual) + line.repeat(Math.floor((LIMITS.skillBytes - manual.length) / line.length));
    const { skill } = await peer.ok<{ skill: SkillEntry }>("skills.install", {
      agentId,
      name: "x",
      files: [{ path: "SKILL.md", content: text }],
    });
    expect(skill.state).toBe("ready");
    const part = await read(agentId, "skills/x/SKILL.md");
    const [body, note] = (part as { result: { content: { text: string }[] } }).result.content;
    expect(body?.text.length).toBeLessThanOrEqual(LIMITS.toolResultChars);
    expect(note?.text).toMatch(/There is more: \d+ lines in all\. Continue with offset \d+/);
  });
});

describe("[F52] [SK7] what is refused", () => {
  const file = (path: string, bytes: Uint8Array = utf8.encode("x")): File => ({ path, bytes });
  test.each([
    [
      "more than 8 MiB",
      [file("SKILL.md", manual), file("a.bin", noise(LIMITS.skillFilesBytes - manual.length + 1))],
      "skill.too_large",
      /at most 8388608/,
    ],
    [
      "a SKILL.md over 128 KiB",
      [file("SKILL.md", utf8.encode(new TextDecoder().decode(manual) + "x".repeat(LIMITS.skillBytes)))],
      "skill.too_large",
      /at most 131072/,
    ],
    ["a binary SKILL.md", [file("SKILL.md", noise(100))], "skill.invalid", /SKILL\.md is not text/],
    ["a path that leaves the folder", [file("SKILL.md", manual), file("../y/SKILL.md")], "skill.invalid", /paths may contain/],
    ["names that differ in case", [file("SKILL.md", manual), file("a.md"), file("A.md")], "skill.invalid", /twice/],
    [
      "folders that differ in case",
      [file("SKILL.md", manual), file("ref/a.md"), file("Ref/b.md")],
      "skill.invalid",
      /differ only in upper and lower case/,
    ],
    ["another spelling of SKILL.md", [file("Skill.md", manual)], "skill.invalid", /must be spelled SKILL\.md/],
    [
      "hidden characters in a text",
      [file("SKILL.md", manual), file("a.md", utf8.encode("x\n\u202e"))],
      "skill.invalid",
      /line 2: a hidden character/,
    ],
  ] as const)("%s, with a code and a hint, and nothing is written", async (_what, files, reason, says) => {
    const agentId = newAgent();
    // What is too large for the upload is refused by its announced size.
    const { uploaded, chunks } = await packed(files);
    const uploadId = newUpload();
    await send(uploadId, chunks.slice(0, 16));
    const refused = await peer.call("skills.install", { agentId, name: "x", files: [], uploadId, uploaded });
    expect(refused).toMatchObject({ ok: false, error: { reason, message: expect.stringMatching(says), hint: expect.stringMatching(/./) } });
    expect(await written(agentId)).toEqual([]);
    await runInDurableObject(gateway(), (_gateway, state) => new SkillUploads(state.storage).prune(Number.MAX_SAFE_INTEGER));
  });
  test("too many files, counted over texts and uploaded ones", async () => {
    const agentId = newAgent();
    const { uploaded } = await packed(Array.from({ length: 200 }, (_, index) => file(`u${index}`)));
    const files = Array.from({ length: 57 }, (_, index) => ({ path: `f${index}`, content: "" }));
    const refused = await peer.refused("skills.install", { agentId, name: "x", files, uploadId: newUpload(), uploaded });
    expect(refused).toMatchObject({ reason: "skill.too_large", message: expect.stringContaining("at most 256 files; these are 257") });
  });
  test("bytes that did not arrive, arrived damaged, or lie outside the upload", async () => {
    const agentId = newAgent();
    const files = [file("SKILL.md", manual), file("a.bin", noise(LIMITS.skillChunkBytes * 2))];
    const { uploaded, chunks } = await packed(files);
    const uploadId = newUpload();
    const params = { agentId, name: "x", files: [], uploadId, uploaded };
    const lost = { reason: "skill.upload_lost", hint: expect.stringContaining("gsv skills install") };
    expect(await peer.refused("skills.install", params)).toMatchObject(lost);
    await send(uploadId, chunks.slice(0, 1));
    expect(await peer.refused("skills.install", params)).toMatchObject(lost);
    await peer.ok("skills.upload", { uploadId, index: 2, content: chunks[2] });
    expect(await peer.refused("skills.install", params)).toMatchObject(lost);
    await peer.ok("skills.upload", { uploadId, index: 1, content: encodeBase64(noise(LIMITS.skillChunkBytes, 9)) });
    expect(await peer.refused("skills.install", params)).toMatchObject({
      reason: "skill.upload_lost",
      message: expect.stringContaining("`a.bin`"),
    });
    expect(await peer.refused("skills.install", { agentId, name: "x", files: [], uploaded })).toMatchObject(lost);
    expect(await written(agentId)).toEqual([]);
    await peer.ok("skills.upload", { uploadId, index: 1, content: chunks[1] });
    expect(await peer.ok("skills.install", params)).toMatchObject({ skill: { state: "ready" } });
  });
  test("chunks that are too large, empty, no base64, or too many", async () => {
    const uploadId = newUpload();
    const wrong = [
      { index: 0, content: encodeBase64(noise(LIMITS.skillChunkBytes + 1)) },
      { index: 0, content: "" },
      { index: 0, content: "not base64!" },
      { index: 16, content: "eA==" },
      { index: -1, content: "eA==" },
    ];
    for (const chunk of wrong)
      expect(await peer.refused("skills.upload", { uploadId, ...chunk })).toMatchObject({ reason: "protocol.invalid_params" });
  });
});

describe("[F52] [SK7] uploads are bounded and leased", () => {
  test("a fifth one waits for the others or their lease, and an alarm deletes what expired", async () => {
    const bytes = new Uint8Array([1]);
    await runInDurableObject(gateway(), async (_gateway, state) => {
      const uploads = new SkillUploads(state.storage);
      uploads.prune(Number.MAX_SAFE_INTEGER);
      expect(uploads.nextExpiry()).toBeUndefined();
      for (const id of ["a", "b", "c", "d"]) expect(uploads.add(id, 0, bytes, 1000)?.expiresAt).toBe(1000 + LIMITS.skillUploadMs);
      expect(uploads.add("e", 0, bytes, 2000)).toBeUndefined();
      // A chunk renews the lease of its own upload only.
      expect(uploads.add("a", 1, bytes, 5000)?.receivedBytes).toBe(2);
      expect(uploads.nextExpiry()).toBe(1000 + LIMITS.skillUploadMs);
      expect(uploads.add("e", 0, bytes, 1000 + LIMITS.skillUploadMs)?.receivedBytes).toBe(1);
      expect(uploads.bytes("b", 1000 + LIMITS.skillUploadMs)).toBeUndefined();
      // An installed one holds no place and no bytes; its repeated chunks are not kept.
      uploads.done("e", "what");
      expect(uploads.add("e", 0, bytes, 1000 + LIMITS.skillUploadMs)?.receivedBytes).toBe(0);
      expect(uploads.installed("e", 1000 + LIMITS.skillUploadMs)).toBe("what");
      uploads.prune(Number.MAX_SAFE_INTEGER);
      for (const table of ["skill_uploads", "skill_upload_chunks"])
        expect(state.storage.sql.exec(`SELECT count(*) AS n FROM ${table}`).one()["n"], table).toBe(0);
    });
    for (let count = 0; count < LIMITS.skillUploads; count++) await send(newUpload(), ["eA=="]);
    expect(await peer.refused("skills.upload", { uploadId: newUpload(), index: 0, content: "eA==" })).toMatchObject({
      reason: "skill.too_many_uploads",
      retryable: true,
    });
    await runInDurableObject(gateway(), async (_gateway, state) => {
      state.storage.sql.exec("UPDATE skill_uploads SET expires_at = 1");
      // The alarm that the upload has set; it would run after the lease.
      expect(await state.storage.getAlarm()).toBeLessThanOrEqual(Date.now() + LIMITS.skillUploadMs);
    });
    await runDurableObjectAlarm(gateway());
    expect([await stored("skill_uploads"), await stored("skill_upload_chunks")]).toEqual([0, 0]);
  });
});
