/** Versions: no written content is lost, after any failure and with concurrent writers. */
import type { Bucket } from "../../src/storage/bucket.ts";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { createSkillLibrary } from "../../src/features/skills/library.ts";
import { MARK_FRESH_MS } from "../../src/storage/replace.ts";
import { createWorkspaceStore, type WorkspaceStore } from "../../src/storage/workspace/store.ts";
import { MAX_KEPT_BYTES, PRUNE_EVERY } from "../../src/storage/versions.ts";
import { newAgent, reason, textAt, value, watched } from "../support/workspace.ts";

const store = createWorkspaceStore(env.STORAGE);
const add = (text: string) => (current: string | undefined) => ({ ok: true, value: (current ?? "") + text }) as const;
const PATH = "notes/a.md";
/** Retries without a pause. */
const AT_ONCE = { pause: async () => {} };
/** A time at which every deletion marker is old. */
const LATER = { ...AT_ONCE, now: () => Date.now() + MARK_FRESH_MS + 1 };

/** Contents of all versions, newest first. */
async function contents(agent: string, path = PATH, from: WorkspaceStore = store): Promise<string[]> {
  const log = value(await from.log(agent, path));
  return Promise.all(log.versions.map(async ({ version }) => value(await from.readVersion(agent, path, version)).content));
}
const now = async (agent: string, path = PATH): Promise<string | undefined> => {
  const file = await store.read(agent, path);
  return file.ok ? file.value.content : undefined;
};

describe("[S10] versions", () => {
  it("[WF4] every change stores the earlier version with time and writer", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one", { by: "client:laptop" });
    await store.update(agent, PATH, add(" two"), "c1", { by: "agent:agent:main:main" });
    await store.write(agent, PATH, "three", { by: "client:phone" });
    const log = value(await store.log(agent, PATH));
    expect(log.current).toMatchObject({ sizeBytes: 5, by: "client:phone" });
    expect(log.versions.map(({ by, sizeBytes }) => [by, sizeBytes])).toEqual([
      ["agent:agent:main:main", 7],
      ["client:laptop", 3],
    ]);
    for (const { at, replacedAt } of log.versions) expect(replacedAt).toBeGreaterThanOrEqual(at);
    expect(await contents(agent)).toEqual(["one two", "one"]);
  });
  it("[P5.1] versions are stored outside every workspace, under versions/{agentId}/{path}", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    await store.write(agent, PATH, "two");
    const { objects } = await env.STORAGE.list({ prefix: `versions/${agent}/` });
    expect(objects.map(({ key }) => key)).toEqual([
      expect.stringMatching(new RegExp(`^versions/${agent}/notes/a\\.md/@\\d{13}-[0-9a-f]{32}$`)),
    ]);
    expect(value(await store.list(agent, undefined))).toMatchObject({ directories: ["notes"], files: [] });
    for (const path of ["../../versions", `versions/${agent}`, `notes/a.md/${objects[0]?.key.split("/").at(-1)}`])
      expect(reason(await store.delete(agent, path)), path).not.toBe("ok");
  });
  it("[WF3] a deleted file can be restored; the content that a restore replaces becomes a version", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one", { by: "client:laptop" });
    value(await store.delete(agent, PATH));
    const deleted = value(await store.log(agent, PATH));
    expect([deleted.current, deleted.versions.length]).toEqual([undefined, 1]);
    const version = deleted.versions[0]?.version ?? "";
    value(await store.restore(agent, PATH, version, { ifMatch: "absent", by: "client:phone" }));
    expect([await now(agent), value(await store.log(agent, PATH)).current?.by]).toEqual(["one", "client:phone"]);
    await store.write(agent, PATH, "two");
    value(await store.restore(agent, PATH, version));
    expect([await now(agent), (await contents(agent))[0]]).toEqual(["one", "two"]);
  });
  it("a restore is conditional: a change meanwhile is not lost", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    await store.write(agent, PATH, "two");
    const { current, versions } = value(await store.log(agent, PATH));
    await store.write(agent, PATH, "three");
    const restore = () => store.restore(agent, PATH, versions[0]?.version ?? "", { ifMatch: current?.version ?? "" });
    expect(reason(await restore())).toBe("workspace.conflict");
    expect(await now(agent)).toBe("three");
    const seen = value(await store.log(agent, PATH)).current?.version ?? "";
    expect(reason(await store.restore(agent, PATH, versions[0]?.version ?? "", { ifMatch: seen }))).toBe("ok");
  });
  it("an invalid version or a version of another file is not found", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    await store.write(agent, PATH, "two");
    const version = value(await store.log(agent, PATH)).versions[0]?.version ?? "";
    for (const [path, name] of [
      [PATH, "latest"],
      [PATH, "../../../agents/main/SOUL.md"],
      [PATH, version.replace(/.$/, (last) => (last === "0" ? "1" : "0"))],
      ["notes/b.md", version],
    ] as const) {
      expect(reason(await store.readVersion(agent, path, name)), name).toBe("path.not_found");
      expect(reason(await store.restore(agent, path, name)), name).toBe("path.not_found");
    }
    expect(reason(await store.log(agent, "never.md"))).toBe("path.not_found");
    expect(reason(await store.log(agent, "../x"))).toBe("path.invalid");
  });
  it("a file, a folder of its name, and files in it have versions of their own", async () => {
    const agent = newAgent();
    for (const path of ["x", "x/y", "x/y/z"]) {
      await env.STORAGE.put(`agents/${agent}/${path}`, `old ${path}`);
      await store.write(agent, path, `new ${path}`);
    }
    for (const path of ["x", "x/y", "x/y/z"]) expect(await contents(agent, path)).toEqual([`old ${path}`]);
  });
  it(`the last ${LIMITS.versionsKept} are kept, older ones go`, async () => {
    const agent = newAgent();
    const last = LIMITS.versionsKept + 2 * PRUNE_EVERY;
    for (let i = 0; i <= last; i++) value(await store.write(agent, PATH, `text ${i}`));
    const kept = await contents(agent);
    expect(kept).toEqual(Array.from({ length: LIMITS.versionsKept }, (_, i) => `text ${last - 1 - i}`));
    const stored = (await env.STORAGE.list({ prefix: `versions/${agent}/` })).objects.length;
    expect(stored).toBeLessThan(LIMITS.versionsKept + PRUNE_EVERY);
    value(await store.delete(agent, PATH));
    expect((await env.STORAGE.list({ prefix: `versions/${agent}/` })).objects.length).toBe(LIMITS.versionsKept);
  });
  it("writing the same content creates no version", async () => {
    const agent = newAgent();
    const first = value(await store.write(agent, PATH, "same"));
    expect(value(await store.write(agent, PATH, "same", { ifMatch: "absent" }))).toEqual(first);
    expect(value(await store.log(agent, PATH)).versions).toEqual([]);
  });
  it("[WF3] a file that is too large to keep is deleted only for good, and a smaller one is kept also then", async () => {
    const agent = newAgent();
    const key = `agents/${agent}/film.bin`;
    await env.STORAGE.put(key, new Uint8Array(MAX_KEPT_BYTES + 1));
    const refused = await store.delete(agent, "film.bin");
    expect(refused).toMatchObject({ ok: false, error: { reason: "file.too_large", hint: expect.stringContaining("rm --permanently") } });
    expect(reason(await store.write(agent, "film.bin", "text"))).toBe("file.too_large");
    expect((await env.STORAGE.head(key))?.size).toBe(MAX_KEPT_BYTES + 1);
    expect(value(await store.delete(agent, "film.bin", { permanently: true }))).toEqual({ path: "film.bin", deleted: true, kept: false });
    expect(await env.STORAGE.head(key)).toBeNull();
    expect(reason(await store.log(agent, "film.bin"))).toBe("path.not_found");
    await store.write(agent, "small.md", "kept");
    expect(value(await store.delete(agent, "small.md", { permanently: true }))).toMatchObject({ kept: true });
    expect(await contents(agent, "small.md")).toEqual(["kept"]);
  });
  it("a person's change on disk becomes a version at the next write, also when it is large or binary", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "ours");
    const large = new Uint8Array(LIMITS.workspaceFileBytes + 5).fill(0xff);
    await env.STORAGE.put(`agents/${agent}/${PATH}`, large);
    value(await store.write(agent, PATH, "ours again"));
    const [version] = value(await store.log(agent, PATH)).versions;
    expect([version?.sizeBytes, version?.by]).toEqual([large.length, undefined]);
    expect(reason(await store.readVersion(agent, PATH, version?.version ?? ""))).toBe("file.too_large");
    expect(reason(await store.restore(agent, PATH, version?.version ?? ""))).toBe("file.too_large");
    await env.STORAGE.put(`agents/${agent}/${PATH}`, new Uint8Array([0xff, 0]));
    value(await store.delete(agent, PATH));
    const binary = value(await store.log(agent, PATH)).versions[0]?.version ?? "";
    expect(reason(await store.readVersion(agent, PATH, binary))).toBe("file.binary");
    value(await store.restore(agent, PATH, binary));
    expect(new Uint8Array((await (await env.STORAGE.get(`agents/${agent}/${PATH}`))?.arrayBuffer()) ?? [])).toEqual(
      new Uint8Array([0xff, 0]),
    );
  });
  it("[D] a change costs a get and two puts (the version and the file), every eighth a list more; a new file costs a get and a put", async () => {
    const agent = newAgent();
    const { bucket, taken } = watched();
    const counted = createWorkspaceStore(bucket);
    const costs: string[] = [];
    for (let i = 0; i < PRUNE_EVERY + 2; i++) {
      await counted.update(agent, PATH, add(`line ${i}\n`), `c${i}`);
      costs.push(taken().join(" "));
    }
    expect(costs).toEqual(["get put", ...Array.from({ length: PRUNE_EVERY - 1 }, () => "get put put"), "get list put put", "get put put"]);
    await counted.delete(agent, PATH);
    expect(taken()).toEqual(["delete", "get", "list", "put", "put"]);
  });
  for (const path of ["sessions/s-1.jsonl.gz", "results/a.txt", "SESSIONS/x", "memory", "skills"]) {
    it(`${path} is protected from everyone: it cannot be written, deleted or restored`, async () => {
      const agent = newAgent();
      const expected = path.includes("/") ? "workspace.protected" : "path.not_a_file";
      expect(reason(await store.write(agent, path, "x"))).toBe(expected);
      expect(reason(await store.update(agent, path, add("x"), "c"))).toBe(expected);
      expect(reason(await store.delete(agent, path))).toBe(expected);
      expect(reason(await store.restore(agent, path, "1708300000000-0"))).toBe(expected);
    });
  }
});

/** A bucket in which another writer is a moment faster than the first put. */
function withTheirsFirst(agent: string): Bucket {
  const { bucket, interfere } = watched();
  let once = true;
  interfere(async (operation, key) => {
    if (operation !== "put" || !key.startsWith("agents/") || !once) return;
    once = false;
    value(await store.write(agent, PATH, "theirs"));
  });
  return bucket;
}
describe("[WF2][P8] concurrent writes lose nothing", () => {
  it("a write between read and put is kept as a version, and ours is the current content", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    const bucket = withTheirsFirst(agent);
    value(await createWorkspaceStore(bucket).write(agent, PATH, "ours"));
    expect([await now(agent), await contents(agent)]).toEqual(["ours", ["theirs", "one"]]);
  });
  it("every confirmed write of many writers is in the file or in its versions", async () => {
    const agent = newAgent();
    const texts = Array.from({ length: 12 }, (_, i) => `writer ${i}`);
    const results = await Promise.all(texts.map((text) => store.write(agent, PATH, text)));
    const done = texts.filter((_, i) => results[i]?.ok);
    for (const result of results) expect(["ok", "workspace.conflict"]).toContain(reason(result));
    expect(done.length).toBeGreaterThan(0);
    expect([...(await contents(agent)), await now(agent)].sort()).toEqual(done.sort());
  });
  it("a write never interferes with a deletion, and a deletion never removes content without a version", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    const { bucket, interfere } = watched();
    const meanwhile: string[] = [];
    interfere(async (operation) => {
      if (operation === "delete") {
        meanwhile.push(
          reason(await store.write(agent, PATH, "theirs")),
          reason(await store.delete(agent, PATH)),
          reason(await store.read(agent, PATH)),
        );
        meanwhile.push(String(value(await store.log(agent, PATH)).current));
      }
    });
    value(await createWorkspaceStore(bucket).delete(agent, PATH));
    expect(meanwhile).toEqual(["workspace.conflict", "workspace.conflict", "path.not_found", "undefined"]);
    expect(await textAt(`agents/${agent}/${PATH}`)).toBeUndefined();
    value(await store.write(agent, PATH, "theirs"));
    expect(await contents(agent)).toEqual(["one"]);
  });
  it("a write just before a deletion's marker is kept too", async () => {
    const agent = newAgent();
    await store.write(agent, PATH, "one");
    const bucket = withTheirsFirst(agent);
    value(await createWorkspaceStore(bucket).delete(agent, PATH));
    expect([await now(agent), await contents(agent)]).toEqual([undefined, ["theirs", "one"]]);
  });
  it("the repetition of an interrupted deletion says whether the content was kept", async () => {
    for (const size of [3, MAX_KEPT_BYTES + 1]) {
      const agent = newAgent();
      await env.STORAGE.put(`agents/${agent}/${PATH}`, new Uint8Array(size));
      const { bucket, interfere } = watched();
      interfere((operation) => {
        if (operation === "delete") throw new Error("killed");
      });
      const first = await createWorkspaceStore(bucket, AT_ONCE).delete(agent, PATH, { permanently: true });
      expect(reason(first)).toBe("storage.failed");
      const again = await createWorkspaceStore(env.STORAGE, LATER).delete(agent, PATH, { permanently: true });
      expect(value(again)).toMatchObject({ kept: size === 3 });
    }
  });
  it("an interrupted deletion is completed or overwritten once its marker is old", async () => {
    for (const then of ["delete", "write"] as const) {
      const agent = newAgent();
      await store.write(agent, PATH, then === "write" ? "" : "one");
      const { bucket, interfere, taken } = watched();
      interfere((operation) => {
        if (operation === "delete") throw new Error("killed");
      });
      expect(reason(await createWorkspaceStore(bucket, AT_ONCE).delete(agent, PATH))).toBe("storage.failed");
      expect(taken().filter((operation) => operation === "delete").length).toBe(3);
      const later = createWorkspaceStore(env.STORAGE, LATER);
      expect(reason(then === "delete" ? await later.delete(agent, PATH) : await later.write(agent, PATH, "two"))).toBe("ok");
      expect(await textAt(`agents/${agent}/${PATH}`)).toBe(then === "delete" ? undefined : "two");
      expect(await contents(agent)).toEqual([then === "write" ? "" : "one"]);
    }
  });
});

describe("[D] the bucket fails at any one operation, before or after its effect", () => {
  type Act = (store: WorkspaceStore, agent: string) => Promise<{ ok: true } | { ok: false; error: { reason: string } }>;
  const acts: Readonly<Record<string, { act: Act; made: string | undefined }>> = {
    write: { act: (s, agent) => s.write(agent, PATH, "three"), made: "three" },
    update: { act: (s, agent) => s.update(agent, PATH, add(" three"), "c"), made: "two three" },
    delete: { act: (s, agent) => s.delete(agent, PATH), made: undefined },
    restore: {
      act: async (s, agent) => s.restore(agent, PATH, value(await store.log(agent, PATH)).versions.at(-1)?.version ?? ""),
      made: "one",
    },
  };
  for (const [name, { act, made }] of Object.entries(acts)) {
    for (const when of ["before", "after"] as const) {
      it(`${name}, ${when}: an error in words, nothing lost, and again it succeeds`, async () => {
        let failures = 0;
        for (let at = 1; at <= 6; at++) {
          const agent = newAgent();
          await store.write(agent, PATH, "one");
          await store.write(agent, PATH, "two");
          const { bucket, interfere } = watched();
          let n = 0;
          interfere(() => {
            if (++n === at) throw new Error("10001 secret-detail");
          }, when);
          const first = await act(createWorkspaceStore(bucket, AT_ONCE), agent);
          interfere(undefined);
          if (!first.ok) {
            failures++;
            expect(first.error.reason).toBe("storage.failed");
            expect(JSON.stringify(first)).not.toContain("secret-detail");
          }
          const again = await act(createWorkspaceStore(bucket, LATER), agent);
          expect(["ok", ...(made === undefined ? ["path.not_found"] : [])]).toContain(reason(again));
          expect(await now(agent)).toBe(made);
          const kept = await contents(agent);
          expect(new Set(kept).size, kept.join()).toBe(kept.length);
          expect([...kept, made]).toEqual(expect.arrayContaining(["one", "two"]));
        }
        expect(failures).toBeGreaterThan(1);
      });
    }
  }
});

describe("[S10] skills", () => {
  it("replacing or removing an agent's own skill stores a version", async () => {
    const agent = newAgent();
    const library = createSkillLibrary(env.STORAGE);
    const root = { scope: "agent", agentId: agent } as const;
    const path = "skills/mail/SKILL.md";
    const file = (name: string, content: string) => ({ path: name, bytes: new Uint8Array(new TextEncoder().encode(content)) });
    value(await library.put(root, "mail", [file("SKILL.md", "one"), file("more.md", "more")], "client:t"));
    value(await library.put(root, "mail", [file("SKILL.md", "two")], "client:t"));
    expect(await contents(agent, "skills/mail/more.md")).toEqual(["more"]);
    expect(value(await library.remove(root, "mail"))).toBe(1);
    expect([await now(agent, path), await contents(agent, path)]).toEqual([undefined, ["two", "one"]]);
    value(await store.restore(agent, path, value(await store.log(agent, path)).versions[0]?.version ?? "", { ifMatch: "absent" }));
    expect(await now(agent, path)).toBe("two");
  });
});
