import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { createMemoryFiles } from "../../../src/features/workspace/memory.ts";
import { createWorkspaceStore } from "../../../src/storage/workspace/store.ts";
import { newAgent, textAt, value } from "../../support/workspace.ts";

const memory = createMemoryFiles(env.STORAGE);
const store = createWorkspaceStore(env.STORAGE);
const section = (fact: string): string => `### Extracted from context compaction (14:30)\n- ${fact}\n`;
const DAY = "2026-03-01";

describe("daily memory files", () => {
  it("[W17] agents/{agentId}/memory/{YYYY-MM-DD}.md: sections are added at the end, what is there stays as it is", async () => {
    const agent = newAgent();
    await store.write(agent, `memory/${DAY}.md`, "# My day\nwritten by hand");
    expect(value(await memory.append(agent, DAY, section("tea"), "s/memory/1"))).toEqual({ path: `memory/${DAY}.md` });
    value(await memory.append(agent, DAY, section("milk"), "s/memory/2"));
    expect(await textAt(`agents/${agent}/memory/${DAY}.md`)).toBe(
      `# My day\nwritten by hand\n\n${section("tea").trim()}\n\n${section("milk")}`,
    );
  });
  it("[K27] a text is appended once per key, also when it is repeated after other writes", async () => {
    const agent = newAgent();
    for (let n = 0; n < 3; n++) value(await memory.append(agent, DAY, section("tea"), "s/memory/1"));
    for (let n = 0; n < 24; n++) value(await memory.append(agent, DAY, section(`other ${n}.`), `s/memory/x${n}`));
    value(await memory.append(agent, DAY, section("tea"), "s/memory/1"));
    expect((await textAt(`agents/${agent}/memory/${DAY}.md`))?.split("- tea\n")).toHaveLength(2);
  });
  it("[W17] sessions that write at the same time lose nothing: a conflict is reported, and a retry succeeds", async () => {
    const agent = newAgent();
    const insist = async (n: number): Promise<void> => {
      for (;;) {
        const put = await memory.append(agent, DAY, section(`fact ${n}.`), `s${n}/memory/1`);
        if (put.ok) return;
        expect(put.error.reason).toBe("workspace.conflict");
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, n) => insist(n)));
    const text = await textAt(`agents/${agent}/memory/${DAY}.md`);
    for (let n = 0; n < 12; n++) expect(text?.split(`- fact ${n}.\n`)).toHaveLength(2);
  });
  it("[P17] a file that is full, or no text any more, gets a neighbour", async () => {
    const agent = newAgent();
    await store.write(agent, `memory/${DAY}.md`, "x".repeat(LIMITS.workspaceFileBytes));
    await env.STORAGE.put(`agents/${agent}/memory/${DAY}-2.md`, new Uint8Array([0xff, 0xfe, 0]));
    expect(value(await memory.append(agent, DAY, section("tea"), "s/memory/1"))).toEqual({ path: `memory/${DAY}-3.md` });
    expect(await textAt(`agents/${agent}/memory/${DAY}-3.md`)).toBe(section("tea"));
  });
});
