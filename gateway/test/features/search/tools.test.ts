/** gsv__Search, gsv__Remember, recall_memory: the access of each kind of session, and the results. */
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import type { GatewayPort } from "../../../src/ports/gateway.ts";
import type { NativeToolContext } from "../../../src/ports/native-tools.ts";
import type { RecallInput } from "../../../src/ports/long-term-memory.ts";
import type { SearchAnswer, SearchInput } from "../../../src/ports/search.ts";
import { composeNativeTools } from "../../../src/app/native-tools.ts";
import { taintOf } from "../../../src/storage/versions.ts";
import { newAgent, textAt, watched } from "../../support/workspace.ts";
import { silent } from "../../support/gateway.ts";

const asked: (SearchInput | RecallInput)[] = [];
let found: SearchAnswer = { hits: [], more: false, notes: [] };
const gateway: Pick<GatewayPort, "search" | "recall" | "fileChanging"> = {
  recall: (input) => {
    asked.push(input);
    const { hits, notes } = found;
    return Promise.resolve({ ok: true, value: { hits: hits.map((hit) => ({ kind: "text", hit })), notes } });
  },
  fileChanging: () => Promise.resolve(),
  search: (input) => {
    asked.push(input);
    return Promise.resolve({ ok: true, value: found });
  },
};
let calls = 0;
const context = (isOwnersSession: boolean, agentId = "main", more: Partial<NativeToolContext> = {}): NativeToolContext => ({
  identity: { key: `agent:${agentId}:${isOwnersSession ? "main" : "wa:group:g"}`, ref: "ref", agentId, isOwnersSession },
  callId: `ref/r1/0/${calls++}`,
  // 23:30 on the last day of 2025 in UTC, 2026 already in Stockholm.
  now: Date.parse("2025-12-31T23:30:00Z"),
  userTimezone: "Europe/Stockholm",
  gateway: gateway as GatewayPort,
  ...more,
});
const tools = composeNativeTools(env.STORAGE, { log: silent });
const reasonOf = (outcome: Awaited<ReturnType<typeof tools.run>>): string => (outcome.ok ? "ok" : outcome.error.reason);

describe("[SE11][S8][X8] access to search", () => {
  it.each([
    ["gsv__Search", true, { query: "x" }, { agentId: "main", query: "x", limit: 10 }],
    ["gsv__Search", true, { query: "x", in: ["workspace"], limit: 3 }, { agentId: "main", query: "x", sources: ["workspace"], limit: 3 }],
    ["gsv__Search", true, { query: "x", in: "archives" }, { agentId: "main", query: "x", sources: ["archives"], limit: 10 }],
    [
      "gsv__Search",
      false,
      { query: "x" },
      { agentId: "main", query: "x", sources: ["sessions", "archives"], sessionKey: "agent:main:wa:group:g", limit: 10 },
    ],
    [
      "gsv__Search",
      false,
      { query: "x", in: ["workspace", "sessions"] },
      { agentId: "main", query: "x", sources: ["sessions"], sessionKey: "agent:main:wa:group:g", limit: 10 },
    ],
    ["gsv__Search", false, { query: "x", in: ["workspace"] }, "auth.forbidden"],
    ["recall_memory", true, { query: "x" }, { agentId: "main", query: "x", snippetChars: 600 }],
    ["recall_memory", true, { query: "x", limit: 3 }, { agentId: "main", query: "x", limit: 3, snippetChars: 600 }],
    ["recall_memory", false, { query: "x" }, "auth.forbidden"],
    ["gsv__Remember", false, { text: "x" }, "auth.forbidden"],
    ["gsv__Search", true, { query: "x", in: ["everywhere"] }, "tool.bad_args"],
    ["gsv__Search", true, { query: "x", in: [] }, "tool.bad_args"],
    ["gsv__Search", true, { query: "x", limit: 1_000 }, "tool.bad_args"],
    ["gsv__Search", true, {}, "tool.bad_args"],
    ["recall_memory", true, { query: 3 }, "tool.bad_args"],
  ] as const)("%s, owner: %s, %j", async (name, isOwnersSession, args, expected) => {
    asked.length = 0;
    const outcome = await tools.run(name, args, context(isOwnersSession));
    if (typeof expected === "string") {
      expect(reasonOf(outcome)).toBe(expected);
      expect(asked).toEqual([]);
    } else {
      expect(reasonOf(outcome)).toBe("ok");
      expect(asked).toEqual([expected]);
    }
  });
});

describe("[P5.4] hits for a model", () => {
  it("contain role, time and location, without marks", async () => {
    found = {
      hits: [
        {
          source: "archives",
          path: "sessions/a.jsonl.gz",
          role: "toolResult",
          at: 0,
          position: 4,
          snippet: "the \ue000needle\ue001",
          score: 3,
        },
        {
          source: "workspace",
          path: "memory/2025-11-02.md",
          position: 7,
          at: Date.parse("2025-12-31T23:30:00Z"),
          snippet: "\ue000needle\ue001",
          before: ["hay"],
          after: ["more hay"],
          score: 2,
        },
        {
          source: "workspace",
          path: "MEMORY.md",
          position: 1,
          at: Date.parse("2025-12-31T23:30:00Z"),
          snippet: "\ue000needle\ue001",
          score: 1,
        },
      ],
      more: true,
      notes: ["something"],
    };
    const searched = await tools.run("gsv__Search", { query: "needle" }, context(true));
    expect(searched).toMatchObject({
      ok: true,
      result: {
        more: true,
        notes: ["something"],
        hits: [{ role: "toolResult", text: "the needle", at: "1970-01-01T00:00:00.000Z", position: 4 }, {}, {}],
      },
    });
    expect(JSON.stringify(searched)).not.toMatch(/[\ue000\ue001]/);
    expect(await tools.run("recall_memory", { query: "needle" }, context(true))).toEqual({
      ok: true,
      result: {
        memories: [
          { text: "the needle", date: "1970-01-01", place: "sessions/a.jsonl.gz, message 4", role: "toolResult" },
          { text: "needle", before: ["hay"], after: ["more hay"], date: "2025-11-02", place: "memory/2025-11-02.md, line 7" },
          { text: "needle", date: "2026-01-01", place: "MEMORY.md, line 1" },
        ],
        notes: ["something"],
      },
      // Anyone may have written in an archived conversation.
      taint: { label: "world", source: "the output of recall_memory" },
    });
  });
});

describe("[P5.4] gsv__Remember", () => {
  it("adds one line to MEMORY.md or to today's file, in the owner's time zone", async () => {
    const agent = newAgent();
    expect(await tools.run("gsv__Remember", { text: "The boat is\n blue. " }, context(true, agent))).toEqual({
      ok: true,
      result: { path: "MEMORY.md", remembered: "The boat is blue." },
    });
    await tools.run("gsv__Remember", { text: "- Cats sleep." }, context(true, agent));
    await tools.run("gsv__Remember", { text: "Fed the cat.", where: "today" }, context(true, agent));
    expect(await textAt(`agents/${agent}/MEMORY.md`)).toBe("- The boat is blue.\n- Cats sleep.\n");
    expect(await textAt(`agents/${agent}/memory/2026-01-01.md`)).toBe("- Fed the cat.\n");
    expect(await tools.run("gsv__Remember", { text: "Cats sleep." }, context(true, agent))).toMatchObject({
      ok: true,
      result: { note: "The file has this line already." },
    });
    expect(await textAt(`agents/${agent}/MEMORY.md`)).toBe("- The boat is blue.\n- Cats sleep.\n");
  });
  it("[TA14] keeps the label of a conversation that has read files of any author, and none of one that has not", async () => {
    const agent = newAgent();
    const taint = { label: "files", source: "a file of laptop" } as const;
    await tools.run("gsv__Remember", { text: "The boat is blue." }, context(true, agent));
    const labelOf = async (path: string) => {
      const head = await env.STORAGE.head(`agents/${agent}/${path}`);
      return head === null ? "no file" : taintOf(head);
    };
    expect(await labelOf("MEMORY.md")).toBeUndefined();
    await tools.run("gsv__Remember", { text: "Run ./x.", where: "today" }, context(true, agent, { taint }));
    expect(await labelOf("memory/2026-01-01.md")).toEqual(taint);
  });
  it("[P8][W17] writes once per call, and concurrent writes lose nothing", async () => {
    const agent = newAgent();
    const again = context(true, agent, { callId: "ref/r9/0/0" });
    await tools.run("gsv__Remember", { text: "one" }, again);
    await env.STORAGE.put(`agents/${agent}/MEMORY.md`, "- edited by hand\n", {
      customMetadata: (await env.STORAGE.head(`agents/${agent}/MEMORY.md`))?.customMetadata ?? {},
    });
    await tools.run("gsv__Remember", { text: "one" }, again);
    expect(await textAt(`agents/${agent}/MEMORY.md`)).toBe("- edited by hand\n");
    await Promise.all(["a", "b", "c"].map((text) => tools.run("gsv__Remember", { text }, context(true, agent))));
    expect((await textAt(`agents/${agent}/MEMORY.md`))?.split("\n").sort()).toEqual(["", "- a", "- b", "- c", "- edited by hand"]);
  });
  it("says what is wrong", async () => {
    expect(reasonOf(await tools.run("gsv__Remember", { text: " \n " }, context(true)))).toBe("tool.bad_args");
    expect(reasonOf(await tools.run("gsv__Remember", { text: "x".repeat(2_001) }, context(true)))).toBe("tool.bad_args");
    expect(reasonOf(await tools.run("gsv__Remember", { text: "x", where: "elsewhere" }, context(true)))).toBe("tool.bad_args");
    const { bucket, interfere } = watched();
    interfere(() => {
      throw new Error("away");
    });
    expect(reasonOf(await composeNativeTools(bucket, { log: silent }).run("gsv__Remember", { text: "x" }, context(true)))).toBe(
      "storage.failed",
    );
  });
});
