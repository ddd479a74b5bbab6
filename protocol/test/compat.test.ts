/** [P21] Each kind of break against a released contract is refused; additions pass. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { breaks, isDraft, releaseText } from "../../scripts/codegen/compat.ts";
import { protocolSchema } from "../../scripts/codegen/json-schema.ts";
import { scratchModel } from "./scratch.ts";

type Json = { [key: string]: Json } & { required: string[]; enum: string[]; oneOf: Json[]; callers: string[]; to: string[] };
const released: unknown = JSON.parse(JSON.stringify(protocolSchema(await scratchModel())));

function at(schema: Json, ...path: string[]): Json {
  return path.reduce((value, key) => {
    const next = value[key];
    assert.ok(next !== undefined, `${key} of ${path.join(".")}`);
    return next;
  }, schema);
}
function changed(edit: (schema: Json) => void): string[] {
  const schema = structuredClone(released) as Json;
  edit(schema);
  return breaks(released, schema);
}
const set = (target: Json, key: string, value: unknown): void => {
  Reflect.set(target, key, value);
};
const drop = (target: Json, key: string): void => {
  assert.ok(Reflect.has(target, key), key);
  Reflect.deleteProperty(target, key);
};
const without = <T>(list: T[], item: T): void => {
  const index = list.indexOf(item);
  assert.ok(index >= 0);
  list.splice(index, 1);
};

const everything = ["$defs", "Everything", "properties"];
const params = ["$defs", "ThingGetParams"];

/** Another struct in the place of a tree. */
function forest(s: Json, change: (copy: Json) => void): void {
  const copy = structuredClone(at(s, "$defs", "Tree"));
  set(at(copy, "properties"), "more", { type: "boolean" });
  change(copy);
  set(at(s, "$defs"), "Forest", copy);
  set(at(s, "$defs", "Tree", "properties", "left"), "$ref", "#/$defs/Forest");
}

const refused: readonly (readonly [string, (schema: Json) => void, RegExp])[] = [
  ["a type is removed", (s) => drop(at(s, "$defs"), "Login"), /type Login was removed/],
  [
    "a type is renamed",
    (s) => {
      set(at(s, "$defs"), "Signin", at(s, "$defs", "Login"));
      drop(at(s, "$defs"), "Login");
    },
    /type Login was removed or renamed/,
  ],
  ["a type changes its kind", (s) => set(at(s, "$defs", "Login"), "x-kind", "tagged"), /Login: was "struct", is "tagged"/],
  ["a field is removed", (s) => drop(at(s, ...everything), "small"), /Everything\.small was removed/],
  ["an optional field is removed", (s) => drop(at(s, ...everything), "maybe"), /Everything\.maybe was removed/],
  [
    "a field changes its type",
    (s) => set(at(s, ...everything, "small"), "type", "string"),
    /Everything\.small: type was "integer", is "string"/,
  ],
  ["a field refers to another type", (s) => set(at(s, ...everything, "color"), "$ref", "#/$defs/Key"), /Everything\.color: \$ref was/],
  [
    "a field refers to a struct that lacks a field",
    (s) => forest(s, (copy) => drop(at(copy, "properties"), "kids")),
    /Tree\.left: \$ref was/,
  ],
  ["any JSON becomes something", (s) => set(at(s, ...everything, "free"), "type", "string"), /Everything\.free: type was absent/],
  ["a constant changes", (s) => set(at(s, ...everything, "fixed"), "const", "that"), /Everything\.fixed: const/],
  ["an enum loses a value", (s) => without(at(s, "$defs", "Color").enum, "red"), /Color: the value "red" was removed/],
  ["a maximum falls", (s) => set(at(s, ...everything, "small"), "maximum", 100), /maximum fell from 255 to 100/],
  ["a minimum rises", (s) => set(at(s, ...everything, "signed"), "minimum", -4), /minimum rose from -5 to -4/],
  ["a bound appears", (s) => set(at(s, ...everything, "ratio"), "maximum", 0.5), /ratio: maximum fell/],
  [
    "a text becomes bounded",
    (s) => set(at(s, "$defs", "ThingGetResult", "properties", "note"), "maxLength", 10),
    /note: maxLength fell from absent to 10/,
  ],
  ["an id gets shorter", (s) => set(at(s, "$defs", "Key"), "maxLength", 7), /Key: maxLength fell from 8 to 7/],
  ["a pattern changes", (s) => set(at(s, "$defs", "Key"), "pattern", "^[a-y]+$"), /Key: the pattern was/],
  ["a list gets shorter", (s) => set(at(s, "$defs", "Tree", "properties", "kids"), "maxItems", 2), /Tree\.kids: maxItems fell from 3 to 2/],
  [
    "a list holds something else",
    (s) => set(at(s, "$defs", "Tree", "properties", "kids", "items"), "$ref", "#/$defs/Key"),
    /Tree\.kids\[\]: \$ref was/,
  ],
  [
    "a map holds less",
    (s) => set(at(s, ...everything, "scores", "additionalProperties"), "maximum", 9),
    /Everything\.scores\{\}: maximum fell/,
  ],
  ["a union loses an arm", (s) => at(s, "$defs", "Shape").oneOf.splice(0, 1), /Shape: the arm kind=dot was removed/],
  ["a union changes its tag", (s) => set(at(s, "$defs", "Shape"), "x-tag", "type"), /Shape: the tag was "kind", is "type"/],
  [
    "an arm loses a field",
    (s) => drop(at(s, "$defs", "Shape", "oneOf", "1", "properties"), "radius"),
    /Shape\(circle\)\.radius was removed/,
  ],
  ["a param becomes required", (s) => at(s, ...params).required.push("depth"), /ThingGetParams\.depth became required/],
  [
    "a new param is required",
    (s) => {
      set(at(s, ...params, "properties"), "extra", { type: "boolean" });
      at(s, ...params).required.push("extra");
    },
    /ThingGetParams\.extra is new and required/,
  ],
  [
    "a result field becomes optional",
    (s) => without(at(s, "$defs", "ThingGetResult").required, "tree"),
    /ThingGetResult\.tree became optional/,
  ],
  ["a method is removed", (s) => drop(at(s, "x-methods"), "thing.ping"), /method thing\.ping was removed/],
  [
    "a method takes other params",
    (s) => set(at(s, "x-methods", "thing.get"), "params", { $ref: "#/$defs/Login" }),
    /method thing\.get: params were/,
  ],
  [
    "a method without params requires some",
    (s) => set(at(s, "x-methods", "thing.ping"), "params", { $ref: "#/$defs/ThingGetParams" }),
    /took no params and now requires key/,
  ],
  [
    "a method answers something else",
    (s) => set(at(s, "x-methods", "thing.get"), "result", { $ref: "#/$defs/Tree" }),
    /method thing\.get: the result was/,
  ],
  ["a caller is shut out", (s) => without(at(s, "x-methods", "thing.get").callers, "node"), /node may no longer call it/],
  ["a scope gets stronger", (s) => set(at(s, "x-methods", "thing.get"), "scope", "admin"), /the scope was "operate", is "admin"/],
  ["a scope changes sides", (s) => set(at(s, "x-methods", "thing.get"), "scope", "node"), /the scope was "operate", is "node"/],
  ["idempotence is lost", (s) => set(at(s, "x-methods", "thing.get"), "idempotent", false), /no longer idempotent/],
  ["an answer becomes deferred", (s) => set(at(s, "x-methods", "thing.get"), "deferred", true), /became deferred/],
  ["an event is removed", (s) => drop(at(s, "x-events"), "thing.drawn"), /event thing\.drawn was removed/],
  [
    "an event carries something else",
    (s) => set(at(s, "x-events", "thing.drawn"), "payload", { $ref: "#/$defs/Tree" }),
    /event thing\.drawn: the payload was/,
  ],
  ["an event goes to fewer", (s) => without(at(s, "x-events", "thing.drawn").to, "node"), /no longer sent to node/],
  ["an error is removed", (s) => drop(at(s, "x-errors"), "thing.missing"), /error thing\.missing was removed/],
  ["an error's code changes", (s) => set(at(s, "x-errors", "thing.missing"), "code", 405), /error thing\.missing: code was 404, is 405/],
  ["an error's retryability changes", (s) => set(at(s, "x-errors", "thing.missing"), "retryable", true), /error thing\.missing: retryable/],
  ["a limit is removed", (s) => drop(at(s, "x-limits"), "thingTimeoutMs"), /limit thingTimeoutMs was removed/],
  ["a size limit falls", (s) => set(at(s, "x-limits", "thingBytes"), "value", 999), /limit thingBytes fell from 1000 to 999/],
];

for (const [what, edit, expected] of refused) {
  test(`[V1][P21] refused: ${what}`, () => {
    const problems = changed(edit);
    assert.ok(
      problems.some((problem) => expected.test(problem)),
      JSON.stringify(problems),
    );
  });
}

/** A struct that is only sent, converted to a union by one of its fields. */
const asUnion = (schema: Json, edit: (arms: Json[]) => void = () => undefined): void => {
  const properties = at(schema, "$defs", "ThingDrawnEvent", "properties");
  set(properties, "kind", { $ref: "#/$defs/Color" });
  const arm = (value: string, more: object): unknown => ({
    type: "object",
    properties: { kind: { const: value }, shape: properties["shape"], ...more },
    required: ["kind", "shape"],
  });
  const arms = JSON.parse(JSON.stringify([arm("red", { at: properties["at"] }), arm("blue", {})])) as Json[];
  edit(arms);
  set(at(schema, "$defs"), "ThingDrawnEvent", { "x-kind": "tagged", "x-tag": "kind", oneOf: arms });
};
/** The released version whose event has the fields of both arms. */
const asStruct = (schema: Json): void => {
  set(at(schema, "$defs", "ThingDrawnEvent", "properties"), "kind", { $ref: "#/$defs/Color" });
  set(at(schema, "$defs", "ThingDrawnEvent"), "required", ["shape", "kind"]);
};
const split = (edit?: (arms: Json[]) => void): string[] => {
  const [before, after] = [structuredClone(released) as Json, structuredClone(released) as Json];
  asStruct(before);
  asUnion(after, edit);
  return breaks(before, after);
};

test("[P21] passes: a struct that is only sent becomes a union by one of its fields", () => assert.deepEqual(split(), []));
test("[P21] refused: a union in place of a struct whose arm lacks a required field", () => {
  assert.match(split(([arm]) => arm && without(arm.required, "shape")).join(), /ThingDrawnEvent\(red\)\.shape is not required/);
});
test("[P21] refused: a union in place of a struct that loses a field or changes its type", () => {
  assert.match(split(([arm]) => arm && drop(at(arm, "properties"), "at")).join(), /ThingDrawnEvent\.at was removed/);
  assert.match(split(([arm]) => arm && set(at(arm, "properties", "at"), "type", "string")).join(), /at: type was "integer", is "string"/);
});
test("[P21] refused: a union in place of a struct that callers send", () => {
  const problems = changed((schema) => set(at(schema, "$defs", "ThingGetParams"), "x-kind", "tagged"));
  assert.match(problems.join(), /ThingGetParams: was "struct", is "tagged"/);
});

const accepted: readonly (readonly [string, (schema: Json) => void])[] = [
  ["nothing changes", () => undefined],
  ["a type is added", (s) => set(at(s, "$defs"), "Newcomer", { "x-kind": "struct", type: "object", properties: {}, required: [] })],
  ["an optional param is added", (s) => set(at(s, ...params, "properties"), "extra", { type: "boolean" })],
  [
    "a required result field is added",
    (s) => {
      set(at(s, "$defs", "ThingGetResult", "properties"), "extra", { type: "boolean" });
      at(s, "$defs", "ThingGetResult").required.push("extra");
    },
  ],
  ["a param becomes optional", (s) => without(at(s, ...params).required, "key")],
  ["an enum gains a value", (s) => at(s, "$defs", "Color").enum.push("green")],
  [
    "a union gains an arm",
    (s) =>
      at(s, "$defs", "Shape").oneOf.push(JSON.parse('{"type":"object","properties":{"kind":{"const":"new"}},"required":["kind"]}') as Json),
  ],
  [
    "bounds widen",
    (s) => {
      set(at(s, ...everything, "small"), "maximum", 300);
      set(at(s, ...everything, "signed"), "minimum", -50);
      set(at(s, "$defs", "Key"), "maxLength", 9);
      drop(at(s, "$defs", "Key"), "pattern");
    },
  ],
  ["a method is added", (s) => set(at(s, "x-methods"), "thing.new", at(s, "x-methods", "thing.get"))],
  [
    "a method that took none takes optional params",
    (s) => {
      set(at(s, "$defs"), "ThingPingParams", { "x-kind": "struct", type: "object", properties: { a: { type: "boolean" } } });
      set(at(s, "x-methods", "thing.ping"), "params", { $ref: "#/$defs/ThingPingParams" });
    },
  ],
  [
    "more may call, with less",
    (s) => {
      at(s, "x-methods", "thing.get").callers.push("channel");
      set(at(s, "x-methods", "thing.get"), "scope", "read");
    },
  ],
  ["a field refers to another struct that older peers use the same way", (s) => forest(s, () => undefined)],
  ["an event goes to more", (s) => at(s, "x-events", "thing.drawn").to.push("channel")],
  ["an error is added", (s) => set(at(s, "x-errors"), "thing.new", { code: 9, retryable: false, http: 400, exit: 1 })],
  [
    "prose changes",
    (s) => {
      set(at(s, "$defs", "Tree"), "description", "Another sentence.");
      set(at(s, "x-errors", "thing.missing"), "text", "Another sentence.");
      set(at(s, "x-errors", "thing.missing"), "hint", "Another sentence.");
    },
  ],
  [
    "a size limit rises and a time is tuned",
    (s) => {
      set(at(s, "x-limits", "thingBytes"), "value", 1001);
      set(at(s, "x-limits", "thingTimeoutMs"), "value", 1);
    },
  ],
];

for (const [what, edit] of accepted) {
  test(`[P21] passes: ${what}`, () => assert.deepEqual(changed(edit), []));
}

test("[P21] [V1] a method that only nodes could call may be opened to clients, with a scope of theirs", () => {
  const before = structuredClone(released) as Json;
  const after = structuredClone(released) as Json;
  set(at(before, "x-methods", "thing.ping"), "callers", ["node"]);
  set(at(before, "x-methods", "thing.ping"), "scope", "node");
  set(at(after, "x-methods", "thing.ping"), "callers", ["client", "node"]);
  set(at(after, "x-methods", "thing.ping"), "scope", "admin");
  assert.deepEqual(breaks(before, after), []);
});

test("[P21] a frozen version is never overwritten; a draft may be, and is not checked", () => {
  const draft = releaseText(undefined, released, true);
  assert.ok(draft.ok);
  const existing: unknown = JSON.parse(draft.text);
  assert.equal(isDraft(existing), true);
  const frozen = releaseText(existing, released, false);
  assert.ok(frozen.ok);
  assert.deepEqual(JSON.parse(frozen.text), released);
  assert.equal(isDraft(released), false);
  assert.deepEqual(releaseText(released, released, false), { ok: false, problem: "this version is frozen; release the next one" });
  assert.equal(releaseText(released, released, true).ok, false);
});
