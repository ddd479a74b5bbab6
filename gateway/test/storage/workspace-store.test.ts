import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { CAS_TRIES, createWorkspaceStore } from "../../src/storage/workspace/store.ts";
import { newAgent, reason, textAt, value, watched } from "../support/workspace.ts";

const store = createWorkspaceStore(env.STORAGE);
const add = (text: string) => (current: string | undefined) => ({ ok: true, value: (current ?? "") + text }) as const;

describe("workspace files", () => {
  it("a written file can be read, listed and deleted", async () => {
    const agent = newAgent();
    const written = value(await store.write(agent, "notes/zwölf.md", "Grüße 🌍\n"));
    expect(written).toMatchObject({ path: "notes/zwölf.md", size: 13 });
    const file = value(await store.read(agent, "./notes/zwölf.md"));
    expect(file).toMatchObject({ path: "notes/zwölf.md", content: "Grüße 🌍\n", size: 13, etag: written.etag });
    expect(Date.parse(file.lastModified)).toBeGreaterThan(0);
    expect((await env.STORAGE.head(`agents/${agent}/notes/zwölf.md`))?.httpMetadata?.contentType).toBe("text/markdown; charset=utf-8");
    await store.write(agent, "A.md", "a");
    expect(value(await store.list(agent, undefined))).toEqual({
      path: "",
      files: ["A.md"],
      directories: ["notes"],
      etags: new Map([["A.md", expect.any(String)]]),
      truncated: false,
    });
    expect(value(await store.list(agent, "notes/"))).toEqual({
      path: "notes",
      files: ["notes/zwölf.md"],
      directories: [],
      etags: new Map([["notes/zwölf.md", written.etag]]),
      truncated: false,
    });
    expect(value(await store.delete(agent, "notes/zwölf.md"))).toEqual({ path: "notes/zwölf.md", deleted: true, kept: true });
    expect(reason(await store.read(agent, "notes/zwölf.md"))).toBe("path.not_found");
  });
  it("errors use the contract's reasons", async () => {
    const agent = newAgent();
    await store.write(agent, "folder/a.md", "x");
    await env.STORAGE.put(`agents/${agent}/binary.md`, new Uint8Array([0xff, 0xfe, 0]));
    expect(reason(await store.read(agent, "../x"))).toBe("path.invalid");
    expect(reason(await store.write(agent, "/etc/passwd", "x"))).toBe("path.invalid");
    expect(reason(await store.delete(agent, "%2e%2e/x"))).toBe("path.invalid");
    expect(reason(await store.list(agent, "../"))).toBe("path.invalid");
    expect(reason(await store.read(agent, "folder"))).toBe("path.not_a_file");
    expect(reason(await store.read(agent, "folder/"))).toBe("path.not_a_file");
    expect(reason(await store.list(agent, "nothing"))).toBe("path.not_found");
    expect(reason(await store.list(agent, "folder/a.md"))).toBe("path.invalid");
    expect(reason(await store.delete(agent, "nothing.md"))).toBe("path.not_found");
    expect(reason(await store.read(agent, "binary.md"))).toBe("file.binary");
    expect(reason(await store.write(agent, "big.md", "x".repeat(LIMITS.workspaceFileBytes + 1)))).toBe("file.too_large");
    expect(reason(await store.write(agent, "fits.md", "x".repeat(LIMITS.workspaceFileBytes)))).toBe("ok");
    expect(value(await store.list(agent, undefined)).files).toEqual(["binary.md", "fits.md"]);
  });
  it("agents have separate folders", async () => {
    const [a, b] = [newAgent(), newAgent()];
    await store.write(a, "SOUL.md", "a");
    expect(reason(await store.read(b, "SOUL.md"))).toBe("path.not_found");
    expect(value(await store.list(b, undefined)).files).toEqual([]);
  });
  it("[P8] a conditional write needs the state that was read: an etag, quoted or not, or absent", async () => {
    const agent = newAgent();
    const first = value(await store.write(agent, "a.md", "one", { ifMatch: "absent" }));
    expect(reason(await store.write(agent, "a.md", "two", { ifMatch: "absent" }))).toBe("workspace.conflict");
    const second = value(await store.write(agent, "a.md", "two", { ifMatch: first.etag }));
    expect(reason(await store.write(agent, "a.md", "three", { ifMatch: `"${first.etag}"` }))).toBe("workspace.conflict");
    expect(reason(await store.write(agent, "a.md", "three", { ifMatch: `"${second.etag}"` }))).toBe("ok");
    expect(reason(await store.write(agent, "none.md", "x", { ifMatch: second.etag }))).toBe("workspace.conflict");
    expect(await textAt(`agents/${agent}/none.md`)).toBeUndefined();
  });
  it("reads of skills fall back to the shared ones, writes go to the agent's own", async () => {
    const agent = newAgent();
    await env.STORAGE.put(`skills/${agent}/SKILL.md`, "global");
    expect(value(await store.read(agent, `skills/${agent}/SKILL.md`)).content).toBe("global");
    expect(value(await store.list(agent, "skills")).directories).toContain(`skills/${agent}`);
    await store.write(agent, `skills/${agent}/SKILL.md`, "own");
    expect(value(await store.read(agent, `skills/${agent}/SKILL.md`)).content).toBe("own");
    expect(await textAt(`skills/${agent}/SKILL.md`)).toBe("global");
  });
  it("[P19] the list of a very large folder is cut and marked as incomplete", async () => {
    const { bucket } = watched();
    const agent = newAgent();
    const page = (n: number) => ({
      objects: Array.from({ length: 1000 }, (_, i) => ({ key: `agents/${agent}/f${n}-${i}` })),
      delimitedPrefixes: [],
      truncated: true,
      cursor: String(n + 1),
    });
    let n = 0;
    const endless = { ...bucket, list: async () => page(n++) } as unknown as typeof bucket;
    const listing = value(await createWorkspaceStore(endless).list(agent, undefined));
    expect([listing.truncated, n]).toEqual([true, 6]);
  });
});

describe("[P8] changes are made once", () => {
  it("a repeated call changes nothing and gets the same answer", async () => {
    const agent = newAgent();
    const first = value(await store.update(agent, "MEMORY.md", add("- tea\n"), "s/r1/0/0"));
    expect(value(await store.update(agent, "MEMORY.md", add("- tea\n"), "s/r1/0/0"))).toEqual(first);
    expect(await textAt(`agents/${agent}/MEMORY.md`)).toBe("- tea\n");
  });
  it("also after other calls and a person have changed the file", async () => {
    const agent = newAgent();
    await store.update(agent, "MEMORY.md", add("a"), "s/r1/0/0");
    await store.update(agent, "MEMORY.md", add("b"), "s/r1/0/1");
    await store.write(agent, "MEMORY.md", "by hand");
    value(await store.update(agent, "MEMORY.md", add("a"), "s/r1/0/0"));
    expect(await textAt(`agents/${agent}/MEMORY.md`)).toBe("by hand");
  });
  it("a put with a lost answer counts", async () => {
    const agent = newAgent();
    const { bucket, interfere } = watched();
    interfere((operation) => {
      if (operation === "put") throw new Error("connection lost");
    }, "after");
    const lossy = createWorkspaceStore(bucket);
    expect(reason(await lossy.update(agent, "M.md", add("x"), "c1"))).toBe("storage.failed");
    interfere(undefined);
    expect(reason(await lossy.update(agent, "M.md", add("x"), "c1"))).toBe("ok");
    expect(await textAt(`agents/${agent}/M.md`)).toBe("x");
  });
  it("[W17] concurrent appends are all stored", async () => {
    const agent = newAgent();
    const results = await Promise.all(Array.from({ length: 4 }, (_, i) => store.update(agent, "M.md", add(`${i}`), `c${i}`)));
    expect(results.map(reason)).toEqual(["ok", "ok", "ok", "ok"]);
    expect([...((await textAt(`agents/${agent}/M.md`)) ?? "")].sort().join("")).toBe("0123");
  });
  it(`gives up after ${CAS_TRIES} tries and changes nothing`, async () => {
    const agent = newAgent();
    const { bucket, interfere, taken } = watched();
    let n = 0;
    interfere(async (operation, key) => {
      if (operation === "put" && key.startsWith("agents/")) await env.STORAGE.put(key, `other ${n++}`);
    });
    expect(reason(await createWorkspaceStore(bucket).update(agent, "M.md", add("x"), "c"))).toBe("workspace.conflict");
    // The first try finds no file, so it stores no version; each later try stores the content that it found.
    expect(taken().filter((operation) => operation === "put").length).toBe(CAS_TRIES + CAS_TRIES - 1);
    expect(await textAt(`agents/${agent}/M.md`)).toBe(`other ${CAS_TRIES - 1}`);
  });
  it("[D] a failing bucket is reported at every operation", async () => {
    for (const failing of ["get", "put", "head", "delete", "list"] as const) {
      const agent = newAgent();
      await store.write(agent, "a.md", "x");
      const { bucket, interfere } = watched();
      interfere((operation) => {
        if (operation === failing) throw new Error("R2 internal error 10001 secret-detail");
      });
      const broken = createWorkspaceStore(bucket);
      const all = [
        await broken.read(agent, "a.md"),
        await broken.write(agent, "a.md", "y"),
        await broken.update(agent, "a.md", add("z"), "c"),
        await broken.list(agent, undefined),
        await broken.log(agent, "a.md"),
        await broken.delete(agent, "a.md"),
      ];
      for (const result of all) {
        expect(["ok", "storage.failed"]).toContain(reason(result));
        expect(JSON.stringify(result)).not.toContain("secret-detail");
      }
      expect(all.map(reason)).toContain("storage.failed");
    }
  });
});
