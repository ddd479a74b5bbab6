/** Every committed example says the same to every reader in TypeScript; crates/gsv-protocol/tests/golden.rs is the twin. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explain } from "../runtime/explain.ts";
import type { TypeName } from "../gen/explain-table.ts";
import { generatedAccepts, goldenFiles, model, typeboxAccepts } from "./support.ts";

const files = goldenFiles();
const isTypeName = (name: string): name is TypeName => model.typeByName.has(name);

test("every type has valid and invalid examples, and every folder has a type", () => {
  const missing = model.types.filter(
    ({ name }) => !files.some((file) => file.type === name && file.valid) || !files.some((file) => file.type === name && !file.valid),
  );
  assert.deepEqual(
    missing.map(({ name }) => name),
    [],
    "run: node scripts/codegen/seed-golden.ts",
  );
  const stray = new Set(files.filter(({ type }) => !model.typeByName.has(type)).map(({ type }) => type));
  assert.deepEqual([...stray], [], "remove the folders of types that are gone");
});

test("every method, event and frame kind has an example", () => {
  const has = (type: string, prefix = "valid-"): boolean => files.some((file) => file.type === type && file.name.startsWith(prefix));
  for (const method of model.methods) {
    if (method.params !== null) assert.ok(has(method.params), `params of ${method.name}`);
    assert.ok(has(method.result), `result of ${method.name}`);
  }
  for (const event of model.events) assert.ok(has(event.payload), `payload of ${event.name}`);
  for (const type of model.types) {
    if (type.kind === "tagged")
      for (const arm of type.arms) assert.ok(has(type.name, `valid-${arm.value}-`), `${type.name}, ${type.tag} ${arm.value}`);
  }
});

test("example names say what they are", () => {
  for (const { type, name } of files) assert.match(name, /^(valid|invalid)-[A-Za-z0-9_-]+\.json$/, `${type}/${name}`);
});

test("the generated validators, TypeBox and explain agree on every example", () => {
  for (const { type, name, valid, text } of files) {
    const value: unknown = JSON.parse(text);
    const at = `${type}/${name}`;
    assert.ok(isTypeName(type), at);
    assert.equal(typeboxAccepts(type, value), valid, `${at}: TypeBox`);
    assert.equal(generatedAccepts(type, value), valid, `${at}: generated validator`);
    assert.equal(explain(type, value).length === 0, valid, `${at}: explain says ${JSON.stringify(explain(type, value))}`);
  }
});

test("fields that a newer writer added are ignored", () => {
  for (const type of model.types) {
    if (type.kind !== "struct" && type.kind !== "tagged") continue;
    for (const { text, name } of files.filter((file) => file.type === type.name && file.valid)) {
      const value = { ...(JSON.parse(text) as Record<string, unknown>), fieldOfTheFuture: { deep: [1, null] } };
      assert.ok(generatedAccepts(type.name, value), `${type.name}/${name}`);
    }
  }
});
