import assert from "node:assert/strict";
import { test } from "node:test";
import { modelAt, modelsFor } from "./run-settings.ts";

const model = (provider: string, id: string) => ({ provider, id });
type Config = Parameters<typeof modelsFor>[3];
const config = (...fallbacks: readonly ReturnType<typeof model>[]) => ({ model: { ...model("a", "one"), fallbacks } }) as unknown as Config;
type Agent = Parameters<typeof modelsFor>[2];
const none = {} as Agent;

test("[P5] the most specific choice is asked first, then the fallbacks without it", () => {
  const all = config(model("a", "one"), model("a", "two"), model("b", "one"));
  const others = [model("a", "two"), model("b", "one")];
  assert.deepEqual(modelsFor({ directives: {} }, {}, none, all), [model("a", "one"), ...others]);
  assert.deepEqual(modelsFor({ directives: {} }, {}, { model: model("b", "one") } as Agent, all), [
    model("b", "one"),
    model("a", "one"),
    model("a", "two"),
  ]);
  const [first] = modelsFor({ directives: { model: model("c", "x") } }, { model: model("d", "x") }, none, all);
  assert.deepEqual(first, model("c", "x"));
  assert.deepEqual(modelsFor({ directives: {} }, { model: model("d", "x") }, none, all)[0], model("d", "x"));
});
test("[P5] after the last model of the list it is asked again", () => {
  const list = [model("a", "one"), model("b", "two")];
  assert.deepEqual(
    [0, 1, 2, 9].map((index) => modelAt(list, index).id),
    ["one", "two", "two", "two"],
  );
  assert.throws(() => modelAt([], 0));
});
