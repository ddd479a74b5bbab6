/** The generator: stable, complete, and strict about mistakes in the contract. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Value from "typebox/value";
import { buildModel } from "../../scripts/codegen/build-model.ts";
import { driftOf } from "../../scripts/codegen/drift.ts";
import { fingerprint, protocolSchema } from "../../scripts/codegen/json-schema.ts";
import { ContractError, type Registries } from "../../scripts/codegen/model.ts";
import { pascal, screaming, snake } from "../../scripts/codegen/names.ts";
import { emitRustTypes } from "../../scripts/codegen/rust.ts";
import { examples } from "../../scripts/codegen/examples.ts";
import { emitTypes } from "../../scripts/codegen/typescript.ts";
import { emitChecks } from "../../scripts/codegen/validators.ts";
import { generate } from "../../scripts/codegen/generate.ts";
import { defineScratch, freshVocabulary, scratchModel } from "./scratch.ts";
import { ROOT } from "./support.ts";

test("the committed files equal the generated ones, and no released version breaks", () => {
  const result = spawnSync(process.execPath, [join(ROOT, "scripts/codegen/main.ts"), "--check"], { encoding: "utf8" });
  assert.equal(result.stderr, "");
  assert.equal(result.status, 0);
});

test("drift, missing and stray files are named", () => {
  const files = new Map([
    ["gen/a", "1"],
    ["gen/b", "2"],
    ["gen/c", "3"],
  ]);
  const disk = new Map([
    ["gen/a", "1"],
    ["gen/b", "old"],
    ["gen/z", "0"],
  ]);
  assert.deepEqual(
    driftOf(files, (path) => disk.get(path), [...disk.keys()]),
    { drifted: ["gen/b", "gen/c"], strays: ["gen/z"] },
  );
});

test("the order of definition does not change the output", async () => {
  const [one, other] = [await generate(await scratchModel()), await generate(await scratchModel(true))];
  assert.deepEqual([...one.keys()], [...other.keys()]);
  for (const [path, text] of one) assert.equal(other.get(path), text, path);
});

test("the fingerprint follows the shape and ignores the prose", async () => {
  const print = (define: (vocabulary: Awaited<ReturnType<typeof freshVocabulary>>) => void): Promise<string> =>
    freshVocabulary().then((vocabulary) => {
      define(vocabulary);
      return fingerprint(protocolSchema(buildModel(vocabulary)));
    });
  const base = await print(({ struct, t }) => struct("A", "One.", { text: t.string(5, { description: "x" }), description: t.int(0, 5) }));
  assert.match(base, /^[0-9a-f]{16}$/);
  assert.equal(
    await print(({ struct, t }) => struct("A", "Two.", { text: t.string(5, { description: "y" }), description: t.int(0, 5) })),
    base,
  );
  assert.notEqual(await print(({ struct, t }) => struct("A", "One.", { text: t.string(6), description: t.int(0, 5) })), base);
  assert.notEqual(await print(({ struct, t }) => struct("A", "One.", { text: t.string(5), description: t.int(0, 6) })), base);
  assert.notEqual(await print(({ struct, t }) => struct("A", "One.", { text: t.string(5) })), base);
});

test("emitted validators need no eval and no import, and agree with TypeBox on every example", async () => {
  const vocabulary = await freshVocabulary();
  defineScratch(vocabulary);
  const model = buildModel(vocabulary);
  const code = emitChecks(model);
  assert.doesNotMatch(code, /\beval\b|new Function|\bimport\b|\brequire\b/);
  const module = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as Record<string, (value: unknown) => unknown>;
  const context = Object.fromEntries([...vocabulary.types].map(([name, named]) => [name, named.schema]));
  for (const type of model.types) {
    const check = module[`check${type.name}`];
    const schema = context[type.name];
    assert.ok(check && schema, type.name);
    for (const { name, valid, value } of examples(model, type)) {
      assert.equal(check(value), valid, `${type.name} ${name}`);
      assert.equal(check(value), Value.Check(context, schema, value), `${type.name} ${name}: TypeBox`);
    }
  }
});

test("validators follow recursion and look at every value of a map, whatever its key", async () => {
  const code = emitChecks(await scratchModel());
  const { checkTree } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { checkTree: (value: unknown) => boolean };
  const leaf = { name: "leaf", kids: [] };
  assert.equal(checkTree({ name: "root", kids: [leaf], left: { name: "l", kids: [leaf] } }), true);
  assert.equal(checkTree({ name: "root", kids: [{ name: "l", kids: [{ name: "UPPER", kids: [] }] }] }), false);
  assert.equal(checkTree({ name: "root", kids: [], byName: { "line\nbreak": leaf } }), true);
  assert.equal(checkTree({ name: "root", kids: [], byName: { "line\nbreak": 1 } }), false);
  assert.equal(checkTree({ name: "root", kids: [], byName: JSON.parse('{"__proto__": 1}') }), false);
});

test("Rust: integers by bound, keywords, boxes, constants, maps, masked secrets", async () => {
  const rust = emitRustTypes(await scratchModel());
  for (const line of [
    "pub r#type: String,",
    "pub self_: bool,",
    "pub small: u8,",
    "pub medium: u16,",
    "pub large: u32,",
    "pub huge: u64,",
    "pub signed: i64,",
    "pub ratio: f64,",
    "pub free: Value,",
    "pub bag: Map<String, Value>,",
    "pub scores: BTreeMap<String, u8>,",
    "pub fixed: EverythingFixed,",
    "pub version: u8,",
    "pub left: Option<Box<Tree>>,",
    "pub kids: Vec<Tree>,",
    "pub by_name: Option<BTreeMap<String, Tree>>,",
    "of: Option<Box<Shape>>,",
    '#[serde(rename = "many-sided")]\nManySided {',
    '#[serde(rename = "2-tone")]\nV2Tone,',
    'rename = "qrURL"',
    'rename = "odd-name"',
    '.field("token", &masked(&self.token)).field("user", &self.user)',
    "pub struct Key(pub String);",
  ]) {
    assert.ok(rust.includes(line), line);
  }
  assert.doesNotMatch(rust, /derive\([^)]*Eq, Default[^)]*\)\]\n#\[serde\(rename_all = "camelCase"\)\]\npub struct Everything/);
});

test("TypeScript: comments stay closed, arms and ids have names", async () => {
  const types = emitTypes(await scratchModel());
  assert.ok(types.includes("A link with *\\/ in it"));
  assert.ok(types.includes("export type ShapeManySided = {"));
  assert.ok(types.includes("export const asKey = (text: string): Key => text as Key;"));
  assert.ok(types.includes('export const ColorValues = ["red", "dark-blue", "2-tone"] as const satisfies readonly Color[];'));
  assert.ok(types.includes('  "odd-name"?: string;'));
});

test("names in each language's convention", () => {
  assert.deepEqual(["frameBytes", "qrDataURL", "tool.outcome_unknown", "r2Key", "costUsd"].map(snake), [
    "frame_bytes",
    "qr_data_url",
    "tool_outcome_unknown",
    "r2_key",
    "cost_usd",
  ]);
  assert.equal(screaming("node.offline"), "NODE_OFFLINE");
  assert.deepEqual(["node.exec.event", "client-ro", "2-tone", ""].map(pascal), ["NodeExecEvent", "ClientRo", "V2Tone", "Empty"]);
});

test("mistakes in the contract are refused, all at once, by place", async () => {
  const { default: Type } = await import("typebox");
  const vocabulary = await freshVocabulary();
  const { error, id, method, ref, struct, t, tagged } = vocabulary;
  const Known = id("Known", "Fine.");
  struct("Bad", "Bad fields.", {
    unknownType: { ...Known, $ref: "Nowhere" },
    inline: Type.Object({ a: t.int() }),
    union: Type.Union([t.int(), t.bool()]),
    endless: Type.Array(t.int()),
    loose: t.string(5, { pattern: "a" }),
    broken: t.string(5, { pattern: "^(" }),
    tooLarge: t.int(0, 2 ** 60),
    nullable: Type.Null(),
    tuple: Type.Tuple([t.int()]),
  });
  for (const field of ["unknownType", "inline", "union", "endless", "loose", "broken", "tooLarge", "nullable", "tuple"]) {
    const only = new Map([...vocabulary.types].filter(([name]) => name !== "Bad"));
    const bad = vocabulary.types.get("Bad");
    assert.ok(bad);
    const properties: unknown = Reflect.get(bad.schema, "properties");
    assert.ok(typeof properties === "object" && properties !== null);
    only.set("Bad", { ...bad, schema: { ...bad.schema, required: [], properties: { [field]: Reflect.get(properties, field) } } });
    assert.throws(
      () => buildModel({ ...vocabulary, types: only } satisfies Registries),
      (problem) => problem instanceof ContractError && problem.message.includes(`Bad.${field}`),
      field,
    );
  }
  struct("lowercase", "Bad name.", {});
  struct("Inherited", "Bad field.", { toString: t.int() });
  tagged("Loose", "Fine.", "kind", { a: {} });
  method("Bad.Name", { doc: "", params: {}, result: Known, callers: [], scope: "read", audit: "none", errors: ["no.such"] });
  method("thing.shared", { doc: "", result: Known, callers: ["client", "node"], scope: "node", audit: "none" });
  method("thing.own", { doc: "", result: Known, callers: ["node"], scope: "read", audit: "none" });
  method("thing.change", { doc: "", result: Known, callers: ["client"], scope: "admin", audit: "none" });
  struct("ThingPick", "Fine.", { key: t.int() });
  method("thing.pick", {
    doc: "",
    params: ref("ThingPick"),
    result: Known,
    callers: ["client"],
    scope: "admin",
    audit: { target: "name" },
  });
  error("thing.one", { code: 5, blame: "bug", retryable: false, http: 500, exit: 1, text: "One.", hint: "" });
  error("thing.two", { code: 5, blame: "bug", retryable: false, http: 200, exit: 0, text: "", hint: "Two." });
  assert.throws(
    () => buildModel(vocabulary, ["Absent"]),
    (problem) => {
      assert.ok(problem instanceof ContractError);
      for (const part of [
        "type lowercase",
        "Inherited.toString",
        "VALIDATED: there is no type Absent",
        "method Bad.Name: names are noun.verb",
        "it has no callers",
        "method thing.shared: the scope is that of its clients, or its only caller",
        "method thing.own: the scope is that of its clients, or its only caller",
        "method thing.change: an admin method that changes something is audited",
        "method thing.pick: the audit names name, which is not a parameter",
        "there is no error no.such",
        "the code 5 belongs to thing.one",
        "http is 400..599",
        "exit is 1..255",
        "error thing.one: hint is empty",
        "error thing.two: text is empty",
      ]) {
        assert.ok(problem.message.includes(part), `${part} in\n${problem.message}`);
      }
      return true;
    },
  );
});

test("generated Rust is formatted as the workspace formats", () => {
  const config = readFileSync(join(ROOT, "rustfmt.toml"), "utf8");
  assert.match(config, /edition = "2024"/);
  assert.match(config, /max_width = 120/);
  for (const file of ["types", "methods", "events", "errors", "limits"]) {
    execFileSync("rustfmt", [
      "--check",
      "--edition",
      "2024",
      "--config",
      "max_width=120",
      join(ROOT, `crates/gsv-protocol/src/${file}.rs`),
    ]);
  }
});
