/** Reads the registered schemas of `protocol/src/dsl.ts` as types of the model. Refuses everything outside the vocabulary, by path. */
import type { NamedSchema } from "../../protocol/src/dsl.ts";
import { isJsonObject, type JsonObject } from "../../protocol/runtime/json-object.ts";
import { ContractError, type Field, type Node, type TypeDef } from "./model.ts";

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;
export const TYPE_NAME = /^[A-Z][A-Za-z0-9]{0,79}$/;
/** Names that every JavaScript object answers to: `"x" in value` would be true for an empty object. */
const INHERITED = new Set(Object.getOwnPropertyNames(Object.prototype));

const optionalNumber = (raw: JsonObject, key: string): number | undefined => (typeof raw[key] === "number" ? raw[key] : undefined);

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
function toNode(schema: unknown, path: string): Node {
  if (!isJsonObject(schema)) throw new ContractError(`${path}: expected a schema`);
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
      if (!isJsonObject(patterns) || schema["properties"] !== undefined) throw new ContractError(`${path}: name the object with struct`);
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
  if (!isJsonObject(schema) || !isJsonObject(schema["properties"])) throw new ContractError(`${path}: expected an object schema`);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return Object.entries(schema["properties"]).map(([name, property]) => {
    if (!FIELD_NAME.test(name) || INHERITED.has(name)) throw new ContractError(`${path}.${name}: not a usable field name`);
    return { name, node: toNode(property, `${path}.${name}`), required: required.has(name) };
  });
}

/** One named type. Throws ContractError. */
export function toType(named: NamedSchema): TypeDef {
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
      const values: unknown = isJsonObject(schema) ? schema["enum"] : undefined;
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
      const schemas: unknown = isJsonObject(schema) ? schema["anyOf"] : undefined;
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
