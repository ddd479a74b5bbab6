/**
 * The contract as plain data, which every emitter reads. `build-model.ts` makes it. This module must not read schemas, emit
 * anything or touch a file.
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

/** Code unit order: the same on every machine, unlike a locale's. */
export function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
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
