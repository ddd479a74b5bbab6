import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import fc from "fast-check";
import { configWith, tool } from "../../test/models/support.ts";
import type { Message } from "../ports/messages.ts";
import type { PromptInput } from "../ports/prompt.ts";
import { assemble, type PromptFiles } from "../prompt/assemble.ts";
import { asAgentId } from "../../../protocol/gen/types.ts";
import { DEFAULT_FILES } from "../features/agents/default-files.ts";
import { demoStep } from "./demo.ts";
import { fromIdentity, isCommissioning, namesIn } from "./demo-commissioning.ts";

const NOW = Date.UTC(2026, 0, 1);
const input: PromptInput = {
  identity: { key: "agent:main:main", ref: "r", agentId: "main", isOwnersSession: true },
  config: configWith({}),
  agent: { id: asAgentId("main") },
  nodes: [],
  tools: [],
  model: { provider: "demo", id: "demo" },
  systemPromptOverride: undefined,
  now: NOW,
};
const file = (text: string) => ({ text, sizeBytes: new TextEncoder().encode(text).length });
const fresh: PromptFiles = Object.fromEntries(DEFAULT_FILES.map(({ name, text }) => [name.replace(".md", "").toLowerCase(), file(text)]));
const FRESH = assemble(fresh, input).system;
const TOOLS = [tool("gsv__WriteFile"), tool("gsv__DeleteFile"), tool("laptop__Bash")];
const user = (text: string): Message => ({ role: "user", content: text, timestamp: 0 });
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, costUsd: 0 };
const ran = (toolName: string, isError = false): Message => ({
  role: "toolResult",
  toolCallId: "c",
  toolName,
  content: [{ type: "text", text: '{"ok":true}' }],
  isError,
  timestamp: 0,
});
const called: Message = {
  role: "assistant",
  content: [],
  api: "demo",
  provider: "demo",
  model: "demo",
  usage,
  stopReason: "toolUse",
  timestamp: 0,
};
const step = (...messages: Message[]) => demoStep(messages, TOOLS, FRESH);
const INTRODUCTION = user("your name is Ada and I am Sam");

describe("[P5.2] the first meeting with the demo model", () => {
  it("begins with the default files", () => {
    assert.ok(isCommissioning(FRESH));
    const said = step(user("hello"));
    assert.ok("text" in said);
    assert.match(said.text, /Who am I, and who are you\?[\s\S]*demo model[\s\S]*`your name is Ada and I am Sam`/);
  });
  it("a name that gsv setup has written is not asked for, and USER.md stays as it is", () => {
    const known = FRESH.replace(/(## About Your Human[\s\S]*?- Name:)[^\n]*/, "$1 Sam");
    assert.notEqual(known, FRESH);
    const told = (...messages: Message[]) => demoStep(messages, TOOLS, known);
    const [opening, help] = [told(user("hello")), told(user("help"))];
    assert.ok("text" in opening && "text" in help);
    assert.match(opening.text, /^Hello, Sam!.*Who am I\?\n[\s\S]*`your name is Ada`/);
    assert.match(help.text, /Say who I am: `your name is Ada`/);
    for (const { text } of [opening, help]) assert.doesNotMatch(text, /who are you\?$|I am Sam|have not met/m);
    const paths = (said: string) => {
      const step = told(user(said));
      return "calls" in step ? step.calls.map(({ arguments: { path } }) => path) : step;
    };
    assert.deepEqual(paths("your name is Ada"), ["IDENTITY.md", "SOUL.md"]);
    assert.deepEqual(paths("your name is Ada and I am Sam"), ["IDENTITY.md", "SOUL.md"]);
    assert.deepEqual(paths("your name is Ada and I am Ann"), ["IDENTITY.md", "USER.md", "SOUL.md"]);
  });
  it("names a command to begin with only when there is a machine", () => {
    const opening = (tools: typeof TOOLS): string => {
      const said = demoStep([user("hello")], tools, FRESH);
      assert.ok("text" in said);
      return said.text;
    };
    assert.match(opening(TOOLS), /`run: uname -a`[\s\S]*`help`/);
    const without = opening(TOOLS.filter(({ name }) => name.startsWith("gsv__")));
    assert.doesNotMatch(without, /run:/);
    assert.match(without, /`help`/);
  });
  it("an introduction is written to the files, BOOTSTRAP.md is deleted, and then the answer says so", () => {
    const first = step(INTRODUCTION);
    assert.ok("calls" in first);
    assert.deepEqual(
      first.calls.map(({ name, arguments: args }) => [name, args["path"], args["append"]]),
      [
        ["gsv__WriteFile", "IDENTITY.md", undefined],
        ["gsv__WriteFile", "USER.md", undefined],
        ["gsv__WriteFile", "SOUL.md", true],
      ],
    );
    const written = [INTRODUCTION, called, ran("gsv__WriteFile"), ran("gsv__WriteFile"), ran("gsv__WriteFile")];
    assert.deepEqual(step(...written), { calls: [{ name: "gsv__DeleteFile", arguments: { path: "BOOTSTRAP.md" } }] });
    const end = step(...written, called, ran("gsv__DeleteFile"));
    assert.ok("text" in end);
    assert.match(end.text, /Done, Sam\. I am Ada now/);
  });
  it("later answers come from the files that it wrote", () => {
    const first = step(INTRODUCTION);
    assert.ok("calls" in first);
    const text = (path: string): string => String(first.calls.find(({ arguments: args }) => args["path"] === path)?.arguments["content"]);
    const { bootstrap: _done, ...rest } = fresh;
    const later = assemble({ ...rest, identity: file(text("IDENTITY.md")), user: file(text("USER.md")) }, input).system;
    for (const asked of ["who are you?", "Who are you", "hi, who are you?!", "What's your name?"])
      assert.match(fromIdentity(asked, later) ?? asked, /^I am Ada 🛰️, a personal assistant\. I am here for Sam\./);
    assert.match(fromIdentity("who am I?", later) ?? "", /^You are Sam\./);
    const answer = demoStep([user("who are you?")], TOOLS, later);
    assert.ok("text" in answer && answer.text.startsWith("I am Ada"));
    const other = demoStep([user("your name is Bob and I am Eve")], TOOLS, later);
    assert.ok("text" in other && /follow these phrases/.test(other.text), "the meeting is over");
  });
  it("the two names may come in two messages", () => {
    const half = step(user("I'm Sam"));
    assert.ok("text" in half && /Nice to meet you, Sam/.test(half.text));
    assert.ok("calls" in step(user("I'm Sam"), called, user("your name is Ada")));
    assert.ok("calls" in step(user("your name is Ada"), called, user("hello?"), called, user("I'm Sam")));
    const latest = step(user("your name is Ada"), called, user("your name is Eve"), called, user("I am Sam"));
    assert.ok("calls" in latest && String(latest.calls[0]?.arguments["content"]).includes("- Name: Eve\n"), "the latest name counts");
    const other = step(user("call yourself Ada"));
    assert.ok("text" in other && /who are you/.test(other.text));
  });
  it("when a file could not be written, BOOTSTRAP.md stays and the failure is shown", () => {
    const failed = step(INTRODUCTION, called, ran("gsv__WriteFile"), ran("gsv__WriteFile", true), ran("gsv__WriteFile"));
    assert.ok("text" in failed && /failed/.test(failed.text));
  });
  it("the other phrases work during the meeting", () => {
    const run = step(user("run: date"));
    assert.ok("calls" in run && run.calls[0]?.name === "laptop__Bash");
    const done = step(user("run: date"), called, ran("laptop__Bash"));
    assert.ok("text" in done && /`laptop__Bash` answered/.test(done.text));
    const said = step(user("say I am Sam"));
    assert.deepEqual(said, { text: "I am Sam" });
    const help = step(user("help"));
    assert.ok("text" in help && /phrases[\s\S]*BOOTSTRAP\.md/.test(help.text));
  });
  for (const [text, names] of [
    ["your name is Ada and I am Sam", { agent: "Ada", human: "Sam" }],
    ["I'm Sam. Your name is Ada!", { agent: "Ada", human: "Sam" }],
    ["my name is Sam Smith, call yourself Ada", { agent: "Ada", human: "Sam Smith" }],
    ["YOUR NAME IS ada AND I AM sam", { agent: "ada", human: "sam" }],
    ["I’ll call you Zoë; call me José", { agent: "Zoë", human: "José" }],
    ["your name is Ada and i am Sam and I like tea", { agent: "Ada", human: "Sam" }],
    ["hello", {}],
    ["I am new here", {}],
    ["I am not sure", {}],
    ["what is my name", {}],
    ["your name is", {}],
    ["your name is ## Runtime", {}],
    [`I am ${"x".repeat(40)}`, { human: "x".repeat(40) }],
    [`I am ${"x".repeat(41)}`, {}],
  ] as const)
    it(`reads ${JSON.stringify(text.slice(0, 60))}`, () => assert.deepEqual(namesIn(text), names));
  it("any text gets a step, the step is deterministic, and names are one line", () => {
    const parts = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("your name is ", "I am ", " and ", "Ada", "Sam", "\n", "who are you"),
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 8 }), (list) => {
        const text = list.join("");
        assert.deepEqual(step(user(text)), step(user(text)));
        const { agent = "a", human = "b" } = namesIn(text);
        assert.doesNotMatch(agent + human, /[\n#<>`]/);
      }),
      { numRuns: 3000 },
    );
  });
});

test("who are you: the answer is what the prompt says; a field that is empty or a hint in parentheses says nothing", () => {
  const prompt = (identity: string, user: string): string => `# Agent\n\n## Your Identity\n${identity}\n\n## About Your Human\n${user}\n`;
  const says = (text: string, identity: string, user: string) => fromIdentity(text, prompt(identity, user));
  assert.equal(
    says("Who are you?", "- **Name:** Ada\n- **Class:** a cat", "- **What to call them:** Sam"),
    "I am Ada, a cat. I am here for Sam. So says IDENTITY.md in my prompt.",
  );
  assert.equal(
    says("who are you", "- Name: Ada\n- Class: (choose one)\n- Emoji: !", "- Name: (ask)"),
    "I am Ada !. So says IDENTITY.md in my prompt.",
  );
  for (const name of ["(not yet)", " ", ""]) assert.equal(says("who are you", `- Name: ${name}`, ""), undefined, name);
  assert.equal(says("who am I?", "", "- Name: Sam"), "You are Sam. So says USER.md in my prompt.");
  const empty = "- Name: Sam\n- What to call them:\n- Languages:\n- Time zone:\n";
  assert.equal(says("who am I?", "", empty), "You are Sam. So says USER.md in my prompt.", "a field has only its own line");
  assert.equal(says("who am I?", "", "- Name:\n- What to call them:  \n- Languages: German"), undefined);
  assert.equal(says("who am I?", "- Name: Ada", "- Name: (ask)"), undefined);
  assert.equal(says("what is the time?", "- Name: Ada", "- Name: Sam"), undefined);
  assert.equal(fromIdentity("who are you", "# Agent"), undefined);
  assert.equal(says("who are you", `- Name: ${"a".repeat(250)}`, ""), `I am ${"a".repeat(200)}. So says IDENTITY.md in my prompt.`);
});
