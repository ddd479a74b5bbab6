/**
 * The contract as plain data: what every emitter reads. Built once from the registries of `protocol/src/dsl.ts`, checked
 * for mistakes that the vocabulary can't detect (unknown references, two names for one item in a target language). It must not
 * emit anything or touch a file.
 */
import type {
  AuditPolicy,
  Blame,
  Caller,
  ErrorSpec,
  EventSpec,
  LimitSpec,
  LookupSpec,
  MethodSpec,
  NamedSchema,
  Scope,
  ServiceSpec,
} from "../../protocol/src/dsl.ts";

/** The shape of one value. `doc` is what the schema said about the field itself. */
export type Node =
  | { readonly kind: "ref"; readonly name: string; readonly doc?: string | undefined }
  | {
      readonly kind: "string";
      readonly minLength?: number | undefined;
      readonly maxLength?: number | undefined;
      readonly pattern?: string | undefined;
      readonly doc?: string | undefined;
    }
  | { readonly kind: "integer"; readonly minimum: number; readonly maximum: number; readonly doc?: string | undefined }
  | {
      readonly kind: "number";
      readonly minimum?: number | undefined;
      readonly maximum?: number | undefined;
      readonly doc?: string | undefined;
    }
  | { readonly kind: "boolean"; readonly doc?: string | undefined }
  | { readonly kind: "json"; readonly doc?: string | undefined }
  | { readonly kind: "literal"; readonly value: string | number | boolean; readonly doc?: string | undefined }
  | { readonly kind: "array"; readonly items: Node; readonly maxItems: number; readonly doc?: string | undefined }
  | { readonly kind: "map"; readonly values: Node; readonly doc?: string | undefined };

export interface Field {
  readonly name: string;
  readonly node: Node;
  readonly required: boolean;
}

export interface Arm {
  readonly value: string;
  readonly fields: readonly Field[];
}

interface NamedBase {
  readonly name: string;
  readonly doc: string;
}
export type NewtypeDef = NamedBase & { readonly kind: "newtype"; readonly node: Extract<Node, { kind: "string" }> };
export type EnumDef = NamedBase & { readonly kind: "enum"; readonly values: readonly string[] };
export type StructDef = NamedBase & { readonly kind: "struct"; readonly fields: readonly Field[] };
export type TaggedDef = NamedBase & { readonly kind: "tagged"; readonly tag: string; readonly arms: readonly Arm[] };
export type TypeDef = NewtypeDef | EnumDef | StructDef | TaggedDef;

export type { AuditPolicy, Blame, Caller, ErrorSpec, EventSpec, LimitSpec, LookupSpec, MethodSpec, Scope, ServiceSpec };

/** Every list is sorted by name, so that the order of definition never shows in the output. */
export interface Model {
  readonly types: readonly TypeDef[];
  readonly typeByName: ReadonlyMap<string, TypeDef>;
  readonly methods: readonly MethodSpec[];
  readonly events: readonly EventSpec[];
  readonly errors: readonly ErrorSpec[];
  readonly limits: readonly LimitSpec[];
  readonly lookups: readonly LookupSpec[];
  readonly services: readonly ServiceSpec[];
}

/** The registries of the vocabulary, or a hand-made equivalent in tests. */
export interface Registries {
  readonly types: ReadonlyMap<string, NamedSchema>;
  readonly methods: ReadonlyMap<string, MethodSpec>;
  readonly events: ReadonlyMap<string, EventSpec>;
  readonly errors: ReadonlyMap<string, ErrorSpec>;
  readonly limits: ReadonlyMap<string, LimitSpec>;
  readonly services?: ReadonlyMap<string, ServiceSpec>;
  readonly lookups?: ReadonlyMap<string, LookupSpec>;
}

/** A mistake in the contract; the message says where and what to change. */
export class ContractError extends Error {}

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;
const TYPE_NAME = /^[A-Z][A-Za-z0-9]{0,79}$/;
const METHOD_NAME = /^[a-z][A-Za-z]*(\.[a-z][A-Za-z]*){0,3}$/;
const LOOKUP_NAME = /^[a-z][A-Za-z]{0,63}$/;
/** Names that every JavaScript object answers to: `"x" in value` would be true for an empty object. */
const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));

type Raw = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Raw => typeof value === "object" && value !== null && !Array.isArray(value);
const optionalNumber = (raw: Raw, key: string): number | undefined => (typeof raw[key] === "number" ? raw[key] : undefined);
const byName = (left: { readonly name: string }, right: { readonly name: string }): number => compare(left.name, right.name);

/** Code unit order: the same on every machine, unlike a locale's. */
export function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function define<T extends object>(value: T): T {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries) as T;
}

const KNOWN_KEYS = new Set([
  "$ref",
  "type",
  "const",
  "enum",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "items",
  "maxItems",
  "patternProperties",
  "description",
  "properties",
  "required",
  "anyOf",
]);

/** One field schema of the vocabulary as a node. Anything the vocabulary can't say is refused by path. */
export function toNode(schema: unknown, path: string): Node {
  if (!isRecord(schema)) throw new ContractError(`${path}: expected a schema`);
  for (const key of Object.keys(schema)) {
    if (!KNOWN_KEYS.has(key) && !key.startsWith("~")) throw new ContractError(`${path}: the keyword ${key} is not part of the vocabulary`);
  }
  const doc = typeof schema["description"] === "string" ? schema["description"] : undefined;
  if (typeof schema["$ref"] === "string") return define({ kind: "ref", name: schema["$ref"], doc });
  const literal = schema["const"];
  if (typeof literal === "string" || typeof literal === "number" || typeof literal === "boolean") {
    return define({ kind: "literal", value: literal, doc });
  }
  switch (schema["type"]) {
    case "string": {
      const pattern = typeof schema["pattern"] === "string" ? schema["pattern"] : undefined;
      if (pattern !== undefined) assertPattern(pattern, path);
      if (schema["enum"] !== undefined) throw new ContractError(`${path}: name the enum with enumOf`);
      return define({
        kind: "string",
        minLength: optionalNumber(schema, "minLength"),
        maxLength: optionalNumber(schema, "maxLength"),
        pattern,
        doc,
      });
    }
    case "integer": {
      const minimum = optionalNumber(schema, "minimum") ?? 0;
      const maximum = optionalNumber(schema, "maximum") ?? MAX_SAFE;
      if (!Number.isSafeInteger(minimum) || !Number.isSafeInteger(maximum))
        throw new ContractError(`${path}: integer bounds over 2^53 don't survive JSON`);
      if (minimum > maximum) throw new ContractError(`${path}: minimum is over maximum`);
      return define({ kind: "integer", minimum, maximum, doc });
    }
    case "number":
      return define({ kind: "number", minimum: optionalNumber(schema, "minimum"), maximum: optionalNumber(schema, "maximum"), doc });
    case "boolean":
      return define({ kind: "boolean", doc });
    case "array": {
      const maxItems = optionalNumber(schema, "maxItems");
      if (maxItems === undefined) throw new ContractError(`${path}: an array needs maxItems`);
      return define({ kind: "array", items: toNode(schema["items"], `${path}[]`), maxItems, doc });
    }
    case "object": {
      const patterns = schema["patternProperties"];
      if (!isRecord(patterns) || schema["properties"] !== undefined) throw new ContractError(`${path}: name the object with struct`);
      const values = Object.values(patterns);
      if (values.length !== 1) throw new ContractError(`${path}: a map has one type of value`);
      return define({ kind: "map", values: toNode(values[0], `${path}{}`), doc });
    }
    case undefined: {
      if (schema["anyOf"] !== undefined) throw new ContractError(`${path}: name the union with tagged`);
      return define({ kind: "json", doc });
    }
    default:
      throw new ContractError(`${path}: the type ${String(schema["type"])} is not part of the vocabulary`);
  }
}

function assertPattern(pattern: string, path: string): void {
  try {
    new RegExp(pattern, "u");
  } catch (error) {
    throw new ContractError(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  // A pattern that may match anywhere almost always is a slip; one that says only how a value begins is not.
  if (!pattern.startsWith("^")) throw new ContractError(`${path}: anchor the pattern with ^`);
}

function toFields(schema: unknown, path: string): Field[] {
  if (!isRecord(schema) || !isRecord(schema["properties"])) throw new ContractError(`${path}: expected an object schema`);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return Object.entries(schema["properties"]).map(([name, property]) => {
    if (!FIELD_NAME.test(name) || INHERITED.has(name)) throw new ContractError(`${path}.${name}: not a usable field name`);
    return { name, node: toNode(property, `${path}.${name}`), required: required.has(name) };
  });
}

function toType(named: NamedSchema): TypeDef {
  const { name, doc } = named;
  const schema: unknown = named.schema;
  if (!TYPE_NAME.test(name)) throw new ContractError(`type ${name}: PascalCase letters and digits only`);
  switch (named.kind) {
    case "newtype": {
      const node = toNode(schema, name);
      if (node.kind !== "string") throw new ContractError(`${name}: an id is a string`);
      return { kind: "newtype", name, doc, node };
    }
    case "enum": {
      const values: unknown = isRecord(schema) ? schema["enum"] : undefined;
      if (!Array.isArray(values) || values.length === 0 || !values.every((value): value is string => typeof value === "string")) {
        throw new ContractError(`${name}: an enum has at least one string`);
      }
      if (new Set(values).size !== values.length) throw new ContractError(`${name}: a value is listed twice`);
      return { kind: "enum", name, doc, values };
    }
    case "struct":
      return { kind: "struct", name, doc, fields: toFields(schema, name) };
    case "tagged": {
      const { tag, arms } = named;
      const schemas: unknown = isRecord(schema) ? schema["anyOf"] : undefined;
      if (tag === undefined || arms === undefined || arms.length === 0 || !Array.isArray(schemas))
        throw new ContractError(`${name}: a union has a tag and arms`);
      return {
        kind: "tagged",
        name,
        doc,
        tag,
        arms: arms.map((value, index) => ({
          value,
          fields: toFields(schemas[index], `${name}.${value}`).filter((field) => field.name !== tag),
        })),
      };
    }
  }
}

/** Calls `visit` for every reference below a node. */
export function eachRef(node: Node, visit: (name: string) => void): void {
  if (node.kind === "ref") visit(node.name);
  else if (node.kind === "array") eachRef(node.items, visit);
  else if (node.kind === "map") eachRef(node.values, visit);
}

/** Every field of a type, whichever arm it is in. */
export function fieldsOf(type: TypeDef): readonly Field[] {
  if (type.kind === "struct") return type.fields;
  if (type.kind === "tagged") return type.arms.flatMap((arm) => arm.fields);
  return [];
}

/** Every type that a value of the named types can contain, themselves included. */
export function reachable(model: Pick<Model, "typeByName">, roots: Iterable<string>): Set<string> {
  const seen = new Set<string>();
  const open = [...roots];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const type = model.typeByName.get(name);
    if (type) for (const field of fieldsOf(type)) eachRef(field.node, (target) => open.push(target));
  }
  return seen;
}

function errorProblems(errors: readonly ErrorSpec[]): string[] {
  const problems: string[] = [];
  const codes = new Map<number, string>();
  for (const { reason, code, http, exit, text, hint } of errors) {
    if (!Number.isInteger(code) || code < 1 || code > 65535) problems.push(`error ${reason}: code is 1..65535`);
    if (http < 400 || http > 599) problems.push(`error ${reason}: http is 400..599`);
    if (exit < 1 || exit > 255) problems.push(`error ${reason}: exit is 1..255`);
    if (text.trim() === "") problems.push(`error ${reason}: text is empty`);
    if (hint.trim() === "") problems.push(`error ${reason}: hint is empty`);
    const other = codes.get(code);
    if (other !== undefined) problems.push(`error ${reason}: the code ${code} belongs to ${other}`);
    codes.set(code, reason);
  }
  return problems;
}
function checkAudit({ name, scope, audit, idempotent }: MethodSpec, params: TypeDef | undefined, problems: string[]): void {
  if (typeof audit === "string") {
    if (audit === "none" && scope === "admin" && !idempotent)
      problems.push(`method ${name}: an admin method that changes something is audited`);
  } else if (audit.target !== null && !(params && fieldsOf(params).some((field) => field.name === audit.target)))
    problems.push(`method ${name}: the audit names ${audit.target}, which is not a parameter`);
}
function checkService({ name, calls }: ServiceSpec, problems: string[], need: (name: string, where: string) => void): void {
  if (!TYPE_NAME.test(name)) problems.push(`service ${name}: PascalCase letters and digits only`);
  for (const call of calls) {
    if (!/^[a-z][A-Za-z]{0,63}$/.test(call.name)) problems.push(`service ${name}: ${call.name} is not a valid name of a call`);
    need(call.result, `service ${name}.${call.name}`);
  }
}
function checkLookup({ name, result, rows, otherwise }: LookupSpec, type: TypeDef | undefined, problems: string[]): void {
  if (!LOOKUP_NAME.test(name)) problems.push(`lookup ${name}: camelCase letters only`);
  if (type?.kind !== "enum") {
    problems.push(`lookup ${name}: there is no enum ${result}`);
    return;
  }
  for (const [key, value] of [...Object.entries(rows), ["otherwise", otherwise] as const])
    if (!type.values.includes(value)) problems.push(`lookup ${name}, ${key}: ${value} is not a value of ${result}`);
}

export function buildModel(registries: Registries, validated: readonly string[] = []): Model {
  const problems: string[] = [];
  const types: TypeDef[] = [];
  for (const named of registries.types.values()) {
    try {
      types.push(toType(named));
    } catch (error) {
      if (!(error instanceof ContractError)) throw error;
      problems.push(error.message);
    }
  }
  types.sort(byName);
  const typeByName = new Map(types.map((type) => [type.name, type]));
  const need = (name: string, where: string): void => {
    if (!registries.types.has(name)) problems.push(`${where}: there is no type ${name}`);
  };
  for (const type of types) {
    for (const field of fieldsOf(type)) eachRef(field.node, (name) => need(name, `${type.name}.${field.name}`));
  }
  for (const name of validated) need(name, "VALIDATED");
  for (const method of registries.methods.values()) {
    if (!METHOD_NAME.test(method.name)) problems.push(`method ${method.name}: names are noun.verb`);
    if (method.params !== null) need(method.params, `method ${method.name}`);
    need(method.result, `method ${method.name}`);
    if (method.callers.length === 0) problems.push(`method ${method.name}: it has no callers`);
    for (const reason of method.errors) {
      if (!registries.errors.has(reason)) problems.push(`method ${method.name}: there is no error ${reason}`);
    }
    const params = method.params === null ? undefined : typeByName.get(method.params);
    if (params && params.kind !== "struct" && params.kind !== "tagged") problems.push(`method ${method.name}: params are an object`);
    checkAudit(method, params, problems);
  }
  for (const event of registries.events.values()) {
    if (!METHOD_NAME.test(event.name)) problems.push(`event ${event.name}: names are noun.verb`);
    need(event.payload, `event ${event.name}`);
  }
  for (const service of registries.services?.values() ?? []) checkService(service, problems, need);
  for (const lookup of registries.lookups?.values() ?? []) checkLookup(lookup, typeByName.get(lookup.result), problems);
  problems.push(...errorProblems([...registries.errors.values()]));
  for (const limit of registries.limits.values()) {
    if (!Number.isSafeInteger(limit.value) || limit.value < 0) problems.push(`limit ${limit.name}: a limit is a whole number from 0 up`);
  }
  if (problems.length > 0) throw new ContractError(problems.join("\n"));
  const sorted = <T extends { readonly name: string }>(map: ReadonlyMap<string, T>): T[] => [...map.values()].sort(byName);
  return {
    types,
    typeByName,
    methods: sorted(registries.methods),
    events: sorted(registries.events),
    errors: [...registries.errors.values()].sort((left, right) => compare(left.reason, right.reason)),
    limits: sorted(registries.limits),
    lookups: sorted(registries.lookups ?? new Map<string, LookupSpec>()).map((lookup) => ({
      ...lookup,
      rows: Object.fromEntries(Object.entries(lookup.rows).sort(([left], [right]) => compare(left, right))),
    })),
    services: sorted(registries.services ?? new Map<string, ServiceSpec>()),
  };
}
