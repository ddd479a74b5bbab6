/**
 * JSON Schema 2020-12 of the whole contract, with the methods, events, errors and limits beside it, and the fingerprint
 * that peers compare. Releases freeze this file under `protocol/released/`.
 */
import { createHash } from "node:crypto";
import type { Field, Model, Node, TypeDef } from "./model.ts";
import { BANNER, sortKeys } from "./names.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type JsonObject = { readonly [key: string]: Json };
/** How a reference is written: full JSON pointers in the published schema, bare names for TypeBox's context. */
export type RefStyle = (name: string) => string;
export const pointerRef: RefStyle = (name) => `#/$defs/${name}`;

const doc = (text: string | undefined): JsonObject => (text === undefined || text === "" ? {} : { description: text });
const present = (entries: Readonly<Record<string, Json | undefined>>): JsonObject => {
  const out: Record<string, Json> = {};
  for (const [key, value] of Object.entries(entries)) if (value !== undefined) out[key] = value;
  return out;
};

export function nodeSchema(node: Node, ref: RefStyle): JsonObject {
  switch (node.kind) {
    case "ref":
      return { $ref: ref(node.name), ...doc(node.doc) };
    case "string":
      return present({ type: "string", minLength: node.minLength, maxLength: node.maxLength, pattern: node.pattern, ...doc(node.doc) });
    case "integer":
      return { type: "integer", minimum: node.minimum, maximum: node.maximum, ...doc(node.doc) };
    case "number":
      return present({ type: "number", minimum: node.minimum, maximum: node.maximum, ...doc(node.doc) });
    case "boolean":
      return { type: "boolean", ...doc(node.doc) };
    case "json":
      return { ...doc(node.doc) };
    case "literal":
      return { const: node.value, ...doc(node.doc) };
    case "array":
      return { type: "array", items: nodeSchema(node.items, ref), maxItems: node.maxItems, ...doc(node.doc) };
    case "map":
      return { type: "object", additionalProperties: nodeSchema(node.values, ref), ...doc(node.doc) };
  }
}

function objectSchema(fields: readonly Field[], ref: RefStyle, tag?: { readonly name: string; readonly value: string }): JsonObject {
  const properties: Record<string, Json> = {};
  if (tag) properties[tag.name] = { const: tag.value };
  for (const field of fields) properties[field.name] = nodeSchema(field.node, ref);
  const required = [...(tag ? [tag.name] : []), ...fields.filter((field) => field.required).map((field) => field.name)];
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

export function typeSchema(type: TypeDef, ref: RefStyle): JsonObject {
  switch (type.kind) {
    case "newtype":
      return { "x-kind": "newtype", ...doc(type.doc), ...nodeSchema(type.node, ref) };
    case "enum":
      return { "x-kind": "enum", ...doc(type.doc), type: "string", enum: [...type.values] };
    case "struct":
      return { "x-kind": "struct", ...doc(type.doc), ...objectSchema(type.fields, ref) };
    case "tagged":
      return {
        "x-kind": "tagged",
        "x-tag": type.tag,
        ...doc(type.doc),
        oneOf: type.arms.map((arm) => objectSchema(arm.fields, ref, { name: type.tag, value: arm.value })),
      };
  }
}

const keyed = <T>(items: readonly T[], key: (item: T) => string, value: (item: T) => JsonObject): JsonObject =>
  Object.fromEntries(items.map((item) => [key(item), value(item)]));

export function protocolSchema(model: Model): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "GSV wire protocol",
    $comment: BANNER,
    $defs: keyed(
      model.types,
      (type) => type.name,
      (type) => typeSchema(type, pointerRef),
    ),
    "x-methods": keyed(
      model.methods,
      (method) => method.name,
      (method) => ({
        description: method.doc,
        params: method.params === null ? null : { $ref: pointerRef(method.params) },
        result: { $ref: pointerRef(method.result) },
        callers: [...method.callers],
        scope: method.scope,
        audit: typeof method.audit === "string" ? method.audit : { target: method.audit.target },
        errors: [...method.errors].sort(),
        deferred: method.deferred,
        idempotent: method.idempotent,
      }),
    ),
    "x-events": keyed(
      model.events,
      (event) => event.name,
      (event) => ({
        description: event.doc,
        payload: { $ref: pointerRef(event.payload) },
        to: [...event.to],
      }),
    ),
    "x-errors": keyed(
      model.errors,
      (error) => error.reason,
      (error) => ({
        code: error.code,
        blame: error.blame,
        retryable: error.retryable,
        http: error.http,
        exit: error.exit,
        text: error.text,
        hint: error.hint,
      }),
    ),
    "x-limits": keyed(
      model.limits,
      (limit) => limit.name,
      (limit) => ({ value: limit.value, description: limit.doc }),
    ),
  };
}

const PROSE = new Set(["description", "text", "hint", "$comment", "title"]);
/** Texts for people are not part of the contract. A field that is named `text` or `hint` is kept: its schema is an object. */
function withoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutProse);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, item]) => !(PROSE.has(key) && typeof item === "string"))
      .map(([key, item]) => [key, withoutProse(item)]),
  );
}

/** First 16 hex digits of the SHA-256 of the canonical schema: same fingerprint, same contract. */
export function fingerprint(schema: JsonObject): string {
  const canonical = JSON.stringify(sortKeys(withoutProse(schema)));
  return createHash("sha256").update(canonical).digest("hex").slice(0, 16);
}
