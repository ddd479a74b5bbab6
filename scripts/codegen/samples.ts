/** Valid values for any type of the contract: the smallest one and a full one. Deterministic. */
import { type Arm, ContractError, type Field, type Model, type Node, type TypeDef } from "./model.ts";
import { BY_FIELD, BY_FIELD_JSON, BY_FIELD_NUMBER, BY_PLACE, BY_TYPE } from "./sample-values.ts";

export type Mode = "minimal" | "full";
const EXAMPLE_TIME = 1764576000000;

const clamp = (value: number, minimum: number, maximum: number): number => Math.min(Math.max(value, minimum), maximum);

function sampleString(node: Extract<Node, { kind: "string" }>, field: string, type: string | undefined, owner: string | undefined): string {
  const wished = (type === undefined ? undefined : BY_TYPE[type]) ?? BY_PLACE[`${owner ?? ""}.${field}`] ?? BY_FIELD[field] ?? "example";
  const fits = (text: string): boolean =>
    text.length >= (node.minLength ?? 0) &&
    text.length <= (node.maxLength ?? Number.POSITIVE_INFINITY) &&
    (node.pattern === undefined || new RegExp(node.pattern, "u").test(text));
  const candidates = [wished, wished.slice(0, node.maxLength), "example", "https://example.org", "a", "1".repeat(node.minLength ?? 1)];
  const text = candidates.find(fits);
  if (text === undefined) throw new ContractError(`no example string fits ${type ?? field}; add one to scripts/codegen/sample-values.ts`);
  return text;
}

export function sampleNode(model: Model, node: Node, field: string, mode: Mode, path: readonly string[]): unknown {
  switch (node.kind) {
    case "ref": {
      const type = model.typeByName.get(node.name);
      if (!type) throw new ContractError(`there is no type ${node.name}`);
      return sample(model, type, path.includes(node.name) ? "minimal" : mode, field, path);
    }
    case "string":
      return sampleString(node, field, undefined, path.at(-1));
    case "integer":
      if (/(At|timestamp)$/.test(field) && node.maximum >= EXAMPLE_TIME) return EXAMPLE_TIME;
      return clamp(Math.round(BY_FIELD_NUMBER[field] ?? 3), node.minimum, node.maximum);
    case "number":
      return clamp(BY_FIELD_NUMBER[field] ?? 0.5, node.minimum ?? Number.NEGATIVE_INFINITY, node.maximum ?? Number.POSITIVE_INFINITY);
    case "boolean":
      return true;
    case "literal":
      return node.value;
    case "json":
      return BY_FIELD_JSON[field] ?? { note: "any JSON" };
    case "array":
      return mode === "minimal" || node.maxItems === 0 ? [] : [sampleNode(model, node.items, field, mode, path)];
    case "map": {
      if (mode === "minimal") return {};
      const whole = BY_FIELD_JSON[field];
      if (node.values.kind === "json" && typeof whole === "object") return whole;
      return { example: sampleNode(model, node.values, field, mode, path) };
    }
  }
}

export const sampleFields = (model: Model, fields: readonly Field[], mode: Mode, path: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    fields
      .filter((field) => mode === "full" || field.required)
      .map((field) => [field.name, sampleNode(model, field.node, field.name, mode, path)]),
  );

export const sampleArm = (model: Model, tag: string, arm: Arm, mode: Mode, path: readonly string[]): Record<string, unknown> => ({
  [tag]: arm.value,
  ...sampleFields(model, arm.fields, mode, path),
});

/** One valid value. A union shows its first arm; recursion ends in the smallest value. */
export function sample(model: Model, type: TypeDef, mode: Mode, field = "", path: readonly string[] = []): unknown {
  const below = [...path, type.name];
  switch (type.kind) {
    case "newtype":
      return sampleString(type.node, field, type.name, path.at(-1));
    case "enum":
      return type.values[0];
    case "struct":
      return sampleFields(model, type.fields, mode, below);
    case "tagged": {
      const [arm] = type.arms;
      if (!arm) throw new ContractError(`${type.name} has no arms`);
      return sampleArm(model, type.tag, arm, mode, below);
    }
  }
}
