/** Examples for any type of the contract: valid ones, and ones with exactly one mistake. Deterministic. They seed protocol/golden. */
import type { Field, Model, Node, TypeDef } from "./model.ts";
import { sample, sampleArm, sampleFields, sampleNode } from "./samples.ts";

/** No example exceeds a larger limit than this: the file would be too large. */
const LONGEST_EXAMPLE = 2048;
const LARGEST_LIST = 64;

/** How an invalid example differs from a valid one. serde sees every mistake except `bound`. */
export type Mistake = "missing" | "type" | "null" | "bound" | "value" | "tag";
/** One line of protocol/golden/<Type>.jsonl. */
export type Example =
  /** `minimal`, `full`, the value of an enum, or `<arm>-minimal`. Unique among the valid examples of the type. */
  | { readonly name: string; readonly valid: true; readonly value: unknown }
  /** The mistake and where it is: `missing-id`, `bound-runId-in-delta`. Unique among the invalid examples of the type. */
  | { readonly name: string; readonly valid: false; readonly mistake: Mistake; readonly value: unknown };

const valid = (name: string, value: unknown): Example => ({ name, valid: true, value });
const invalid = (mistake: Mistake, place: string, value: unknown): Example => ({
  name: place === "" ? mistake : `${mistake}-${place}`,
  valid: false,
  mistake,
  value,
});

/** A value of another kind. Never a list: serde reads a list as a struct without field names. */
const wrongKind = (model: Model, node: Node): unknown => {
  if (node.kind === "json") return undefined;
  const target = node.kind === "ref" ? model.typeByName.get(node.name) : undefined;
  const isString =
    node.kind === "string" ||
    (node.kind === "literal" && typeof node.value === "string") ||
    target?.kind === "newtype" ||
    target?.kind === "enum";
  return isString ? 7 : "not this";
};

/** A value just over a limit, when one exists that is small enough to keep as a file. */
function overLimit(model: Model, node: Node, field: string): unknown {
  const target = node.kind === "ref" ? model.typeByName.get(node.name) : undefined;
  const bounded = target?.kind === "newtype" ? target.node : node;
  if (bounded.kind === "string" && bounded.maxLength !== undefined && bounded.maxLength < LONGEST_EXAMPLE)
    return "x".repeat(bounded.maxLength + 1);
  if (bounded.kind === "integer") return bounded.maximum === Number.MAX_SAFE_INTEGER ? bounded.minimum - 1 : bounded.maximum + 1;
  if (bounded.kind === "number" && bounded.maximum !== undefined) return bounded.maximum + 1;
  if (bounded.kind === "number" && bounded.minimum !== undefined) return bounded.minimum - 1;
  if (bounded.kind === "literal" && typeof bounded.value === "boolean") return !bounded.value;
  if (bounded.kind === "array" && bounded.maxItems <= LARGEST_LIST)
    return Array.from({ length: bounded.maxItems + 1 }, () => sampleNode(model, bounded.items, field, "minimal", []));
  return undefined;
}

/** Values with one mistake each. `base` is valid; `where` follows the name of the field. */
function mistakes(model: Model, fields: readonly Field[], base: Readonly<Record<string, unknown>>, where = ""): Example[] {
  const found: Example[] = [];
  const add = (mistake: Mistake, field: Field | undefined, value: unknown): void => {
    if (field && value !== undefined) found.push(invalid(mistake, field.name + where, { ...base, [field.name]: value }));
  };
  const required = fields.find((field) => field.required);
  if (required) {
    const { [required.name]: _gone, ...rest } = base;
    found.push(invalid("missing", required.name + where, rest));
  }
  const typed = fields.find((field) => field.node.kind !== "json");
  if (typed) add("type", typed, wrongKind(model, typed.node));
  const optional = fields.find((field) => !field.required && field.node.kind !== "json");
  add("null", optional, optional ? null : undefined);
  const limited = fields.find((field) => overLimit(model, field.node, field.name) !== undefined);
  if (limited) add("bound", limited, overLimit(model, limited.node, limited.name));
  return found;
}

const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);

/** Every example of a type, valid ones first within each shape. */
export function examples(model: Model, type: TypeDef): Example[] {
  switch (type.kind) {
    case "newtype":
      return [valid("minimal", sample(model, type, "minimal")), invalid("type", "", 7), invalid("bound", "empty", "")];
    case "enum":
      return [
        ...type.values.map((value) => valid(value.replaceAll(/[^A-Za-z0-9_-]/g, "-"), value)),
        invalid("value", "", "no-such-value"),
        invalid("type", "", 7),
      ];
    case "struct": {
      const minimal = sampleFields(model, type.fields, "minimal", [type.name]);
      const full = sampleFields(model, type.fields, "full", [type.name]);
      return [
        valid("minimal", minimal),
        ...(same(minimal, full) ? [] : [valid("full", full)]),
        ...mistakes(model, type.fields, minimal),
        invalid("type", "", "not this"),
      ];
    }
    case "tagged": {
      const arms = type.arms.flatMap((arm) => {
        const minimal = sampleArm(model, type.tag, arm, "minimal", [type.name]);
        const full = sampleArm(model, type.tag, arm, "full", [type.name]);
        return [
          valid(`${arm.value}-minimal`, minimal),
          ...(same(minimal, full) ? [] : [valid(`${arm.value}-full`, full)]),
          ...mistakes(model, arm.fields, minimal, `-in-${arm.value}`),
        ];
      });
      const [first] = type.arms;
      const { [type.tag]: _tag, ...untagged } = first ? sampleArm(model, type.tag, first, "minimal", [type.name]) : {};
      return [...arms, invalid("tag", "unknown", { ...untagged, [type.tag]: "no-such-arm" }), invalid("tag", "missing", untagged)];
    }
  }
}
