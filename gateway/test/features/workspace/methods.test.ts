/** `workspace.*` on the wire: versions, conditions, long files, sealed files. */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, type Peer, seed, token } from "../../support/gateway.ts";

interface File {
  content: string;
  etag: string;
  size: number;
  nextOffset?: number;
}
interface Log {
  current?: { version: string; by?: string };
  versions: { version: string; by?: string }[];
}
let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client(undefined, {}, "laptop");
});
afterEach(() => {
  vi.restoreAllMocks();
});
const path = "notes.md";

describe("[S10] versions on the wire", () => {
  test("[AU1] the token of a writer is named, and a client's name does not pass for another's token", async () => {
    const forger = await client(undefined, {}, "laptop token:other");
    await forger.ok("workspace.write", { path, content: "one" });
    const { current } = await forger.ok<Log>("workspace.log", { path });
    expect(current?.by).toMatch(/^client:laptop_token:other token:(?!other)\S+$/);
  });
  test("log, read of a version, and restore", async () => {
    await admin.ok("workspace.write", { path, content: "one" });
    await admin.ok("workspace.write", { path, content: "two" });
    const { current, versions } = await admin.ok<Log>("workspace.log", { path });
    const by = expect.stringMatching(/^client:laptop token:\S+$/);
    expect([current?.by, versions.map((version) => version.by)]).toEqual([by, [by]]);
    const version = versions[0]?.version ?? "";
    expect(await admin.ok<File>("workspace.read", { path, version })).toMatchObject({ content: "one", size: 3 });
    const stale = await admin.refused("workspace.restore", { path, version, ifMatch: "absent" });
    expect([stale.reason, stale.retryable]).toEqual(["workspace.conflict", true]);
    await admin.ok("workspace.restore", { path, version, ifMatch: current?.version });
    expect((await admin.ok<File>("workspace.read", { path })).content).toBe("one");
    await admin.ok("workspace.delete", { path });
    const deleted = await admin.ok<Log>("workspace.log", { path });
    expect([deleted.current, deleted.versions.length]).toEqual([undefined, 3]);
    expect((await admin.refused("workspace.read", { path, version: "1708300000000-0" })).reason).toBe("path.not_found");
  });
  test("[WF5] nothing is written below a file that the gateway knows by name, and what is there can be deleted", async () => {
    for (const path of ["MEMORY.md/y", "HEARTBEAT.md/y", "agent.yaml/y", "workspace.json/y"]) {
      expect((await admin.refused("workspace.write", { path, content: "x" })).reason, path).toBe("workspace.protected");
      await env.STORAGE.put(`agents/main/${path}`, "of an earlier version");
      await admin.ok("workspace.delete", { path });
      const { versions } = await admin.ok<Log>("workspace.log", { path });
      expect((await admin.refused("workspace.restore", { path, version: versions[0]?.version })).reason).toBe("workspace.protected");
      expect(await env.STORAGE.get(`agents/main/${path}`)).toBeNull();
    }
  });
  test("[WF5] no client can write transcripts, results and the mark of the default files", async () => {
    for (const sealed of ["sessions/s-1.jsonl.gz", "results/r.txt", "workspace.json"]) {
      await env.STORAGE.put(`agents/main/${sealed}`, "true");
      expect((await admin.refused("workspace.write", { path: sealed, content: "forged" })).reason).toBe("workspace.protected");
      expect((await admin.refused("workspace.delete", { path: sealed })).reason).toBe("workspace.protected");
      expect(await (await env.STORAGE.get(`agents/main/${sealed}`))?.text()).toBe("true");
    }
  });
});

test("[TF14] [P19] a folder of more entries than one answer lists says so, and a whole one does not", async () => {
  interface Listed {
    files: string[];
    truncated?: boolean;
  }
  await admin.ok("workspace.write", { path: "big/a.md", content: "one" });
  expect(await admin.ok<Listed>("workspace.list", { path: "big" })).not.toHaveProperty("truncated");
  let pages = 0;
  const list = vi.spyOn(Object.getPrototypeOf(env.STORAGE) as R2Bucket, "list").mockImplementation(async () => {
    const page = pages++;
    const objects = Array.from({ length: 1000 }, (_, nth) => ({ key: `agents/main/big/${page}-${nth}`, etag: "e" }) as R2Object);
    return { objects, delimitedPrefixes: [], truncated: true, cursor: String(pages) };
  });
  const listed = await admin.ok<Listed>("workspace.list", { path: "big" });
  list.mockRestore();
  expect([listed.truncated, listed.files.length]).toEqual([true, 6000]);
});

describe("[P19] files that fit no frame", () => {
  test("are refused in words without an offset, and come in parts with one", async () => {
    const text = 'zwölf\n"🌍"'.repeat(80_000).slice(0, 700_000);
    await env.STORAGE.put(`agents/main/${path}`, text);
    expect((await admin.refused("workspace.read", { path })).reason).toBe("file.too_large");
    let whole = "";
    let parts = 0;
    for (let offset: number | undefined = 0; offset !== undefined; parts++) {
      const file: File = await admin.ok<File>("workspace.read", { path, offset });
      expect(file.size).toBe(new TextEncoder().encode(text).length);
      whole += file.content;
      offset = file.nextOffset;
    }
    expect(whole === text).toBe(true);
    expect(parts).toBeGreaterThan(1);
    expect((await admin.refused("workspace.read", { path, offset: 3 })).reason).toBe("protocol.invalid_params");
    expect((await admin.refused("workspace.read", { path, offset: LIMITS.frameBytes * 4 })).reason).toBe("protocol.invalid_params");
  });
});

describe("[P3.2] transcripts on the wire", () => {
  const archive = async (agent: string, sessionId: string, sessionKey: string | undefined, archivedAt: number): Promise<void> => {
    const text = `${JSON.stringify({ role: "user", content: `of ${sessionId}`, timestamp: 1 })}\n`;
    const bytes = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
    await env.STORAGE.put(`agents/${agent}/sessions/${sessionId}.jsonl.gz`, bytes, {
      customMetadata: { ...(sessionKey === undefined ? {} : { sessionKey }), messageCount: "1", archivedAt: String(archivedAt) },
    });
  };
  test("are listed of an agent and of a session, and read", async () => {
    await archive("main", "a", "agent:main:cli:dm:main", 1000);
    await archive("main", "b", "agent:main:main", 2000);
    await archive("main", "lost", undefined, 3000);
    await archive("other", "o", "agent:other:main", 4000);
    const paths = async (params: Record<string, unknown>) => {
      const { archives, count } = await admin.ok<{ archives: { path: string }[]; count: number }>("archives.list", params);
      return [archives.map(({ path: at }) => at.replace(/^sessions\/|\.jsonl\.gz$/g, "")), count];
    };
    expect(await paths({})).toEqual([["lost", "b", "a"], 3]);
    expect(await paths({ offset: 1, limit: 1 })).toEqual([["b"], 3]);
    expect(await paths({ sessionKey: "agent:main:cli:dm:main" })).toEqual([["a"], 1]);
    expect(await paths({ sessionKey: "agent:other:main" })).toEqual([["o"], 1]);
    expect(await paths({ agentId: "other" })).toEqual([["o"], 1]);
    expect(await admin.ok("archives.read", { path: "b" })).toMatchObject({
      archive: { path: "sessions/b.jsonl.gz", sessionKey: "agent:main:main", kind: "reset" },
      messages: [{ content: "of b" }],
      total: 1,
    });
    expect((await admin.refused("archives.read", { path: "none" })).reason).toBe("path.not_found");
    await env.STORAGE.put("agents/main/sessions/b.jsonl.gz", "broken");
    expect(await admin.refused("archives.read", { path: "b" })).toMatchObject({ reason: "archive.damaged", details: { readable: 0 } });
  });
  test("[TR3] one whose metadata was lost is the session's by its id", async () => {
    vi.restoreAllMocks();
    fakeSessions(() => ({
      history: async () => ({
        ok: true,
        value: { sessionKey: asSessionKey("agent:main:cli:dm:main"), currentSessionId: "s", previousSessionIds: ["lost"] },
      }),
    }));
    await archive("main", "lost", undefined, 3000);
    await admin.ok("chat.send", { sessionKey: "agent:main:cli:dm:main", message: "hello" });
    expect(await admin.ok("archives.list", { sessionKey: "agent:main:cli:dm:main" })).toMatchObject({ count: 1 });
    expect(await admin.ok("archives.list", { sessionKey: "agent:main:main" })).toMatchObject({ count: 0 });
  });
});

test("nothing is written for an agent that does not exist", async () => {
  for (const [method, params] of [
    ["workspace.write", { path, content: "lost" }],
    ["workspace.restore", { path, version: "1708300000000-0" }],
    ["skills.install", { name: "x", files: [{ path: "SKILL.md", content: "---\nname: x\ndescription: y\n---\n" }] }],
  ] as const)
    expect(await admin.refused(method, { agentId: "unknown", ...params }), method).toMatchObject({
      reason: "agent.unknown",
      message: expect.stringContaining("There is no agent unknown"),
    });
  expect((await env.STORAGE.list({ prefix: "agents/unknown/" })).objects).toEqual([]);
});

test("an agent that does not exist has no files and no skills to show, and an agent that was removed keeps its own", async () => {
  for (const [method, params] of [
    ["workspace.list", {}],
    ["workspace.read", { path }],
    ["workspace.log", { path }],
    ["workspace.delete", { path }],
    ["skills.status", {}],
    ["skills.update", {}],
    ["skills.show", { name: "daily-review" }],
  ] as const)
    expect(await admin.refused(method, { agentId: "man", ...params }), method).toMatchObject({
      reason: "agent.unknown",
      hint: expect.stringContaining("Did you mean main?"),
    });
  await env.STORAGE.put("agents/gone/notes.md", "kept");
  expect(await admin.ok("workspace.read", { agentId: "gone", path })).toMatchObject({ content: "kept" });
  expect(await admin.ok("workspace.list", { agentId: "gone" })).toMatchObject({ files: [path] });
  expect((await admin.refused("workspace.read", { agentId: "gone", path: "x.md" })).reason).toBe("path.not_found");
});

test("[TF14] a list has the etag of each file, which changes with the content", async () => {
  const etags = async (folder?: string): Promise<Record<string, string | undefined>> => {
    const listed = await admin.ok<{ files: string[]; etags: string[] }>("workspace.list", { path: folder });
    expect(listed.etags).toHaveLength(listed.files.length);
    return Object.fromEntries(listed.files.map((file, at) => [file, listed.etags[at]]));
  };
  await admin.ok("workspace.write", { path: "in/b.md", content: "kept" });
  const { etag } = await admin.ok<File>("workspace.write", { path: "in/a.md", content: "one" });
  const before = await etags("in");
  expect(before["in/a.md"]).toBe(etag);
  await admin.ok("workspace.write", { path: "in/a.md", content: "two" });
  const after = await etags("in");
  expect(after["in/a.md"]).not.toBe(etag);
  expect(after["in/b.md"]).toBe(before["in/b.md"]);
  // Built-in files are no objects of the bucket.
  expect(await etags("skills/daily-review")).toEqual({ "skills/daily-review/SKILL.md": "" });
});

test("[TF14] a list that fits a frame only without etags comes without them", async () => {
  const long = "x".repeat(900);
  await Promise.all(Array.from({ length: 1_060 }, (_, nth) => env.STORAGE.put(`agents/main/many/${long}-${nth}`, "")));
  const listed = await admin.ok<{ files: string[]; etags?: string[] }>("workspace.list", { path: "many" });
  expect(listed.files).toHaveLength(1_060);
  expect(listed.etags).toBeUndefined();
});

test("[F21] a client's token cannot write, delete or restore a skill; that needs an admin's, as skills.install does", async () => {
  const skill = "skills/mail/SKILL.md";
  const content = "---\nname: mail\ndescription: Sends mail.\n---\n# Mail\n";
  const plain = await client((await token("client")).token, {}, "phone");
  for (const written of [skill, `./${skill}`, "skills/mail/notes.md"])
    expect((await plain.refused("workspace.write", { path: written, content })).reason, written).toBe("auth.forbidden");
  await plain.ok("workspace.write", { path: "notes.md", content: "fine" });
  await admin.ok("workspace.write", { path: skill, content });
  await admin.ok("workspace.write", { path: skill, content: `${content}More.` });
  expect((await plain.refused("workspace.delete", { path: skill })).reason).toBe("auth.forbidden");
  const { versions } = await plain.ok<Log>("workspace.log", { path: skill });
  const restore = { path: skill, version: versions[0]?.version };
  expect((await plain.refused("workspace.restore", restore)).reason).toBe("auth.forbidden");
  expect(await plain.ok<File>("workspace.read", { path: skill })).toMatchObject({ content: `${content}More.` });
});
