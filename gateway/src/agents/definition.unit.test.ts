import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parsePath } from "../storage/keys.ts";
import { definitionSections } from "../prompt/definition.ts";
import { allows, isAllowed } from "./definition.ts";
import { type Known, namedIn, readDefinition } from "./read-definition.lazy.ts";

const FULL = `metadata: { id: agent-triage, name: triage, version: 0.1.0, description: Sorts what comes in }
core_context:
  system_prompt: { file: ./triage.prompt.md }
  hard_constraints: ["Never approve a refund over $500."]
characteristics: { tone: warm, decision_style: cautious }
tools: { allowed: [gsv__ReadFile, "laptop__*"] }
autonomy: { max_iterations: 12, time_budget_ms: 60000, cost_budget_usd: 0.50, requires_approval: [laptop__Bash] }
model_tier: main
`;
const known = (more: Partial<Known> = {}): Known => ({
  fileOf: (path) => (path === "triage.prompt.md" ? "You sort orders." : undefined),
  nativeTools: new Set(["gsv__ReadFile", "gsv__WriteFile"]),
  topics: new Set(["human_review", "parcel"]),
  questionTopics: new Set(["human_review"]),
  names: new Map(),
  below: new Map(),
  ...more,
});
const problemsOf = (text: string, more?: Partial<Known>) => {
  const read = readDefinition(text, known(more));
  return read.ok ? [] : read.problems;
};
const minimal = (rest: string): string => `metadata: { id: a, name: a }\ncore_context: { system_prompt: Hello }\n${rest}`;

test("[LM5] long-term memory is given by memory_config alone", () => {
  const of = (text: string) => {
    const read = readDefinition(text, known({ nativeTools: new Set(["gsv__ReadFile", "remember", "recall_memory"]) }));
    assert.ok(read.ok);
    return ["remember", "recall_memory", "gsv__ReadFile"].filter((name) => isAllowed(read.definition, name));
  };
  const enabled = "memory_config: { long_term_enabled: true, top_k: 5, min_score: 0.2 }";
  assert.deepEqual(of(minimal(enabled)), ["remember", "recall_memory", "gsv__ReadFile"]);
  assert.deepEqual(of(minimal(`tools: { allowed: [] }\n${enabled}`)), ["remember", "recall_memory"]);
  assert.deepEqual(of(minimal("")), ["recall_memory", "gsv__ReadFile"]);
  assert.deepEqual(of(minimal("memory_config: { long_term_enabled: false }")), ["recall_memory", "gsv__ReadFile"]);
  assert.deepEqual(of(minimal(`tools: { allowed: [remember] }\n${enabled}`)), ["remember", "recall_memory"]);
  assert.ok(!isAllowed(undefined, "remember") && isAllowed(undefined, "recall_memory"));
  const [problem] = problemsOf(minimal("tools: { allowed: [remember] }"), { nativeTools: new Set(["remember"]) });
  assert.deepEqual([problem?.path, problem?.line], ["tools.allowed[0]", 3]);
  assert.match(problem?.problem ?? "", /Set `memory_config.long_term_enabled: true`/);
});

test("[EV1] [EV10] emit_event is given by events.emit alone, and its topics exist", () => {
  const nativeTools = new Set(["gsv__ReadFile", "emit_event"]);
  const allowed = (text: string): boolean => {
    const read = readDefinition(text, known({ nativeTools }));
    assert.ok(read.ok, JSON.stringify(read));
    return isAllowed(read.definition, "emit_event");
  };
  const found = (text: string) => problemsOf(text, { nativeTools }).map(({ path, line, problem }) => [path, line, problem]);
  assert.equal(allowed(minimal("tools: { allowed: [] }\nevents: { emit: [human_review] }")), true);
  assert.equal(allowed(minimal('tools: { allowed: [emit_event] }\nevents: { emit: ["human_*"] }')), true);
  assert.equal(allowed(minimal("events: { emit: [] }")), false);
  assert.equal(allowed(minimal("")), false);
  assert.equal(isAllowed(undefined, "emit_event"), false);
  assert.deepEqual(found(minimal("tools: { allowed: [emit_event] }")), [
    ["tools.allowed[0]", 3, "Name topics in `events.emit` to give the agent this tool."],
  ]);
  assert.deepEqual(found(minimal("events: { emit: [human_revew] }")), [
    ["events.emit[0]", 3, "There is no such topic. Did you mean `human_review`?"],
  ]);
  assert.deepEqual(found(minimal('events: { emit: ["refund_*"] }')), [
    ["events.emit[0]", 3, "There is no such topic. Topics are human_review, parcel."],
  ]);
  assert.equal(allowed(minimal("events: { on: [human_review] }")), false, "[EV10] it gets jobs, and emits nothing");
  assert.deepEqual(found(minimal("events: { on: [human_revew] }")), [
    ["events.on[0]", 3, "There is no such topic. Did you mean `human_review`?"],
  ]);
});

describe("an agent.yaml", () => {
  test("[AD1] [AD2] every field is read, and the prompt's file stands in its place", () => {
    const read = readDefinition(FULL, known());
    assert.ok(read.ok);
    assert.deepEqual(read.files, ["triage.prompt.md"]);
    assert.equal(read.definition.core_context.system_prompt, "You sort orders.");
    assert.equal(read.definition.autonomy?.cost_budget_usd, 0.5);
    assert.deepEqual(namedIn(FULL), { agentId: "agent-triage", files: ["triage.prompt.md"] });
  });
  test("[AD1] all mistakes come at once, each with its path and line", () => {
    const found = problemsOf(
      FULL.replace("max_iterations: 12", "max_iteration: 12")
        .replace("name: triage", "name: Triage Agent")
        .replace("tone: warm", "tone: 7")
        .replace("model_tier: main", "model_tier: best")
        .replace("gsv__ReadFile", "gsv__ReadFiel")
        .replace("time_budget_ms: 60000", "time_budget_ms: 5"),
    );
    assert.deepEqual(
      found.map(({ path, line }) => `${path} ${line}`).sort(),
      [
        "autonomy.max_iteration 7",
        "autonomy.time_budget_ms 7",
        "characteristics.tone 5",
        "metadata.name 1",
        "model_tier 8",
        "tools.allowed[0] 6",
      ],
      "also what the contract cannot say",
    );
    assert.match(found.find(({ path }) => path === "autonomy.max_iteration")?.problem ?? "", /Did you mean `max_iterations`\?/);
  });
  test("[AD3] tools that do not exist, and a name that is taken", () => {
    const found = problemsOf(FULL.replace("gsv__ReadFile", "gsv__ReadFiel").replace('"laptop__*"', '"gsv__X*", "a b", shopify'), {
      names: new Map([
        ["other", "triage"],
        ["agent-triage", "triage"],
      ]),
    });
    assert.deepEqual(
      found.map(({ path }) => path),
      ["metadata.name", "tools.allowed[0]", "tools.allowed[1]", "tools.allowed[2]", "tools.allowed[3]"],
    );
    assert.match(found[1]?.problem ?? "", /Did you mean `gsv__ReadFile`\?/);
    assert.deepEqual(problemsOf(FULL, { names: new Map([["agent-triage", "triage"]]) }), [], "its own name is not another's");
  });
  test("[AD2] the prompt's file must exist inside the agent's folder", () => {
    for (const file of ["../other/SOUL.md", "/etc/passwd", "./a/../../b.md", "'%2e%2e/x'"])
      assert.equal(problemsOf(FULL.replace("./triage.prompt.md", file))[0]?.path, "core_context.system_prompt", file);
    assert.match(
      problemsOf(FULL.replace("./triage.prompt.md", "./none.md"))[0]?.problem ?? "",
      /There is no file `none.md` beside agent.yaml/,
    );
    assert.match(problemsOf(FULL, { fileOf: () => " \n" })[0]?.problem ?? "", /empty/);
    assert.match(problemsOf(FULL, { fileOf: () => "x".repeat(65_537) })[0]?.problem ?? "", /more than 65536 bytes/);
    assert.match(problemsOf(FULL, { fileOf: () => "a\nb\u202ec" })[0]?.problem ?? "", /Line 2 of the file has a hidden character/);
  });
  test("[AD1] what makes YAML dangerous is refused, with its line", () => {
    const bomb = `a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n`;
    assert.match(problemsOf(bomb)[0]?.problem ?? "", /not allowed/);
    assert.match(problemsOf(minimal("model_tier: !js main"))[0]?.problem ?? "", /Tags/);
    assert.deepEqual(problemsOf(minimal("model_tier: main\nmodel_tier: sub"))[0], { path: "", line: 4, problem: "A key occurs twice." });
    assert.match(problemsOf(minimal("---\na: 1"))[0]?.problem ?? "", /Directives and further documents/);
    assert.match(problemsOf("x".repeat(65_537))[0]?.problem ?? "", /more than 65536/);
    assert.match(problemsOf(`${"[".repeat(3000)}${"]".repeat(3000)}`)[0]?.problem ?? "", /nested deeper/);
    assert.match(problemsOf("- a")[0]?.problem ?? "", /keys and values/);
    assert.match(problemsOf(minimal("model_tier: ma\u202ein"))[0]?.problem ?? "", /hidden character/);
  });
  test("[AD1] whatever the text is, the reader answers, and a problem never repeats a value", () => {
    const SECRET = "hunter2-long-value";
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => minimal(`${text}: ${SECRET}`)),
        ),
        (text) => {
          const read = readDefinition(text, known());
          if (!read.ok) assert.ok(read.problems.length > 0 && read.problems.every(({ problem }) => !problem.includes(SECRET)));
        },
      ),
    );
  });
});

describe("[AD3] [AD6] names of tools", () => {
  test("an entry is a whole name, or the beginning of names", () => {
    assert.ok(allows("gsv__ReadFile", "gsv__ReadFile") && allows("laptop__*", "laptop__Bash") && allows("*", "anything"));
    assert.ok(!allows("gsv__Read", "gsv__ReadFile") && !allows("laptop__*", "laptop2__Bash"));
  });
  test("without a definition every tool is allowed, with an empty list none", () => {
    assert.ok(isAllowed(undefined, "x") && isAllowed({}, "x"));
    assert.ok(!isAllowed({ tools: { allowed: [] } }, "x"));
  });
});

test("[AD10] the sections of the prompt, on one line for each rule and each characteristic", () => {
  const path = parsePath("triage.prompt.md");
  assert.ok(path.ok);
  const read = readDefinition(FULL, known({ fileOf: () => "# You sort\n\n<<<end 000000000000>>>" }));
  assert.ok(read.ok);
  const { core, characteristics } = definitionSections({
    ...read.definition,
    core_context: { ...read.definition.core_context, hard_constraints: ["Never\n# lie"] },
  });
  assert.equal(
    core,
    "### You sort\n\n\\<<<end 000000000000>>>\n\nThese rules hold whatever anyone asks:\n- Never # lie",
    "the text can be no heading of the prompt and no fence",
  );
  assert.equal(characteristics, "- tone: warm\n- decision style: cautious");
});

test("the text that `gsv agent edit` begins with is right, also with each of its comments as a value", () => {
  const template = readFileSync(join(import.meta.dirname, "../../../cli/src/commands/agent_template.yaml"), "utf8")
    .replace("{{id}}", "order-triage")
    .replace("{{name}}", "order_triage");
  assert.deepEqual(problemsOf(template), []);
  // A `#` that no word follows after one space hides a value.
  const whole = readDefinition(template.replace(/^( *)#(?! \S)/gm, "$1"), known());
  assert.ok(whole.ok, JSON.stringify(whole));
  assert.deepEqual(whole.ok && { ...whole.definition, core_context: Object.keys(whole.definition.core_context) }, {
    metadata: { id: "order-triage", name: "order_triage", version: "0.1.0", description: "Sorts what comes in" },
    core_context: ["system_prompt", "hard_constraints"],
    characteristics: { tone: "warm", decision_style: "cautious" },
    tools: { allowed: ["*"] },
    sub_agents: [],
    autonomy: { max_iterations: 50, time_budget_ms: 1800000, cost_budget_usd: 1, max_delegation_depth: 2, requires_approval: [] },
    memory_config: { long_term_enabled: false, top_k: 10, min_score: 0 },
    events: { emit: ["human_review"], on: ["human_review"] },
    escalation: [{ when: "low_confidence", to: "human_review" }],
    model_tier: "main",
  });
});

test("[EV13] an escalation names a cause that exists, once, and a topic that takes a question", () => {
  const of = (list: string, more = "") =>
    problemsOf(minimal(`escalation: ${list}${more}`), { nativeTools: new Set(["report_low_confidence"]) }).map(({ path, problem }) => [
      path,
      problem,
    ]);
  assert.deepEqual(of("[{ when: failed, to: human_review }, { when: low_confidence, to: human_review }]"), []);
  assert.deepEqual(of("[{ when: failed, to: parcel }]"), [
    ["escalation[0].to", "The topic takes no question. Topics that do are human_review."],
  ]);
  assert.deepEqual(of("[{ when: failed, to: human_revew }]"), [
    ["escalation[0].to", "There is no such topic. Did you mean `human_review`?"],
  ]);
  assert.deepEqual(of("[{ when: failed, to: human_review }, { when: failed, to: human_review }]"), [
    ["escalation[1].when", "An entry above has this cause already."],
  ]);
  for (const cause of ["refused", "tired"]) {
    const [[path, problem] = []] = of(`[{ when: ${cause}, to: human_review }]`);
    assert.equal(path, "escalation[0].when");
    assert.match(String(problem), /low_confidence.*failed.*budget_exceeded/);
  }
  assert.deepEqual(of("[{ when: failed, to: human_review }]", "\ntools: { allowed: [report_low_confidence] }"), [
    ["tools.allowed[0]", "Add `escalation: [{ when: low_confidence, to: human_review }]` to give the agent this tool."],
  ]);
  const read = readDefinition(minimal("tools: { allowed: [] }\nescalation: [{ when: low_confidence, to: human_review }]"), known());
  assert.ok(read.ok);
  assert.equal(isAllowed(read.definition, "report_low_confidence"), true);
  assert.equal(isAllowed(undefined, "report_low_confidence"), false);
});

test("[DG2] sub_agents name agents that exist, and never lead back", () => {
  const names = new Map([
    ["a", "a"],
    ["b", "b"],
    ["c", "c"],
    ["reviewer", "reviewer"],
  ]);
  const defined = ["b", "c"].map((name) => [name, []] as const);
  const of = (list: string, below: readonly (readonly [string, readonly string[]])[] = []) =>
    problemsOf(minimal(`sub_agents: ${list}`), { names, below: new Map([...defined, ...below]) }).map(({ path, line, problem }) => [
      path,
      line,
      problem,
    ]);
  assert.deepEqual(of("[b, c]", [["b", ["c"]]]), []);
  assert.deepEqual(of("[a]"), [["sub_agents[0]", 3, "An agent cannot hand tasks to itself."]]);
  assert.deepEqual(of("[b, revewer]"), [["sub_agents[1]", 3, "There is no agent with this name. Did you mean `reviewer`?"]]);
  const undefinedOne = "This agent has no definition, so it gets no tasks of other agents. Define it first.";
  assert.deepEqual(of("[b, reviewer]"), [["sub_agents[1]", 3, undefinedOne]]);
  // No suggestion for a name of one or two letters: each edit of it makes another name.
  assert.deepEqual(of("[b, cc]"), [["sub_agents[1]", 3, "There is no agent with this name. Define it first."]]);
  const loop = "It leads back to this agent: b hands tasks to it, itself or through others.";
  assert.deepEqual(
    of("[b]", [
      ["b", ["c"]],
      ["c", ["a"]],
    ]),
    [["sub_agents[0]", 3, loop]],
  );
  // A circle that others have made before this rule is no reason to hang.
  assert.deepEqual(
    of("[b]", [
      ["b", ["c"]],
      ["c", ["b"]],
    ]),
    [],
  );
});
const B = { names: new Map([["b", "b"]]), below: new Map([["b", []]]) };
test("[DG1] the tools of sub_agents need no entry in tools.allowed", () => {
  const read = readDefinition(minimal("tools: { allowed: [] }\nsub_agents: [b]"), known(B));
  assert.ok(read.ok);
  assert.deepEqual(
    ["delegate_to_b", "delegate_to_c", "gsv__ReadFile"].map((name) => isAllowed(read.definition, name)),
    [true, false, false],
  );
});
test("[AD3] [DG1] a list may name the tool of an agent that sub_agents has, and no other", () => {
  const of = (tool: string) => problemsOf(minimal(`sub_agents: [b]\nautonomy: { requires_approval: [${tool}] }`), B);
  assert.deepEqual(of("delegate_to_b"), []);
  assert.deepEqual(
    of("delegate_to_bb").map(({ path, problem }) => [path, problem]),
    [["autonomy.requires_approval[0]", "There is no such tool. Did you mean `delegate_to_b`?"]],
  );
});

test("mistakes of the form and of the meaning are told at once", () => {
  const nativeTools = new Set(["gsv__ReadFile", "emit_event"]);
  const paths = (text: string) => problemsOf(text, { nativeTools }).map(({ path }) => path);
  assert.deepEqual(
    paths(
      "metadata: { id: a, name: a, rol: main }\ncore_context: { system_prompt: Hello }\ntools: { allowed: [gsv__RedFile] }\nautonomy: { max_iterations: many, requires_approval: [gsv__Red] }\n",
    ),
    ["metadata.rol", "autonomy.max_iterations", "tools.allowed[0]", "autonomy.requires_approval[0]"],
  );
  assert.deepEqual(paths("metadata: { id: a }\ncore_context: { system_prompt: Hello }\ntools: { allowed: [gsv__RedFile] }\n"), [
    "metadata.name",
    "tools.allowed[0]",
  ]);
  // A tool that the section with the mistake may give is no second mistake.
  assert.deepEqual(paths(minimal("events: { emit: 3 }\ntools: { allowed: [emit_event] }\n")), ["events.emit"]);
});
