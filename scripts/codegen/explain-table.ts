/** The compact schema table that `protocol/runtime/explain.ts` walks. One JSON text, parsed only after a refusal. */
import type { Field, Model, Node, TypeDef } from "./model.ts";
import { BANNER } from "./names.ts";

/** Arrays, kind first; the reader is `protocol/runtime/explain.ts`, which documents them. */
type Cell = null | boolean | number | string | readonly Cell[] | { readonly [key: string]: Cell };

function cell(node: Node): Cell {
  switch (node.kind) {
    case "ref":
      return ["ref", node.name];
    case "string":
      return ["string", node.minLength ?? 0, node.maxLength ?? null, node.pattern ?? null];
    case "integer":
      return ["integer", node.minimum, node.maximum];
    case "number":
      return ["number", node.minimum ?? null, node.maximum ?? null];
    case "boolean":
      return ["boolean"];
    case "json":
      return ["json"];
    case "literal":
      return ["literal", node.value];
    case "array":
      return ["array", cell(node.items), node.maxItems];
    case "map":
      return ["map", cell(node.values)];
  }
}

/** Optional fields carry a `?` after their name, which no field name contains. */
const object = (fields: readonly Field[]): Cell =>
  Object.fromEntries(fields.map((field) => [`${field.name}${field.required ? "" : "?"}`, cell(field.node)]));

function typeCell(type: TypeDef): Cell {
  switch (type.kind) {
    case "newtype":
      return cell(type.node);
    case "enum":
      return ["enum", ...type.values];
    case "struct":
      return ["struct", object(type.fields)];
    case "tagged":
      return ["tagged", type.tag, Object.fromEntries(type.arms.map((arm) => [arm.value, object(arm.fields)]))];
  }
}

export function emitExplainTable(model: Model): string {
  const table = Object.fromEntries(model.types.map((type) => [type.name, typeCell(type)]));
  const names = model.types.map((type) => JSON.stringify(type.name)).join(" | ");
  return (
    `// ${BANNER}\n/** The table with which \`runtime/explain.ts\` explains an invalid value. JSON text: it is parsed only when needed. */\n` +
    `export type TypeName = ${names === "" ? "never" : names};\n\nexport const EXPLAIN_TABLE = ${JSON.stringify(JSON.stringify(table))};\n`
  );
}
