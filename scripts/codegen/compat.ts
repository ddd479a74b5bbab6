/**
 * Compares the contract with every released version. A peer of a released version must continue to work: the gateway accepts
 * everything that it may send, and still sends every field that it reads. Additions pass. Compares JSON schemas, so a released
 * version needs only its frozen file.
 */
import { isJsonObject, type JsonObject } from "../../protocol/runtime/json-object.ts";

const object = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const strings = (value: unknown): readonly string[] => list(value).filter((item): item is string => typeof item === "string");
const refName = (value: unknown): string | undefined => {
  const ref = object(value)["$ref"];
  return typeof ref === "string" ? ref.replace("#/$defs/", "") : undefined;
};
const show = (value: unknown): string => JSON.stringify(value) ?? "absent";

/** Whether values of a type travel to the gateway (`in`), from it (`out`), or both; and the named types of both versions. */
interface Direction {
  readonly in: boolean;
  readonly out: boolean;
  readonly types: Types;
}
interface Types {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/** A longer path runs in a circle of types. */
const MAX_PATH_CHARS = 512;
/** Client scopes from weak to strong: a method may move to a weaker one, never to a stronger. */
const SCOPE_STRENGTH = ["read", "chat", "operate", "admin"];
/** The fields of an error that programs compare. */
const ERROR_KEYS = ["code", "retryable", "http", "exit"];

/** A draft previews a release. The contract is not compared with it. */
export const DRAFT_MARK = "x-draft";
export const isDraft = (schema: unknown): boolean => object(schema)[DRAFT_MARK] === true;

/** The text of a released file, or the reason why it may not be written: a frozen file never changes. */
export function releaseText(
  existing: unknown,
  schema: unknown,
  draft: boolean,
): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string } {
  if (existing !== undefined && !isDraft(existing)) return { ok: false, problem: "this version is frozen; release the next one" };
  const content = draft ? { [DRAFT_MARK]: true, ...object(schema) } : object(schema);
  return { ok: true, text: `${JSON.stringify(content, null, 2)}\n` };
}

/** The breaks, as sentences that name the place. Empty: every peer of the released version continues to work. */
export function breaks(released: unknown, current: unknown): string[] {
  const problems: string[] = [];
  const before = object(released);
  const after = object(current);
  const oldDefs = object(before["$defs"]);
  const newDefs = object(after["$defs"]);
  const types: Types = { before: oldDefs, after: newDefs };
  const directions = directionsOf(after, types);
  for (const [name, oldType] of Object.entries(oldDefs)) {
    const newType = newDefs[name];
    if (newType === undefined) problems.push(`type ${name} was removed or renamed`);
    else compareType(name, object(oldType), object(newType), directions.get(name) ?? { in: true, out: true, types }, problems);
  }
  compareMethods(object(before["x-methods"]), object(after["x-methods"]), newDefs, problems);
  compareEvents(object(before["x-events"]), object(after["x-events"]), problems);
  compareErrors(object(before["x-errors"]), object(after["x-errors"]), problems);
  compareLimits(object(before["x-limits"]), object(after["x-limits"]), problems);
  return problems;
}

/** A type that no method or event mentions (Frame, the configuration) is taken to travel both ways. */
function directionsOf(schema: JsonObject, types: Types): Map<string, Direction> {
  const defs = object(schema["$defs"]);
  const incoming = new Set<string>();
  const outgoing = new Set<string>();
  const follow = (value: unknown, into: Set<string>): void => {
    if (Array.isArray(value)) for (const item of value) follow(item, into);
    if (!isJsonObject(value)) return;
    const name = refName(value);
    if (name !== undefined && !into.has(name)) {
      into.add(name);
      follow(defs[name], into);
    }
    for (const item of Object.values(value)) follow(item, into);
  };
  for (const method of Object.values(object(schema["x-methods"]))) {
    follow(object(method)["params"], incoming);
    follow(object(method)["result"], outgoing);
  }
  for (const event of Object.values(object(schema["x-events"]))) follow(object(event)["payload"], outgoing);
  const all = new Set([...incoming, ...outgoing]);
  return new Map([...all].map((name) => [name, { in: incoming.has(name), out: outgoing.has(name), types }]));
}

function compareType(path: string, before: JsonObject, after: JsonObject, direction: Direction, problems: string[]): void {
  if (before["x-kind"] === "struct" && after["x-kind"] === "tagged" && !direction.in) {
    compareSplit(path, before, after, direction.types, problems);
    return;
  }
  if (before["x-kind"] !== after["x-kind"]) {
    problems.push(`${path}: was ${show(before["x-kind"])}, is ${show(after["x-kind"])}`);
    return;
  }
  if (before["x-kind"] !== "tagged") {
    compareNode(path, before, after, direction, problems);
    return;
  }
  if (before["x-tag"] !== after["x-tag"]) {
    problems.push(`${path}: the tag was ${show(before["x-tag"])}, is ${show(after["x-tag"])}`);
    return;
  }
  const tag = String(before["x-tag"]);
  const arms = (schema: JsonObject): Map<string, JsonObject> =>
    new Map(list(schema["oneOf"]).map((arm) => [String(object(object(object(arm)["properties"])[tag])["const"]), object(arm)]));
  const newArms = arms(after);
  for (const [value, arm] of arms(before)) {
    const other = newArms.get(value);
    if (other === undefined) problems.push(`${path}: the arm ${tag}=${value} was removed or renamed`);
    else compareNode(`${path}(${value})`, arm, other, direction, problems);
  }
}

/**
 * A struct that is only sent may become a union by one of its enum fields: each arm then has exactly some of the old fields.
 * Older readers continue to work when every arm has all required fields and no field has another type.
 */
function compareSplit(path: string, before: JsonObject, after: JsonObject, types: Types, problems: string[]): void {
  const tag = String(after["x-tag"]);
  const fields = object(before["properties"]);
  const required = strings(before["required"]).filter((name) => name !== tag);
  if (fields[tag] === undefined) problems.push(`${path}: ${tag} is new; older readers expect a struct without it`);
  const found = new Set([tag]);
  for (const item of list(after["oneOf"])) {
    const arm = object(item);
    const properties = object(arm["properties"]);
    const at = `${path}(${String(object(properties[tag])["const"])})`;
    const armRequired = new Set(strings(arm["required"]));
    for (const name of required) if (!armRequired.has(name)) problems.push(`${at}.${name} is not required; older readers rely on it`);
    for (const [name, old] of Object.entries(fields)) {
      if (name === tag || properties[name] === undefined) continue;
      found.add(name);
      compareNode(`${at}.${name}`, object(old), object(properties[name]), { in: false, out: true, types }, problems);
    }
  }
  for (const name of Object.keys(fields)) if (!found.has(name)) problems.push(`${path}.${name} was removed or renamed`);
}

function compareNode(path: string, before: JsonObject, after: JsonObject, direction: Direction, problems: string[]): void {
  if (isOtherStruct(before, after, direction, path)) return;
  for (const key of ["$ref", "type", "const"]) {
    if (show(before[key]) !== show(after[key])) {
      problems.push(`${path}: ${key} was ${show(before[key])}, is ${show(after[key])}`);
      return;
    }
  }
  if (show(before["pattern"]) !== show(after["pattern"]) && after["pattern"] !== undefined) {
    problems.push(
      `${path}: the pattern was ${show(before["pattern"])}, is ${show(after["pattern"])}; whether old values still match can't be told`,
    );
  }
  for (const key of ["minimum", "minLength"]) {
    const [old, now] = [before[key] ?? Number.NEGATIVE_INFINITY, after[key] ?? Number.NEGATIVE_INFINITY];
    if (typeof old === "number" && typeof now === "number" && now > old)
      problems.push(`${path}: ${key} rose from ${show(before[key])} to ${show(after[key])}`);
  }
  for (const key of ["maximum", "maxLength", "maxItems"]) {
    const [old, now] = [before[key] ?? Number.POSITIVE_INFINITY, after[key] ?? Number.POSITIVE_INFINITY];
    if (typeof old === "number" && typeof now === "number" && now < old)
      problems.push(`${path}: ${key} fell from ${show(before[key])} to ${show(after[key])}`);
  }
  const values = new Set(strings(after["enum"]));
  for (const value of strings(before["enum"])) if (!values.has(value)) problems.push(`${path}: the value ${show(value)} was removed`);
  if (isJsonObject(before["items"])) compareNode(`${path}[]`, before["items"], object(after["items"]), direction, problems);
  if (isJsonObject(before["additionalProperties"]))
    compareNode(`${path}{}`, before["additionalProperties"], object(after["additionalProperties"]), direction, problems);
  if ((before["additionalProperties"] === undefined) !== (after["additionalProperties"] === undefined))
    problems.push(`${path}: a map became an object with fields, or the reverse`);
  if (isJsonObject(before["properties"])) compareFields(path, before, after, direction, problems);
}

/** A field may have another struct that older peers can use as they used the first: names are not on the wire. */
function isOtherStruct(before: JsonObject, after: JsonObject, direction: Direction, path: string): boolean {
  const [oldName, newName] = [refName(before), refName(after)];
  if (oldName === undefined || newName === undefined || oldName === newName || path.length > MAX_PATH_CHARS) return false;
  const [oldType, newType] = [object(direction.types.before[oldName]), object(direction.types.after[newName])];
  if (oldType["x-kind"] !== "struct" || newType["x-kind"] !== "struct") return false;
  const problems: string[] = [];
  compareNode(path, oldType, newType, direction, problems);
  return problems.length === 0;
}

function compareFields(path: string, before: JsonObject, after: JsonObject, direction: Direction, problems: string[]): void {
  const newProperties = object(after["properties"]);
  const oldRequired = new Set(strings(before["required"]));
  const newRequired = new Set(strings(after["required"]));
  const oldProperties = object(before["properties"]);
  for (const [name, schema] of Object.entries(oldProperties)) {
    const other = newProperties[name];
    const at = `${path}.${name}`;
    if (other === undefined) {
      problems.push(`${at} was removed or renamed`);
      continue;
    }
    compareNode(at, object(schema), object(other), direction, problems);
    if (direction.in && !oldRequired.has(name) && newRequired.has(name)) problems.push(`${at} became required; older callers leave it out`);
    if (direction.out && oldRequired.has(name) && !newRequired.has(name)) problems.push(`${at} became optional; older readers rely on it`);
  }
  for (const name of newRequired) {
    if (direction.in && !(name in oldProperties)) problems.push(`${path}.${name} is new and required; older callers don't send it`);
  }
}

function compareMethods(before: JsonObject, after: JsonObject, newDefs: JsonObject, problems: string[]): void {
  for (const [name, value] of Object.entries(before)) {
    const old = object(value);
    const at = `method ${name}`;
    if (after[name] === undefined) {
      problems.push(`${at} was removed or renamed`);
      continue;
    }
    const now = object(after[name]);
    const oldParams = refName(old["params"]);
    const newParams = refName(now["params"]);
    if (oldParams === undefined && newParams !== undefined) {
      const required = strings(object(newDefs[newParams])["required"]);
      if (required.length > 0) problems.push(`${at} took no params and now requires ${required.join(", ")}`);
    } else if (oldParams !== newParams) problems.push(`${at}: params were ${show(oldParams)}, are ${show(newParams)}`);
    if (refName(old["result"]) !== refName(now["result"]))
      problems.push(`${at}: the result was ${show(refName(old["result"]))}, is ${show(refName(now["result"]))}`);
    const callers = new Set(strings(now["callers"]));
    for (const caller of strings(old["callers"])) if (!callers.has(caller)) problems.push(`${at}: ${caller} may no longer call it`);
    // Scopes tell clients apart: one that no client could call may get any.
    if (strings(old["callers"]).includes("client") && old["scope"] !== now["scope"]) {
      const from = SCOPE_STRENGTH.indexOf(String(old["scope"]));
      const to = SCOPE_STRENGTH.indexOf(String(now["scope"]));
      if (from < 0 || to < 0 || to > from) problems.push(`${at}: the scope was ${show(old["scope"])}, is ${show(now["scope"])}`);
    }
    if (old["idempotent"] === true && now["idempotent"] !== true)
      problems.push(`${at}: is no longer idempotent; older callers send it again`);
    if (old["deferred"] !== true && now["deferred"] === true)
      problems.push(`${at}: became deferred; older callers expect the answer at once`);
  }
}

function compareEvents(before: JsonObject, after: JsonObject, problems: string[]): void {
  for (const [name, value] of Object.entries(before)) {
    const at = `event ${name}`;
    if (after[name] === undefined) {
      problems.push(`${at} was removed or renamed`);
      continue;
    }
    const now = object(after[name]);
    if (refName(object(value)["payload"]) !== refName(now["payload"]))
      problems.push(`${at}: the payload was ${show(refName(object(value)["payload"]))}, is ${show(refName(now["payload"]))}`);
    const to = new Set(strings(now["to"]));
    for (const reader of strings(object(value)["to"])) if (!to.has(reader)) problems.push(`${at}: is no longer sent to ${reader}`);
  }
}

function compareErrors(before: JsonObject, after: JsonObject, problems: string[]): void {
  for (const [reason, value] of Object.entries(before)) {
    if (after[reason] === undefined) {
      problems.push(`error ${reason} was removed or renamed`);
      continue;
    }
    for (const key of ERROR_KEYS) {
      const [old, now] = [object(value)[key], object(after[reason])[key]];
      if (old !== now) problems.push(`error ${reason}: ${key} was ${show(old)}, is ${show(now)}`);
    }
  }
}

/** A smaller size would refuse input that was accepted. Times (`...Ms`, `...Days`) may change. */
function compareLimits(before: JsonObject, after: JsonObject, problems: string[]): void {
  for (const [name, value] of Object.entries(before)) {
    const [old, now] = [object(value)["value"], object(after[name])["value"]];
    if (now === undefined) problems.push(`limit ${name} was removed or renamed`);
    else if (/(Bytes|Depth|Chars)$/.test(name) && typeof old === "number" && typeof now === "number" && now < old)
      problems.push(`limit ${name} fell from ${old} to ${now}`);
  }
}
