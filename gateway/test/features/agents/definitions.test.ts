/** Definitions in the real gateway: what comes into force, what does not, and what runs get. */
import { env } from "cloudflare:workers";
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AgentsGetResult, AgentsListResult, AgentsValidateResult } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, gateway, type Peer, port, seed, token } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const TEXT = `metadata: { id: sorter, name: sorter, description: Sorts orders }
core_context: { system_prompt: { file: ./sorter.prompt.md }, hard_constraints: [Never promise a refund.] }
characteristics: { tone: warm }
tools: { allowed: [gsv__ReadFile] }
`;
const FILES = [{ path: "./sorter.prompt.md", content: "You sort orders." }];
let admin: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const shown = (agentId = "sorter") => admin.ok<AgentsGetResult>("agents.get", { agentId });
const definedOf = async (agentId = "sorter") => (await port().runContext(`agent:${agentId}:cli:dm:main`, undefined))?.defined;
const define = (text = TEXT, files = FILES) => admin.ok<{ created: boolean }>("agents.define", { text, files });

describe("[AD4] a definition", () => {
  test("comes into force with the agent: no default files, and runs get it at once, also after a restart", async () => {
    const before = (await port().runContext("agent:sorter:cli:dm:main", undefined))?.version;
    expect(await define()).toMatchObject({ created: true });
    expect((await admin.ok<AgentsListResult>("agents.list")).agents.map(({ agentId, description }) => [agentId, description])).toEqual([
      ["main", undefined],
      ["sorter", "Sorts orders"],
    ]);
    expect((await env.STORAGE.list({ prefix: "agents/sorter/" })).objects.map(({ key }) => key).sort()).toEqual([
      "agents/sorter/agent.yaml",
      "agents/sorter/sorter.prompt.md",
    ]);
    const context = await port().runContext("agent:sorter:cli:dm:main", before);
    expect(context?.defined?.definition.core_context.system_prompt).toBe("You sort orders.");
    await evict(gateway());
    expect(await definedOf()).toEqual(context?.defined);
    expect(await definedOf("main"), "of its own agent alone").toBeUndefined();
    expect(await define(), "again, nothing more").toMatchObject({ created: false });
  });
  test("[AD1] with mistakes changes nothing, and names each of them", async () => {
    await define();
    const wrong = TEXT.replace("tone: warm", "tone: 7").replace("tools: {", "tool: {");
    const checked = await admin.ok<AgentsValidateResult>("agents.validate", { text: wrong, files: FILES });
    expect(checked.problems.map(({ path, line }) => [path, line])).toEqual([
      ["tool", 4],
      ["characteristics.tone", 3],
    ]);
    expect(checked.files, "also of a text with mistakes").toEqual(["sorter.prompt.md"]);
    const refused = await admin.refused("agents.define", { text: wrong, files: FILES });
    expect(refused.reason).toBe("agent.definition_invalid");
    expect(refused.message).toMatch(
      /has 2 mistakes.*line 4, tool: There is no such key\. Did you mean `tools`\?.*line 3, characteristics\.tone/,
    );
    expect((await definedOf())?.definition.characteristics).toEqual({ tone: "warm" });
    expect(await (await env.STORAGE.get("agents/sorter/agent.yaml"))?.text()).toBe(TEXT);
  });
  test("[AD1] [P10] a mistake without a place is named without one", async () => {
    for (const [text, said] of [
      ["null", "The file must be keys and values, such as `metadata:`."],
      [`a: ${"[".repeat(12)}${"]".repeat(12)}`, "The file is nested deeper than 8."],
    ] as const)
      expect((await admin.refused("agents.define", { text })).message).toBe(`agent.yaml has a mistake, so it was not applied. ${said}`);
  });
  test("[AD3] with the name of another one is refused", async () => {
    await define();
    const other = await admin.refused("agents.define", { text: TEXT.replace("id: sorter", "id: other"), files: FILES });
    expect(other.message).toContain("The agent sorter has this name already");
    expect((await admin.ok<AgentsListResult>("agents.list")).agents).toHaveLength(2);
  });
  test("[AD3] with the id of an agent without a definition as its name is refused: that agent's tasks would go to it", async () => {
    const named = TEXT.replace("name: sorter", "name: main");
    const other = await admin.refused("agents.define", { text: named, files: FILES });
    expect(other.message).toContain("The agent main has this name already");
    expect(
      await admin.ok<{ created: boolean }>("agents.define", { text: named.replace("id: sorter", "id: main"), files: FILES }),
    ).toMatchObject({
      created: false,
    });
  });
  test("whose files were changed by other means has its old text in force, and the files are named", async () => {
    await define();
    await env.STORAGE.put("agents/sorter/agent.yaml", "metadata: {}");
    await env.STORAGE.delete("agents/sorter/sorter.prompt.md");
    await evict(gateway());
    expect(await shown()).toMatchObject({ definitionText: TEXT, changedFiles: ["agent.yaml", "sorter.prompt.md"] });
    expect((await definedOf())?.definition.core_context.system_prompt).toBe("You sort orders.");
    expect((await admin.refused("agents.define", { text: TEXT })).message).toContain(
      "There is no file `sorter.prompt.md` beside agent.yaml",
    );
  });
  test("a file of the folder that was never defined is named, and is not in force", async () => {
    await admin.ok("agents.create", { agentId: "sorter" });
    expect(await shown()).not.toHaveProperty("notInForce");
    await env.STORAGE.put("agents/sorter/agent.yaml", TEXT);
    expect(await shown()).toMatchObject({ notInForce: { path: "agent.yaml", sizeBytes: TEXT.length } });
    expect(await definedOf()).toBeUndefined();
    await admin.ok("workspace.write", { agentId: "sorter", path: "sorter.prompt.md", content: "You sort orders." });
    await define(TEXT, []);
    expect(await shown()).not.toHaveProperty("notInForce");
    await admin.ok("agents.undefine", { agentId: "sorter" });
    expect(await shown(), "the mark of the deletion is no file").not.toHaveProperty("notInForce");
  });
  test("[AD2] takes a file from the agent's folder, but not one that a conversation with text of others wrote", async () => {
    await define();
    expect(await admin.ok("agents.define", { text: TEXT.replace("warm", "cool") }), "the file of the folder").toMatchObject({
      created: false,
    });
    await env.STORAGE.put("agents/sorter/sorter.prompt.md", "Obey.", { customMetadata: { taint: "world", taintSource: "a page" } });
    const refused = await admin.refused("agents.define", { text: TEXT });
    expect(refused.message).toContain("had read text of others");
    expect((await definedOf())?.definition.core_context.system_prompt).toBe("You sort orders.");
  });
  test("needs an admin", async () => {
    const operator = await client((await token("client")).token);
    expect((await operator.refused("agents.define", { text: TEXT, files: FILES })).reason).toBe("auth.forbidden");
    expect((await operator.ok<AgentsValidateResult>("agents.validate", { text: TEXT, files: FILES })).problems).toEqual([]);
    expect(await definedOf()).toBeUndefined();
  });
});

test("[AD5] agent.yaml is written in no other way", async () => {
  await define();
  for (const path of ["agent.yaml", "./agent.yaml", "AGENT.yaml"]) {
    const refused = await admin.refused("workspace.write", { agentId: "sorter", path, content: "x" });
    expect(refused.reason, path).toBe("workspace.protected");
    expect(refused.hint).toContain("gsv agent edit sorter");
  }
  expect((await admin.refused("workspace.delete", { agentId: "sorter", path: "agent.yaml" })).reason).toBe("workspace.protected");
  expect(await (await env.STORAGE.get("agents/sorter/agent.yaml"))?.text()).toBe(TEXT);
});

describe("[AD11] out of force", () => {
  test("agents.undefine removes definition and file, once; the agent and its other files stay", async () => {
    await define();
    expect(await admin.ok("agents.undefine", { agentId: "sorter" })).toEqual({ ok: true, removed: true });
    expect(await admin.ok("agents.undefine", { agentId: "sorter" })).toEqual({ ok: true, removed: false });
    expect(await definedOf()).toBeUndefined();
    expect((await shown()).definition).toBeUndefined();
    expect(await env.STORAGE.head("agents/sorter/sorter.prompt.md")).not.toBeNull();
    expect((await admin.refused("agents.undefine", { agentId: "none" })).reason).toBe("agent.unknown");
  });
  test("agents.delete takes it out of force, so that an agent of the same name has the defaults", async () => {
    await define();
    await admin.ok("agents.delete", { agentId: "sorter" });
    await admin.ok("agents.create", { agentId: "sorter" });
    expect(await definedOf()).toBeUndefined();
  });
});
