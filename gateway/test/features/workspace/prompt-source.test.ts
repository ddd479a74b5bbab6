import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { asAgentId } from "../../../../protocol/gen/types.ts";
import type { PromptInput } from "../../../src/ports/prompt.ts";
import { isMeaningful } from "../../../src/prompt/heartbeat.ts";
import { MAX_AGE_MS } from "../../../src/storage/workspace/cache.ts";
import { DEFAULT_FILES } from "../../../src/features/agents/default-files.ts";
import { composePromptSource } from "../../../src/app/prompt-source.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { createMemoryFiles } from "../../../src/features/workspace/memory.ts";
import { createWorkspaceStore } from "../../../src/storage/workspace/store.ts";
import { config, approvesAll, newAgent, reason, textAt, value, watched } from "../../support/workspace.ts";

const NOON = Date.UTC(2026, 1, 19, 12);
const input = (agentId: string, now = NOON, more: Partial<PromptInput> = {}): PromptInput => ({
  identity: { key: `agent:${agentId}:main`, ref: "r", agentId, isOwnersSession: true },
  config,
  agent: { id: asAgentId(agentId) },
  nodes: [],
  tools: [],
  model: { provider: "demo", id: "demo" },
  systemPromptOverride: undefined,
  now,
  ...more,
});
const names = async (agent: string): Promise<string[]> =>
  (await env.STORAGE.list({ prefix: `agents/${agent}/` })).objects.map(({ key }) => key.slice(`agents/${agent}/`.length)).sort();
/** An existing agent with one file. */
async function settled(): Promise<string> {
  const agent = newAgent();
  await env.STORAGE.put(`agents/${agent}/SOUL.md`, "SOUL-ONE");
  return agent;
}

describe("a new agent", () => {
  it("gets its files once, and its first prompt is the first meeting", async () => {
    const agent = newAgent();
    const { bucket, taken } = watched();
    const source = composePromptSource(bucket, approvesAll());
    const prompt = value(await source.assemble(input(agent)));
    expect(prompt.sections.map(({ id }) => id)).toEqual(["base", "bootstrap", "soul", "identity", "user", "runtime"]);
    expect(await names(agent)).toEqual([...DEFAULT_FILES.map(({ name }) => name), "workspace.json"].sort());
    taken();
    value(await source.assemble(input(agent, NOON + MAX_AGE_MS)));
    expect(taken()).not.toContain("put");
  });
  it("the default HEARTBEAT.md counts as empty", () => {
    expect(isMeaningful(DEFAULT_FILES.find(({ name }) => name === "HEARTBEAT.md")?.text ?? "x")).toBe(false);
    expect(DEFAULT_FILES.at(-1)?.name).toBe("BOOTSTRAP.md");
  });
  it("[Q1] a task, a scheduled job and an agent of a pack have no first meeting", async () => {
    const agent = newAgent();
    const source = composePromptSource(env.STORAGE, approvesAll());
    const sections = async (key: string, more: Parameters<typeof input>[2] = {}) => {
      const asked = input(agent, NOON, more);
      const prompt = value(await source.assemble({ ...asked, identity: { ...asked.identity, key } }));
      return prompt.sections.map(({ id }) => id);
    };
    const met = (key: string) => sections(`agent:${agent}:${key}`);
    expect(await met("main")).toContain("bootstrap");
    for (const key of ["dm:task", "web:dm:task"]) expect(await met(key), key).toContain("bootstrap");
    for (const key of ["task:0f3a", "cron:weekly"]) expect(await met(key), key).not.toContain("bootstrap");
    const definition = { metadata: { id: asAgentId(agent), name: agent }, core_context: { system_prompt: "ROLE" } };
    const defined = { definition, coreSha256: "x" };
    const main = `agent:${agent}:main`;
    expect(await sections(main, { defined })).toContain("bootstrap");
    expect(await sections(main, { defined: { ...defined, isOfPack: true } })).not.toContain("bootstrap");
  });
  it("[AD4] an agent with a definition gets no default files", async () => {
    const agent = newAgent();
    const definition = { metadata: { id: asAgentId(agent), name: agent }, core_context: { system_prompt: "ROLE" } };
    const source = composePromptSource(env.STORAGE, approvesAll());
    const defined = { definition, coreSha256: "x", isOfPack: true } as const;
    const prompt = value(await source.assemble(input(agent, NOON, { defined })));
    expect(prompt.sections.map(({ id }) => id)).toEqual(["base", "core", "skills", "runtime"]);
    expect(await names(agent)).toEqual([]);
  });
  it("a deleted file does not come back", async () => {
    const agent = newAgent();
    value(await composePromptSource(env.STORAGE, approvesAll()).assemble(input(agent)));
    for (const { name } of DEFAULT_FILES) await env.STORAGE.delete(`agents/${agent}/${name}`);
    // A new bucket object represents an isolate that has not seen the agent.
    const prompt = value(await composePromptSource(watched().bucket, approvesAll()).assemble(input(agent, NOON + 1)));
    expect(prompt.sections.map(({ id }) => id)).toEqual(["base", "skills", "runtime"]);
    expect(await names(agent)).toEqual(["workspace.json"]);
  });
  it("existing files are never overwritten, and a filled folder gets none", async () => {
    const agent = await settled();
    value(await composePromptSource(env.STORAGE, approvesAll()).assemble(input(agent)));
    expect(await names(agent)).toEqual(["SOUL.md"]);
  });
  it.each([["hi.txt"], ["notes/a.md"], ["USER.md"], ["TOOLS.md"]])(
    "[AG5] gets its files although %s is there already, which stays as it is",
    async (name) => {
      const agent = newAgent();
      await env.STORAGE.put(`agents/${agent}/${name}`, "mine");
      const prompt = value(await composePromptSource(env.STORAGE, approvesAll()).assemble(input(agent)));
      expect(prompt.sections.map(({ id }) => id)).toContain("bootstrap");
      expect(await names(agent)).toEqual([...new Set([...DEFAULT_FILES.map(({ name }) => name), "workspace.json", name])].sort());
      expect(await textAt(`agents/${agent}/${name}`)).toBe("mine");
      await env.STORAGE.delete(`agents/${agent}/BOOTSTRAP.md`);
      value(await composePromptSource(watched().bucket, approvesAll()).assemble(input(agent, NOON + 1)));
      expect(await textAt(`agents/${agent}/BOOTSTRAP.md`)).toBeUndefined();
    },
  );
  it("[AG5] an agent that has tasks for its heartbeat already gets its files without a first meeting, and sees the tasks", async () => {
    const agent = newAgent();
    await env.STORAGE.put(`agents/${agent}/HEARTBEAT.md`, "- look at the mail");
    const prompt = value(await composePromptSource(env.STORAGE, approvesAll()).assemble(input(agent)));
    expect(prompt.sections.map(({ id }) => id)).toEqual(expect.arrayContaining(["soul", "identity", "heartbeat"]));
    expect(await names(agent)).toEqual(
      [...DEFAULT_FILES.map(({ name }) => name), "workspace.json"].filter((name) => name !== "BOOTSTRAP.md").sort(),
    );
  });
  it.each([["SOUL.md"], ["IDENTITY.md"], ["AGENTS.md"], ["MEMORY.md"], ["memory/2026-02-01.md"], ["sessions/s-1.jsonl.gz"]])(
    "[AG5] a folder with %s was filled by a person and gets none",
    async (name) => {
      const agent = newAgent();
      await env.STORAGE.put(`agents/${agent}/${name}`, "mine");
      value(await composePromptSource(env.STORAGE, approvesAll()).assemble(input(agent)));
      expect(await names(agent)).toEqual([name]);
    },
  );
  it("[AG5] files that another instance has just made are not made again", async () => {
    const agent = newAgent();
    await env.STORAGE.put(`agents/${agent}/hi.txt`, "mine");
    const { bucket, interfere } = watched();
    let isFirst = true;
    interfere(async (operation) => {
      if (operation !== "put" || !isFirst) return;
      isFirst = false;
      value(await composePromptSource(watched().bucket, approvesAll()).assemble(input(agent)));
      await env.STORAGE.delete(`agents/${agent}/BOOTSTRAP.md`);
    }, "before");
    const prompt = value(await composePromptSource(bucket, approvesAll()).assemble(input(agent)));
    expect(prompt.sections.map(({ id }) => id)).not.toContain("bootstrap");
    expect(await textAt(`agents/${agent}/BOOTSTRAP.md`)).toBeUndefined();
  });
  it("[P12] a crash at any put is completed the next time", async () => {
    for (let crashAt = 0; crashAt < DEFAULT_FILES.length + 2; crashAt++) {
      for (const when of ["before", "after"] as const) {
        const agent = newAgent();
        const { bucket, interfere } = watched();
        let puts = 0;
        interfere((operation) => {
          if (operation === "put" && puts++ >= crashAt) throw new Error("killed");
        }, when);
        const first = await composePromptSource(bucket, approvesAll()).assemble(input(agent));
        // A person writes a file meanwhile: it must stay.
        const own = (await textAt(`agents/${agent}/USER.md`)) === undefined;
        if (own) await env.STORAGE.put(`agents/${agent}/USER.md`, "mine");
        const again = watched();
        const prompt = value(await composePromptSource(again.bucket, approvesAll()).assemble(input(agent)));
        if (own) expect(await textAt(`agents/${agent}/USER.md`)).toBe("mine");
        const marked = (await textAt(`agents/${agent}/workspace.json`)) !== undefined;
        if (marked) {
          expect((await names(agent)).length, `crash at ${crashAt} ${when}`).toBe(DEFAULT_FILES.length + 1);
          expect(prompt.sections[1]?.id).toBe("bootstrap");
          expect(await textAt(`agents/${agent}/workspace.json`)).toContain('"made"');
        }
        expect(["ok", "storage.failed"]).toContain(reason(first));
      }
    }
  });
  it("two sessions that create the files at once agree", async () => {
    const agent = newAgent();
    const prompts = await Promise.all(
      [watched(), watched(), watched()].map(({ bucket }) => composePromptSource(bucket, approvesAll()).assemble(input(agent))),
    );
    expect(prompts.map(reason)).toEqual(["ok", "ok", "ok"]);
    expect((await names(agent)).length).toBe(DEFAULT_FILES.length + 1);
  });
});

describe("the prompt's files", () => {
  it("a fresh cache needs no bucket operation", async () => {
    const agent = await settled();
    const { bucket, taken } = watched();
    const source = composePromptSource(bucket, approvesAll());
    const first = value(await source.assemble(input(agent)));
    expect(first.system).toContain("SOUL-ONE");
    taken();
    for (let i = 0; i < 10; i++) expect(value(await source.assemble(input(agent, NOON + i * 1000))).system).toBe(first.system);
    expect(taken()).toEqual([]);
  });
  it("an older cache needs one list, the two daily files and two lists of skills, and reads only changed files", async () => {
    const agent = await settled();
    await env.STORAGE.put(`agents/${agent}/USER.md`, "USER-ONE");
    await env.STORAGE.put(`agents/${agent}/memory/2026-02-19.md`, "TODAY-ONE");
    const { bucket, taken } = watched();
    const source = composePromptSource(bucket, approvesAll());
    value(await source.assemble(input(agent)));
    await env.STORAGE.put(`agents/${agent}/SOUL.md`, "SOUL-TWO");
    taken();
    const prompt = value(await source.assemble(input(agent, NOON + MAX_AGE_MS)));
    expect(prompt.system).toContain("SOUL-TWO");
    expect(prompt.system).toContain("USER-ONE");
    expect(prompt.system).toContain("TODAY-ONE");
    expect(taken()).toEqual(["get", "get", "get", "list", "list", "list"]);
  });
  it("our own write is seen by the next message", async () => {
    const agent = await settled();
    const { bucket } = watched();
    const source = composePromptSource(bucket, approvesAll());
    const store = createWorkspaceStore(bucket);
    value(await source.assemble(input(agent)));
    value(await store.update(agent, "MEMORY.md", () => ({ ok: true, value: "MEMORY-ONE" }), "c"));
    expect(value(await source.assemble(input(agent, NOON + 1))).system).toContain("MEMORY-ONE");
    value(await store.write(agent, "memory/2026-02-18.md", "YESTERDAY-ONE"));
    expect(value(await source.assemble(input(agent, NOON + 2))).system).toContain("YESTERDAY-ONE");
    value(await store.delete(agent, "SOUL.md"));
    expect(value(await source.assemble(input(agent, NOON + 3))).system).not.toContain("SOUL-ONE");
  });
  it("a write during a load is not missed", async () => {
    const agent = await settled();
    const { bucket, interfere } = watched();
    const source = composePromptSource(bucket, approvesAll());
    const store = createWorkspaceStore(bucket);
    let wrote = false;
    interfere(async (operation) => {
      if (operation !== "list" || wrote) return;
      wrote = true;
      await store.write(agent, "SOUL.md", "SOUL-TWO");
    }, "after");
    value(await source.assemble(input(agent)));
    expect(value(await source.assemble(input(agent, NOON + 1))).system).toContain("SOUL-TWO");
  });
  it("without BOOTSTRAP.md the normal order applies", async () => {
    const agent = newAgent();
    const { bucket } = watched();
    const source = composePromptSource(bucket, approvesAll());
    value(await source.assemble(input(agent)));
    value(await createWorkspaceStore(bucket).delete(agent, "BOOTSTRAP.md"));
    expect(value(await source.assemble(input(agent, NOON + 1))).sections.map(({ id }) => id)).toEqual([
      "base",
      "soul",
      "identity",
      "user",
      "agents",
      "memory",
      "tools",
      "skills",
      "runtime",
    ]);
  });
  it("at midnight today's file becomes yesterday's", async () => {
    const agent = await settled();
    await env.STORAGE.put(`agents/${agent}/memory/2026-02-19.md`, "NINETEENTH");
    const source = composePromptSource(watched().bucket, approvesAll());
    const midnight = Date.UTC(2026, 1, 20);
    expect(value(await source.assemble(input(agent, midnight - 1))).sections.find(({ id }) => id === "today")?.text).toContain(
      "NINETEENTH",
    );
    const next = value(await source.assemble(input(agent, midnight + 1)));
    expect(next.sections.find(({ id }) => id === "yesterday")?.text).toContain("NINETEENTH");
    expect(next.sections.find(({ id }) => id === "today")).toBeUndefined();
  });
  it("[F49] a full day continues with its last numbered file, and a day that is not full costs no operation more", async () => {
    const agent = await settled();
    const memory = createMemoryFiles(env.STORAGE);
    const day = "2026-02-19";
    await env.STORAGE.put(`agents/${agent}/memory/${day}.md`, `FIRST\n${"x".repeat(LIMITS.workspaceFileBytes - 20)}`);
    expect(value(await memory.append(agent, day, "THE-SECOND-FILE ".repeat(3), "k1")).path).toBe(`memory/${day}-2.md`);
    const { bucket, taken } = watched();
    const source = composePromptSource(bucket, approvesAll());
    const today = async (now: number): Promise<string> =>
      value(await source.assemble(input(agent, now))).sections.find(({ id }) => id === "today")?.text ?? "";
    const first = await today(NOON);
    expect(first).toMatch(/FIRST\nx/);
    expect(first).toContain("THE-SECOND-FILE");
    expect(first.length).toBeLessThan(LIMITS.injectedFileBytes + 1024);
    // Nothing was changed: one list more, and no read more. A change of the second file alone is seen.
    taken();
    expect(await today(NOON + MAX_AGE_MS)).toBe(first);
    expect(taken()).toEqual(["get", "get", "list", "list", "list", "list"]);
    value(await memory.append(agent, day, "LATER-STILL ".repeat(3), "k2"));
    expect(await today(NOON + 2 * MAX_AGE_MS)).toContain("LATER-STILL");
    // Of several the last one is shown; a note of a person is none of them.
    await env.STORAGE.put(`agents/${agent}/memory/${day}-3.md`, "THE-THIRD-FILE");
    await env.STORAGE.put(`agents/${agent}/memory/${day}-trip.md`, "A-TRIP");
    const third = await today(NOON + 3 * MAX_AGE_MS);
    expect([third.includes("THE-THIRD-FILE"), third.includes("THE-SECOND-FILE"), third.includes("A-TRIP")]).toEqual([true, false, false]);
    // Tomorrow it is yesterday's.
    const tomorrow = value(await source.assemble(input(agent, NOON + 86_400_000)));
    expect(tomorrow.sections.find(({ id }) => id === "yesterday")?.text).toContain("THE-THIRD-FILE");
  });
  it("with a failing bucket the earlier files are used, or an error is returned", async () => {
    const agent = await settled();
    const { bucket, interfere } = watched();
    const source = composePromptSource(bucket, approvesAll());
    interfere(() => {
      throw new Error("R2 down");
    });
    expect(reason(await source.assemble(input(agent)))).toBe("storage.failed");
    interfere(undefined);
    const before = value(await source.assemble(input(agent)));
    interfere(() => {
      throw new Error("R2 down");
    });
    expect(value(await source.assemble(input(agent, NOON + MAX_AGE_MS))).system).toBe(before.system);
  });
  it("only the shown part of a huge file is read, and bytes that are not text do no harm", async () => {
    const agent = await settled();
    await env.STORAGE.put(`agents/${agent}/AGENTS.md`, "ü".repeat(1_000_000));
    await env.STORAGE.put(`agents/${agent}/TOOLS.md`, new Uint8Array([0x68, 0x69, 0xff, 0xfe]));
    await env.STORAGE.put(`agents/${agent}/IDENTITY.md`, "");
    const prompt = value(await composePromptSource(watched().bucket, approvesAll()).assemble(input(agent)));
    expect(prompt.sections.find(({ id }) => id === "agents")?.text).toMatch(/ü\n\n\[AGENTS\.md is cut here: 65536 of 2000000 bytes/);
    expect(prompt.sections.find(({ id }) => id === "tools")?.text).toMatch(/^hi\ufffd/);
  });
});
