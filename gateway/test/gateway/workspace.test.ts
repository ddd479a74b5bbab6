/** `workspace.*` on the wire: versions, conditions, long files, what nobody may write. */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { client, fakeSessions, type Peer, seed } from "./support.ts";

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
  test("log, read of a version, and restore", async () => {
    await admin.ok("workspace.write", { path, content: "one" });
    await admin.ok("workspace.write", { path, content: "two" });
    const { current, versions } = await admin.ok<Log>("workspace.log", { path });
    expect([current?.by, versions.map(({ by }) => by)]).toEqual(["client:laptop", ["client:laptop"]]);
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
  test("transcripts and results are nobody's to write", async () => {
    for (const sealed of ["sessions/s-1.jsonl.gz", "results/r.txt"]) {
      await env.STORAGE.put(`agents/main/${sealed}`, "true");
      expect((await admin.refused("workspace.write", { path: sealed, content: "forged" })).reason).toBe("workspace.protected");
      expect((await admin.refused("workspace.delete", { path: sealed })).reason).toBe("workspace.protected");
      expect(await (await env.STORAGE.get(`agents/main/${sealed}`))?.text()).toBe("true");
    }
  });
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
