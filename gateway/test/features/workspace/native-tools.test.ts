import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { GatewayPort } from "../../../src/ports/gateway.ts";
import type { NativeToolContext } from "../../../src/ports/native-tools.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import { approvesAll, newAgent, textAt } from "../../support/workspace.ts";
import { silent } from "../../support/gateway.ts";

const tools = composeNativeTools(env.STORAGE, { log: silent });
const asked: unknown[] = [];
const gateway: Pick<GatewayPort, "configGet" | "sessionsList" | "nodeLogs" | "skillsSeen" | "skillWriting" | "fileChanging"> = {
  ...approvesAll(),
  skillWriting: async () => ({ ok: true, value: undefined }),
  fileChanging: async () => undefined,
  async configGet(path) {
    asked.push(["configGet", path]);
    return path === "nope"
      ? { ok: false, error: { reason: "config.unknown_path", message: "There is no such setting." } }
      : { ok: true, value: { provider: "demo" } };
  },
  async sessionsList(limit) {
    asked.push(["sessionsList", limit]);
    return [{ sessionKey: "agent:main:main", createdAt: 1, lastActiveAt: 2 }];
  },
  async nodeLogs(nodeId, lines) {
    asked.push(["nodeLogs", nodeId, lines]);
    return { ok: true, value: { lines: ["a"] } };
  },
};
let calls = 0;
const context = (
  agentId: string,
  more: Partial<NativeToolContext["identity"]> = {},
  callId = `ref/r1/0/${calls++}`,
): NativeToolContext => ({
  identity: { key: `agent:${agentId}:main`, ref: "ref", agentId, isOwnersSession: true, ...more },
  callId,
  now: 1,
  userTimezone: "UTC",
  gateway: gateway as GatewayPort,
});
const run = async (agent: string, name: string, args: Record<string, unknown>, callId?: string) =>
  tools.run(name, args, context(agent, {}, callId));
const reasonOf = (outcome: Awaited<ReturnType<typeof run>>) => (outcome.ok ? "ok" : outcome.error.reason);
const textOf = (outcome: Awaited<ReturnType<typeof run>>): string =>
  outcome.ok ? (outcome.result as { content: { text: string }[] }).content.map(({ text }) => text).join("\n") : `! ${outcome.error.reason}`;

describe("[P5.4] native tools", () => {
  it("are registered by features, with names that every provider accepts and an object schema, and are repeatable", () => {
    const definitions = tools.entries.map(({ definition }) => definition);
    const byFeature = Object.groupBy(tools.entries, ({ feature }) => feature);
    const names = Object.entries(byFeature).map(([feature, entries = []]) => [feature, entries.map(({ definition }) => definition.name)]);
    expect(Object.fromEntries(names)).toEqual({
      schedule: ["gsv__Cron"],
      workspace: ["gsv__ReadFile", "gsv__WriteFile", "gsv__EditFile", "gsv__DeleteFile", "gsv__ListFiles"],
      config: ["gsv__ConfigGet"],
      nodes: ["gsv__LogsGet"],
      sessions: ["gsv__SessionsList", "gsv__SessionSend"],
      channels: ["gsv__Channels", "gsv__Message"],
      search: ["gsv__Search", "gsv__Remember"],
      memory: ["remember", "recall_memory"],
      events: ["emit_event", "report_low_confidence"],
      media: ["gsv__Attach"],
      transfers: ["gsv__Transfer"],
    });
    for (const { name, inputSchema, idempotent, description } of definitions) {
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(inputSchema["type"]).toBe("object");
      expect(Object.keys(inputSchema["properties"] ?? {})).toEqual(expect.arrayContaining((inputSchema["required"] ?? []) as string[]));
      expect([idempotent, description.length > 20]).toEqual([true, true]);
    }
  });
  it("write, append, read, edit, list, delete", async () => {
    const agent = newAgent();
    expect(await run(agent, "gsv__WriteFile", { path: "MEMORY.md", content: "# Memory" })).toMatchObject({
      ok: true,
      result: { path: "MEMORY.md", size: 8 },
    });
    await run(agent, "gsv__WriteFile", { path: "MEMORY.md", content: "- tea\n", append: true });
    expect(textOf(await run(agent, "gsv__ReadFile", { path: "MEMORY.md" }))).toBe("# Memory\n- tea\n");
    expect(await run(agent, "gsv__EditFile", { path: "MEMORY.md", oldString: "tea", newString: "coffee" })).toMatchObject({
      ok: true,
      result: { replaced: 1 },
    });
    expect(await run(agent, "gsv__ListFiles", {})).toEqual({
      ok: true,
      result: { path: "", files: ["MEMORY.md"], directories: [], truncated: false },
    });
    expect(await run(agent, "gsv__DeleteFile", { path: "MEMORY.md" })).toEqual({ ok: true, result: { path: "MEMORY.md", deleted: true } });
    expect(reasonOf(await run(agent, "gsv__ReadFile", { path: "MEMORY.md" }))).toBe("path.not_found");
  });
  it("[P8] each change is made once, also when its call runs again", async () => {
    const agent = newAgent();
    for (let i = 0; i < 3; i++) await run(agent, "gsv__WriteFile", { path: "a.md", content: "x", append: true }, "ref/r1/0/w");
    expect(await textAt(`agents/${agent}/a.md`)).toBe("x");
    for (let i = 0; i < 3; i++)
      expect(reasonOf(await run(agent, "gsv__EditFile", { path: "a.md", oldString: "x", newString: "xx" }, "ref/r1/0/e"))).toBe("ok");
    expect(await textAt(`agents/${agent}/a.md`)).toBe("xx");
    for (let i = 0; i < 3; i++) expect(reasonOf(await run(agent, "gsv__DeleteFile", { path: "a.md" }, "ref/r1/0/d"))).toBe("ok");
  });
  it("invalid arguments are reported, and nothing is done", async () => {
    const agent = newAgent();
    for (const [name, args] of [
      ["WriteFile", {}],
      ["WriteFile", { path: "a.md" }],
      ["WriteFile", { path: 1, content: "x" }],
      ["WriteFile", { path: "a.md", content: {} }],
      ["WriteFile", { path: "a.md", content: "x", append: "maybe" }],
      ["ReadFile", { path: "a.md", offset: 0 }],
      ["ReadFile", { path: "a.md", limit: 1.5 }],
      ["SessionsList", { limit: 100_000 }],
      ["EditFile", { path: "a.md", oldString: "x" }],
      ["WriteFile", { $invalidArguments: "path=a" }],
      ["ReadFile", { path: "x".repeat(2000) }],
    ] as const) {
      const outcome = await run(agent, `gsv__${name}`, args);
      expect(reasonOf(outcome), `${name} ${JSON.stringify(args).slice(0, 60)}`).toBe("tool.bad_args");
    }
    expect(reasonOf(await run(agent, "gsv__Nope", {}))).toBe("tool.unknown");
    expect(reasonOf(await run(agent, "gsv__WriteFile", { path: "../x.md", content: "x" }))).toBe("path.invalid");
    expect(reasonOf(await run(agent, "gsv__WriteFile", JSON.parse('{"__proto__": {"path": "a.md", "content": "x"}}')))).toBe(
      "tool.bad_args",
    );
    expect((await env.STORAGE.list({ prefix: `agents/${agent}/` })).objects).toEqual([]);
  });
  it("[SK4][TH14] a file of a skill is sent only as it was approved", async () => {
    const agent = newAgent();
    const manual = "---\nname: x\ndescription: Does things.\n---\n# Body\n";
    const logo = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]);
    await env.STORAGE.put(`agents/${agent}/skills/x/SKILL.md`, manual);
    await env.STORAGE.put(`agents/${agent}/skills/x/logo.bin`, logo);
    const attach = (path: string, seen: GatewayPort["skillsSeen"]) => {
      const made = context(agent);
      const mediaKey = () => undefined;
      return tools.run(
        "gsv__Attach",
        { files: [path] },
        { ...made, mediaKey, gateway: { ...made.gateway, skillsSeen: seen } as GatewayPort },
      );
    };
    const approved = approvesAll();
    for (const path of ["skills/x/SKILL.md", "skills/x/logo.bin", "./skills/x/logo.bin"])
      expect(reasonOf(await attach(path, async () => [])), path).toBe("skill.changed");
    expect(reasonOf(await attach("SKILLS/x/logo.bin", async () => []))).toBe("path.not_found");
    expect((await env.STORAGE.list({ prefix: "media/" })).objects.filter(({ key }) => key.includes(agent))).toEqual([]);
    for (const path of ["skills/x/SKILL.md", "skills/x/logo.bin"])
      expect(reasonOf(await attach(path, approved.skillsSeen)), path).toBe("ok");
    const sent = (await env.STORAGE.list({ prefix: "media/" })).objects.filter(({ key }) => key.includes(agent));
    expect(sent.map(({ size }) => size).toSorted((a, b) => a - b)).toEqual([logo.length, manual.length]);
    // Changed after its approval.
    await env.STORAGE.put(`agents/${agent}/skills/x/logo.bin`, "other");
    expect(reasonOf(await attach("skills/x/logo.bin", approved.skillsSeen))).toBe("skill.changed");
  });
  it("edits report how often the text occurs", async () => {
    const agent = newAgent();
    await run(agent, "gsv__WriteFile", { path: "a.md", content: "one two one" });
    expect(reasonOf(await run(agent, "gsv__EditFile", { path: "a.md", oldString: "three", newString: "x" }))).toBe("edit.no_match");
    expect(await run(agent, "gsv__EditFile", { path: "a.md", oldString: "one", newString: "x" })).toMatchObject({
      ok: false,
      error: { reason: "edit.ambiguous", message: expect.stringContaining("2 times") },
    });
    expect(await run(agent, "gsv__EditFile", { path: "a.md", oldString: "one", newString: "$&", replaceAll: true })).toMatchObject({
      ok: true,
      result: { replaced: 2 },
    });
    expect(await textAt(`agents/${agent}/a.md`)).toBe("$& two $&");
    expect(reasonOf(await run(agent, "gsv__EditFile", { path: "none.md", oldString: "x", newString: "y" }))).toBe("path.not_found");
  });
  it("a long file is read in parts that join without gap or overlap", async () => {
    const agent = newAgent();
    const whole = `${Array.from({ length: 3000 }, (_, i) => `line ${i} ${"🌍".repeat(i % 40)}`).join("\n")}\n${"y".repeat(90_000)}\nend`;
    await env.STORAGE.put(`agents/${agent}/results/ref-r1-0-0.txt`, whole);
    let joined = "";
    let at: Record<string, unknown> = {};
    for (let i = 0; i < 20; i++) {
      const outcome = await run(agent, "gsv__ReadFile", { path: "results/ref-r1-0-0.txt", ...at });
      const [part = "", note] = outcome.ok ? (outcome.result as { content: { text: string }[] }).content.map(({ text }) => text) : [];
      expect(part.length).toBeLessThanOrEqual(40_000);
      joined += part;
      const next = /offset (\d+)(?: and column (\d+))?/.exec(note ?? "");
      if (!next) break;
      at = { offset: Number(next[1]), ...(next[2] === undefined ? {} : { column: Number(next[2]) }) };
    }
    expect(joined).toBe(whole);
    expect(textOf(await run(agent, "gsv__ReadFile", { path: "results/ref-r1-0-0.txt", offset: 2, limit: 1 }))).toMatch(
      /^line 1 🌍\n\n\[There is more/,
    );
  });
  it("the gateway's data is asked through its port", async () => {
    asked.length = 0;
    const agent = newAgent();
    expect(await run(agent, "gsv__ConfigGet", { path: "model" })).toEqual({ ok: true, result: { provider: "demo" } });
    expect(reasonOf(await run(agent, "gsv__ConfigGet", { path: "nope" }))).toBe("config.unknown_path");
    expect(await run(agent, "gsv__SessionsList", { limit: "5" })).toMatchObject({
      ok: true,
      result: { sessions: [{ sessionKey: "agent:main:main" }] },
    });
    expect(await run(agent, "gsv__LogsGet", { nodeId: "laptop", lines: 10 })).toEqual({ ok: true, result: { lines: ["a"] } });
    expect(asked).toEqual([
      ["configGet", "model"],
      ["configGet", "nope"],
      ["sessionsList", 5],
      ["nodeLogs", "laptop", 10],
    ]);
  });
  it("a gateway that fails is an error of the tool, not of the session", async () => {
    const failing = context(newAgent());
    const outcome = await tools.run(
      "gsv__ConfigGet",
      {},
      { ...failing, gateway: { ...gateway, configGet: () => Promise.reject(new Error("secret")) } as unknown as GatewayPort },
    );
    expect(outcome).toMatchObject({ ok: false, error: { reason: "internal" } });
    expect(JSON.stringify(outcome)).not.toContain("secret");
  });
});

describe("[S8] [X8] conversations that are not the owner's own", () => {
  it("[F14] can read the agent's definition, skills and their own results, nothing of the owner, and change nothing", async () => {
    const agent = newAgent();
    for (const path of [
      "SOUL.md",
      "USER.md",
      "TOOLS.md",
      "HEARTBEAT.md",
      "MEMORY.md",
      "memory/2026-01-01.md",
      "skills/mail/SKILL.md",
      "results/ref-r1-0-0.txt",
      "results/other-r1-0-0.txt",
      "notes.md",
    ])
      await env.STORAGE.put(`agents/${agent}/${path}`, "TEXT");
    const guest = (name: string, args: Record<string, unknown>) =>
      tools.run(`gsv__${name}`, args, context(agent, { isOwnersSession: false }));
    const may = async (path: string) => reasonOf(await guest("ReadFile", { path }));
    expect([await may("SOUL.md"), await may("skills/mail/SKILL.md"), await may("results/ref-r1-0-0.txt")]).toEqual(["ok", "ok", "ok"]);
    for (const path of [
      "USER.md",
      "TOOLS.md",
      "HEARTBEAT.md",
      "MEMORY.md",
      "./MEMORY.md",
      "memory/2026-01-01.md",
      "results/other-r1-0-0.txt",
      "notes.md",
      "sessions/x.jsonl.gz",
      "skills/../MEMORY.md",
      "%4dEMORY.md",
    ])
      expect(await may(path), path).toBe("auth.forbidden");
    expect(await guest("ListFiles", {})).toMatchObject({ ok: true, result: { files: ["SOUL.md"], directories: ["skills"] } });
    expect(reasonOf(await guest("ListFiles", { path: "memory" }))).toBe("auth.forbidden");
    for (const [name, args] of [
      ["WriteFile", { path: "SOUL.md", content: "x" }],
      ["EditFile", { path: "SOUL.md", oldString: "TEXT", newString: "x" }],
      ["DeleteFile", { path: "SOUL.md" }],
      ["WriteFile", { path: "skills/mail/SKILL.md", content: "x" }],
      ["WriteFile", { path: "notes.md", content: "x" }],
      ["DeleteFile", { path: "memory/2026-01-01.md" }],
      ["WriteFile", { path: "../SOUL.md", content: "x" }],
      ["Remember", { text: "x" }],
      ["ConfigGet", {}],
      ["SessionsList", {}],
      ["SessionSend", { sessionKey: "main", message: "x" }],
      ["LogsGet", {}],
      ["Channels", {}],
      ["Message", { to: "test/default/dm/anna", text: "x" }],
    ] as const) {
      expect(reasonOf(await guest(name, args)), name).toBe("auth.forbidden");
    }
    const open = tools.entries.filter(({ guests }) => guests !== "none").map(({ definition, guests }) => [definition.name, guests]);
    expect(open.toSorted()).toEqual([
      ["gsv__ListFiles", "always"],
      ["gsv__ReadFile", "always"],
      ["gsv__Search", "always"],
    ]);
    for (const path of ["SOUL.md", "skills/mail/SKILL.md", "notes.md", "memory/2026-01-01.md"])
      expect(await textAt(`agents/${agent}/${path}`)).toBe("TEXT");
  });
  it("[S10] not even the owner's own run forges or deletes a transcript or a result", async () => {
    const agent = newAgent();
    for (const path of ["sessions/s-1.jsonl.gz", "results/ref-r1-0-0.txt"]) {
      await env.STORAGE.put(`agents/${agent}/${path}`, "TEXT");
      for (const [name, args] of [
        ["WriteFile", { path, content: "forged" }],
        ["EditFile", { path, oldString: "TEXT", newString: "forged" }],
        ["DeleteFile", { path }],
      ] as const)
        expect(reasonOf(await run(agent, `gsv__${name}`, args)), `${name} ${path}`).toBe("workspace.protected");
      expect(await textAt(`agents/${agent}/${path}`)).toBe("TEXT");
    }
  });
});
