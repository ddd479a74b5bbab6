import assert from "node:assert/strict";
import { test } from "node:test";
import { budgetOf, choiceAt, modelAt, modelsFor } from "./run-settings.ts";

const model = (provider: string, id: string) => ({ provider, id });
type Context = Parameters<typeof modelsFor>[2];
type Config = Context["config"];
const config = (...fallbacks: readonly ReturnType<typeof model>[]) => ({ model: { ...model("a", "one"), fallbacks } }) as unknown as Config;
type Agent = Context["agent"];
const none = {} as Agent;

test("[P5] the most specific choice is asked first, then the fallbacks without it", () => {
  const all = config(model("a", "one"), model("a", "two"), model("b", "one"));
  const others = [model("a", "two"), model("b", "one")];
  assert.deepEqual(modelsFor({ directives: {} }, {}, { agent: none, config: all }), [model("a", "one"), ...others]);
  assert.deepEqual(modelsFor({ directives: {} }, {}, { agent: { model: model("b", "one") } as Agent, config: all }), [
    model("b", "one"),
    model("a", "one"),
    model("a", "two"),
  ]);
  const [first] = modelsFor({ directives: { model: model("c", "x") } }, { model: model("d", "x") }, { agent: none, config: all });
  assert.deepEqual(first, model("c", "x"));
  assert.deepEqual(modelsFor({ directives: {} }, { model: model("d", "x") }, { agent: none, config: all })[0], model("d", "x"));
});
test("[P5] after the last model of the list it is asked again", () => {
  const list = [model("a", "one"), model("b", "two")];
  assert.deepEqual(
    [0, 1, 2, 9].map((index) => modelAt(list, index).id),
    ["one", "two", "two", "two"],
  );
  assert.throws(() => modelAt([], 0));
});

const defined = (definition: object): NonNullable<Context["defined"]> =>
  ({ definition, coreSha256: "" }) as NonNullable<Context["defined"]>;
test("[AD9] a tier is asked after the agent's own model, and an absent tier is the configured model", () => {
  const tiered = { model: { ...model("a", "one"), tiers: { sub: model("t", "sub") } } } as unknown as Config;
  const first = (agent: Agent, tier: string, settings = {}) =>
    modelsFor({ directives: {} }, settings, { agent, config: tiered, defined: defined({ model_tier: tier }) })[0];
  assert.deepEqual(first(none, "sub"), model("t", "sub"));
  assert.deepEqual(first(none, "critical"), model("a", "one"));
  assert.deepEqual(first({ model: model("b", "own") } as Agent, "sub"), model("b", "own"));
  assert.deepEqual(first(none, "sub", { model: model("d", "x") }), model("d", "x"));
});
test("[AD8] a run may use the least of configuration, job and definition; what the definition sets is named", () => {
  const limits = { stepsPerRun: 50, runMs: 1000, runCostUsd: 1 };
  const of = (autonomy: object | undefined, origin?: Parameters<typeof budgetOf>[1]) =>
    budgetOf({ config: { limits } as Config, ...(autonomy === undefined ? {} : { defined: defined({ autonomy }) }) }, origin);
  assert.deepEqual(of(undefined), { steps: 50, ms: 1000, costUsd: 1 });
  assert.deepEqual(of({ max_iterations: 12, time_budget_ms: 5000, cost_budget_usd: 0 }), {
    steps: 12,
    ms: 1000,
    costUsd: 0,
    defined: ["steps", "costUsd"],
    hasDefinition: true,
  });
  const job = { kind: "schedule", jobId: "j", budget: { steps: 5, ms: 500, costUsd: 0.25 } } as const;
  assert.deepEqual(of({ max_iterations: 12 }, job), { steps: 5, ms: 500, costUsd: 0.25, hasDefinition: true });
});

test("[R6] the place that has chosen a model is the one that `modelsFor` takes it from", () => {
  const tiered = {
    model: { ...model("a", "one"), tiers: { sub: model("t", "sub") } },
    agents: { list: [{ id: "work" }] },
  } as unknown as Config;
  const [agent, definition] = [{ id: "work", model: model("b", "own") } as unknown as Agent, defined({ model_tier: "sub" })];
  const all = { directives: { model: model("c", "x") } };
  const settings = { model: model("d", "x") };
  const plain = { agent: none, config: tiered };
  assert.deepEqual(choiceAt(0, all, settings, { ...plain, agent, defined: definition }), { kind: "message" });
  assert.deepEqual(choiceAt(0, { directives: {} }, settings, { ...plain, agent, defined: definition }), { kind: "session" });
  assert.deepEqual(choiceAt(0, { directives: {} }, {}, { ...plain, agent, defined: definition }), {
    kind: "agent",
    agentId: "work",
    setting: "agents.list.0",
  });
  assert.deepEqual(choiceAt(0, { directives: {} }, {}, { ...plain, defined: definition }), { kind: "tier", setting: "model.tiers.sub" });
  assert.deepEqual(choiceAt(0, { directives: {} }, {}, { ...plain, defined: defined({ model_tier: "main" }) }), { kind: "config" });
  assert.deepEqual(choiceAt(0, { directives: {} }, {}, plain), { kind: "config" });
  assert.deepEqual(choiceAt(1, all, settings, plain), { kind: "fallback" });
});
