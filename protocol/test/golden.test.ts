/** Every reader in TypeScript accepts and refuses the same committed examples. Twin: crates/gsv-protocol/tests/contract/golden.rs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explain } from "../runtime/explain.ts";
import type { TypeName } from "../gen/explain-table.ts";
import { generatedAccepts, goldenExamples, goldenNames, model, parseGolden, typeboxAccepts } from "./support.ts";

const examples = goldenExamples();
const isTypeName = (name: string): name is TypeName => model.typeByName.has(name);

test("every type has a golden file, and the folder has no other file", () => {
  const expected = model.types.map(({ name }) => `${name}.jsonl`).sort();
  const names = new Set(goldenNames());
  const missing = expected.filter((name) => !names.delete(name));
  assert.deepEqual(missing, [], "run: node scripts/codegen/seed-golden.ts");
  assert.deepEqual([...names], [], "remove the files that belong to no type");
});

test("every type has valid and invalid examples", () => {
  for (const { name } of model.types)
    for (const valid of [true, false])
      assert.ok(
        examples.some(({ type, example }) => type === name && example.valid === valid),
        `${name} has no ${valid ? "valid" : "invalid"} example; run: node scripts/codegen/seed-golden.ts ${name}`,
      );
});

test("every method, event and frame kind has an example", () => {
  const has = (name: string, fits: (value: unknown) => boolean = () => true): boolean =>
    examples.some(({ type, example }) => type === name && example.valid && fits(example.value));
  for (const method of model.methods) {
    if (method.params !== null) assert.ok(has(method.params), `params of ${method.name}`);
    assert.ok(has(method.result), `result of ${method.name}`);
  }
  for (const event of model.events) assert.ok(has(event.payload), `payload of ${event.name}`);
  for (const type of model.types) {
    if (type.kind !== "tagged") continue;
    for (const arm of type.arms)
      assert.ok(
        has(type.name, (value) => Object(value)[type.tag] === arm.value),
        `${type.name}, ${type.tag} ${arm.value}`,
      );
  }
});

test("no two valid and no two invalid examples of a type have the same name", () => {
  const seen = new Set<string>();
  for (const { type, at, example } of examples) {
    assert.match(example.name, /^[A-Za-z0-9_-]+$/, at);
    const key = `${type} ${example.valid} ${example.name}`;
    assert.ok(!seen.has(key), `${at}: ${example.name} is used twice`);
    seen.add(key);
  }
});

test("a line that is not an example is refused with its file and line", () => {
  const good = '{"name":"a","valid":true,"value":1}';
  assert.equal(parseGolden("A.jsonl", `${good}\n`).length, 1);
  const bad = [
    "",
    "{",
    "7",
    '{"name":"a","valid":true}',
    '{"name":"a","valid":false,"value":1}',
    '{"name":"a","valid":true,"mistake":"type","value":1}',
    '{"name":"a","valid":"yes","value":1}',
  ];
  for (const line of bad) assert.throws(() => parseGolden("A.jsonl", `${good}\n${line}\n`), /^Error: A\.jsonl:2: /, line);
  assert.throws(() => parseGolden("A.jsonl", good), /^Error: A\.jsonl: the last line has no line end/);
});

test("the generated validators, TypeBox and explain agree on every example", () => {
  for (const { type, at: line, example } of examples) {
    const { name, valid, value } = example;
    const at = `${line} (${name})`;
    assert.ok(isTypeName(type), at);
    assert.equal(typeboxAccepts(type, value), valid, `${at}: TypeBox`);
    assert.equal(generatedAccepts(type, value), valid, `${at}: generated validator`);
    assert.equal(explain(type, value).length === 0, valid, `${at}: explain says ${JSON.stringify(explain(type, value))}`);
  }
});

test("fields that a newer writer added are ignored", () => {
  for (const { type, at, example } of examples) {
    const kind = model.typeByName.get(type)?.kind;
    if (!example.valid || (kind !== "struct" && kind !== "tagged")) continue;
    const value = { ...(example.value as Record<string, unknown>), fieldOfTheFuture: { deep: [1, null] } };
    assert.ok(generatedAccepts(type, value), `${at} (${example.name})`);
  }
});
