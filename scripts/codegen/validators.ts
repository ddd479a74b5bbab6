/**
 * Validators without eval: TypeBox's compiled code, generated at build time. One module holds one function per named type.
 * The functions call each other, and a bundler drops unused ones.
 */
import type { TSchema } from "typebox";
import { Code } from "typebox/compile";
import type { Field, Model, Node, TypeDef } from "./model.ts";
import { ContractError } from "./model.ts";
import { BANNER } from "./names.ts";

type Schema = Record<string, unknown>;
const bare = (entries: Schema): Schema => Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));

/** The schema that TypeBox compiles. A map becomes one always-matching pattern, which is removed again from the compiled text. */
function checkSchema(node: Node): Schema {
  switch (node.kind) {
    case "ref":
      return { $ref: node.name };
    case "string":
      return bare({ type: "string", minLength: node.minLength, maxLength: node.maxLength, pattern: node.pattern });
    case "integer":
      return { type: "integer", minimum: node.minimum, maximum: node.maximum };
    case "number":
      return bare({ type: "number", minimum: node.minimum, maximum: node.maximum });
    case "boolean":
      return { type: "boolean" };
    case "json":
      return {};
    case "literal":
      return { const: node.value };
    case "array":
      return { type: "array", items: checkSchema(node.items), maxItems: node.maxItems };
    case "map":
      return node.values.kind === "json" ? { type: "object" } : { type: "object", patternProperties: { "": checkSchema(node.values) } };
  }
}

function objectSchema(fields: readonly Field[], tag?: { readonly name: string; readonly value: string }): Schema {
  const properties: Record<string, Schema> = {};
  if (tag) properties[tag.name] = { const: tag.value };
  for (const field of fields) properties[field.name] = checkSchema(field.node);
  return {
    type: "object",
    required: [...(tag ? [tag.name] : []), ...fields.filter((field) => field.required).map((field) => field.name)],
    properties,
  };
}

function typeCheckSchema(type: TypeDef): Schema {
  switch (type.kind) {
    case "newtype":
      return checkSchema(type.node);
    case "enum":
      return { type: "string", enum: [...type.values] };
    case "struct":
      return objectSchema(type.fields);
    case "tagged":
      return { anyOf: type.arms.map((arm) => objectSchema(arm.fields, { name: type.tag, value: arm.value })) };
  }
}

const HELPER = `/** Characters as people count them in a limit: code points, not UTF-16 units. */
function codePoints(text) {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit <= 0xdbff && at + 1 < text.length) {
      const next = text.charCodeAt(at + 1);
      if (next >= 0xdc00 && next <= 0xdfff) at++;
    }
    count++;
  }
  return count;
}
`;

export function emitChecks(model: Model): string {
  if (model.types.length === 0) return `// ${BANNER}\nexport {};\n`;
  const context = Object.fromEntries(model.types.map((type) => [type.name, typeCheckSchema(type)])) as Record<string, TSchema>;
  // An artificial root that mentions every type: TypeBox gives each referenced type exactly one function.
  const root = { type: "object", properties: Object.fromEntries(model.types.map((type) => [type.name, { $ref: type.name }])) } as TSchema;
  const compiled = Code(context, root);
  const body = compiled.Code.split("\n");
  const functions = new Map<string, string>();
  for (const line of body) {
    const match = /^const (check_\d+) = (.*);$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined) functions.set(match[1], match[2]);
  }
  const names = new Map<string, string>();
  for (const match of (functions.get("check_0") ?? "").matchAll(/(check_\d+)\(value\.(\w+)\)/g)) {
    if (match[1] !== undefined && match[2] !== undefined) names.set(match[1], match[2]);
  }
  if (names.size !== model.types.length || functions.size !== model.types.length + 1) {
    throw new ContractError(
      `TypeBox compiled ${functions.size} functions for ${model.types.length} types: its output has changed, see scripts/codegen/validators.ts`,
    );
  }
  const patterns = new Map<string, string>();
  const render = (expression: string): string =>
    expression
      .replace(/check_\d+/g, (id) => `check${names.get(id) ?? ""}`)
      .replace(/!\(External\[(\d+)\]\.test\(\w+\)\)/g, (text, index: string) =>
        isAlways(compiled.External.variables[Number(index)]) ? "false" : text,
      )
      .replace(/External\[(\d+)\]/g, (_text, index: string) => patternName(compiled.External.variables[Number(index)]))
      .replaceAll("Guard.CodePointCount", "codePoints")
      // A value other than undefined is present.
      .replace(/(value\.(\w+) === undefined \|\| \()!\("\2" in value\) \|\| /g, "$1")
      .replaceAll(/\(!\(\(Number\.isFinite\((\w+(?:\.\w+|\["[^"]+"\])*)\) \|\| typeof \1 === "bigint"\)\) \|\| (\([^()]*\))\)/g, "$2");
  const isAlways = (variable: unknown): boolean => variable instanceof RegExp && (variable.source === "(?:)" || variable.source === "");
  const patternName = (variable: unknown): string => {
    if (!(variable instanceof RegExp))
      throw new ContractError("TypeBox wants a run-time value other than a pattern; see scripts/codegen/validators.ts");
    const source = variable.toString();
    const name = patterns.get(source) ?? `pattern${patterns.size}`;
    patterns.set(source, name);
    return name;
  };
  const checks = model.types.map((type) => {
    const id = [...names].find(([, name]) => name === type.name)?.[0] ?? "";
    return `export const check${type.name} = ${render(functions.get(id) ?? "")};\n`;
  });
  const text = checks.join("");
  if (/\bGuard\.|\bHashing\.|\bExternal\b|\beval\b|new Function/.test(text)) {
    throw new ContractError("the compiled validators need TypeBox at run time; see scripts/codegen/validators.ts");
  }
  const regexes = [...patterns].map(([source, name]) => `const ${name} = ${source};\n`).join("");
  return `// ${BANNER}\n/* eslint-disable */\n${HELPER}${regexes}${text}`;
}

/** The types of `checks.js`. */
export function emitCheckTypes(model: Model): string {
  const names = model.types.map((type) => type.name);
  return (
    `// ${BANNER}\nimport type {\n${names.map((name) => `  ${name},\n`).join("")}} from "../types.ts";\n\n` +
    names.map((name) => `export function check${name}(value: unknown): value is ${name};\n`).join("")
  );
}

const table = (name: string, doc: string, type: string, entries: readonly (readonly [string, string | null])[]): string =>
  `\n/** ${doc} */\nexport const ${name}: ${type} = {\n${entries.map(([key, check]) => `  ${JSON.stringify(key)}: ${check === null ? "null" : `check${check}`},\n`).join("")}};\n`;

export function emitCheckIndex(model: Model): string {
  const used = new Set<string>();
  for (const method of model.methods) {
    if (method.params !== null) used.add(method.params);
    used.add(method.result);
  }
  for (const event of model.events) used.add(event.payload);
  const sorted = [...used].sort();
  return (
    `// ${BANNER}\n/** Validators by method and event. Every \`checkX\` is in \`checks.js\`; import single ones from here. */\n` +
    `import type { EventName, MethodName } from "../methods.ts";\n` +
    (sorted.length === 0 ? "" : `import {\n${sorted.map((name) => `  check${name},\n`).join("")}} from "./checks.js";\n`) +
    `\nexport * from "./checks.js";\n\nexport type Check = (value: unknown) => boolean;\n` +
    table(
      "PARAMS_VALIDATORS",
      "Checks of params by method. Null: the method takes no params.",
      "Readonly<Record<MethodName, Check | null>>",
      model.methods.map((method) => [method.name, method.params]),
    ) +
    table(
      "RESULT_VALIDATORS",
      "Checks of results by method.",
      "Readonly<Record<MethodName, Check>>",
      model.methods.map((method) => [method.name, method.result]),
    ) +
    table(
      "EVENT_VALIDATORS",
      "Checks of payloads by event.",
      "Readonly<Record<EventName, Check>>",
      model.events.map((event) => [event.name, event.payload]),
    )
  );
}
