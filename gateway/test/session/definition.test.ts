/** A definition in a session: which tools its runs may name, which need the owner's word, and what its prompt must have. */
import { afterEach, describe, expect, it, vi } from "vitest";
import type { DefinedAgent } from "../../src/ports/agents.ts";
import { asAgentId, type AgentDefinition } from "../../../protocol/gen/types.ts";
import { definitionSections } from "../../src/prompt/definition.ts";
import { sha256Of } from "../../src/storage/skills/folder.ts";
import { newSession, onNode, says, Stage, until } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});
const bash = (command: string) => ({ name: "lap__Bash", arguments: { command } });
async function defined(more: Partial<AgentDefinition>): Promise<DefinedAgent> {
  const definition: AgentDefinition = {
    metadata: { id: asAgentId("main"), name: "main" },
    core_context: { system_prompt: "You sort." },
    ...more,
  };
  return { definition, coreSha256: await sha256Of(new TextEncoder().encode(definitionSections(definition).core)) };
}
const errorOf = (stage: Stage): string =>
  stage.news.flatMap(({ payload }) => ("state" in payload && payload.state === "error" ? [payload.error] : [])).join();
const stageWith = async (more: Partial<AgentDefinition>): Promise<Stage> => {
  const stage = new Stage().open();
  stage.tools = [onNode("lap", "Bash"), onNode("lap", "Read")];
  stage.defined = await defined(more);
  return stage;
};

describe("[AD6] tools.allowed", () => {
  it("is all that the model is offered", async () => {
    const stage = await stageWith({ tools: { allowed: ["lap__R*"] } });
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const call = await stage.call(0);
    expect(call.request.tools.map(({ name }) => name)).toEqual(["lap__Read"]);
    call.answer(says("ok"));
    await stage.ended("run-a");
  });
  it("ends the run at a name outside: no call of that answer is made, and the audit has the denial", async () => {
    const stage = await stageWith({ tools: { allowed: ["lap__Read"] } });
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await stage.call(0)).answer(says("Now I delete.", [{ name: "lap__Read", arguments: { path: "a" } }, bash("rm -rf x")]));
    expect(await stage.ended("run-a")).toBe("error");
    expect(errorOf(stage)).toContain("The agent tried to use lap__Bash, which its definition does not allow");
    expect(stage.dispatches).toEqual([]);
    expect(stage.audits.filter(({ decision }) => decision === "denied")).toEqual([
      expect.objectContaining({ target: "lap__Bash", rule: "tools.allowed", args: { command: "rm -rf x" } }),
    ]);
    await s.send("b");
    const next = await stage.call(1);
    expect(JSON.stringify(next.request.messages), "the answer is not kept").not.toContain("Now I delete");
    next.answer(says("ok"));
    await stage.ended("run-b");
  });
});

describe("[AD6] a run whose agent loses its definition", () => {
  it("ends before the next call of the model, with no tool that it was not given; the next run has the defaults", async () => {
    const stage = await stageWith({ tools: { allowed: ["gsv__Note"] } });
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const first = await stage.call(0);
    stage.defined = undefined;
    first.answer(says("", [{ name: "gsv__Note", arguments: {} }]));
    expect(await stage.ended("run-a")).toBe("error");
    expect(errorOf(stage)).toContain("The definition of the agent was taken away");
    expect(stage.calls).toHaveLength(1);
    await s.send("b");
    const next = await stage.call(1);
    expect(next.request.tools.map(({ name }) => name)).toContain("lap__Bash");
    next.answer(says("ok"));
    await stage.ended("run-b");
  });
  it("makes no call at all when its agent is gone, as that of a pack that was turned off", async () => {
    const stage = new Stage().open();
    stage.isGone = true;
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    expect(await stage.ended("run-a")).toBe("error");
    expect(stage.calls).toHaveLength(0);
  });
});

it("[AD7] a tool that requires approval waits for the owner, although everything is allowed; the answer holds for one call", async () => {
  const stage = await stageWith({ autonomy: { requires_approval: ["lap__Bash"] } });
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await stage.call(0)).answer(says("", [bash("ls"), { name: "lap__Read", arguments: { path: "a" } }]));
  const question = await until("the question", () => stage.approvals.at(-1)?.waiting[0]);
  expect(question).toMatchObject({ rule: "autonomy.requires_approval" });
  expect(question?.offer).toBeUndefined();
  await until("the other", () => stage.dispatches.length === 1);
  expect(stage.dispatches.map(({ tool }) => tool)).toEqual(["Read"]);
});

it("[AD8] the least of the limits ends the run, and the text names the definition's setting", async () => {
  const stage = await stageWith({ autonomy: { max_iterations: 1 } });
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await stage.call(0)).answer(says("", [{ name: "gsv__Note", arguments: {} }]));
  const question = await until("the question", () => stage.approvals.at(-1)?.waiting[0]);
  expect(question?.why).toContain("The run used up its 1 step");
  expect(question?.rule).toBe("autonomy.max_iterations");
});

describe("[AD10] the sections of the definition", () => {
  it("are compared before each call: a prompt with another role is not used", async () => {
    const stage = await stageWith({});
    stage.otherRole = "You obey the file.";
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    expect(await stage.ended("run-a")).toBe("error");
    expect(errorOf(stage)).toContain("its section `core` is not the one of the agent's definition");
    expect(stage.calls).toHaveLength(0);
  });
  it("are kept by a run that has begun, whatever is defined meanwhile", async () => {
    const stage = await stageWith({});
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const first = await stage.call(0);
    stage.defined = await defined({ core_context: { system_prompt: "You sing." } });
    first.answer(says("", [{ name: "gsv__Note", arguments: {} }]));
    const second = await stage.call(1);
    expect(second.request.systemPrompt).toBe(first.request.systemPrompt);
    second.answer(says("ok"));
    await stage.ended("run-a");
    await s.send("b");
    expect((await stage.call(2)).request.systemPrompt).toContain("You sing.");
  });
});
