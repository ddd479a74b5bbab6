/** The reference page: every method, event, type, error and limit, readable without the code. */
import type { Field, MethodSpec, Model, Node, TypeDef } from "./model.ts";
import { eachRef, fieldsOf } from "./model.ts";
import { BANNER, docLines } from "./names.ts";
import { fieldDoc } from "./typescript.ts";

const anchor = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");
const link = (name: string): string => `[${name}](#${anchor(name)})`;
/** Text inside a table cell. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ").replaceAll("<", "&lt;");
const code = (text: string): string => `\`${text}\``;

function nodeType(node: Node): string {
  switch (node.kind) {
    case "ref":
      return link(node.name);
    case "literal":
      return code(JSON.stringify(node.value));
    case "array":
      return `list of ${nodeType(node.items)}`;
    case "map":
      return node.values.kind === "json" ? "object" : `map of ${nodeType(node.values)}`;
    case "json":
      return "any JSON";
    default:
      return node.kind;
  }
}

function fieldTable(fields: readonly Field[]): string {
  if (fields.length === 0) return "No fields.\n";
  const rows = fields.map(
    (field) => `| ${code(field.name)} | ${nodeType(field.node)} | ${field.required ? "yes" : ""} | ${cell(fieldDoc(field.node) ?? "")} |\n`,
  );
  return `| field | type | required | notes |\n|---|---|---|---|\n${rows.join("")}`;
}

function body(type: TypeDef): string {
  switch (type.kind) {
    case "newtype": {
      const { minLength, maxLength, pattern } = type.node;
      const bounds = [
        `${minLength ?? 0} to ${maxLength ?? "any number of"} characters`,
        ...(pattern === undefined ? [] : [`matches ${code(pattern)}`]),
      ];
      return `String, ${bounds.join(", ")}.\n`;
    }
    case "enum":
      return `One of ${type.values.map(code).join(", ")}.\n`;
    case "struct":
      return fieldTable(type.fields);
    case "tagged":
      return `Told apart by ${code(type.tag)}.\n\n${type.arms.map((arm) => `${code(`${type.tag}: ${JSON.stringify(arm.value)}`)}\n\n${fieldTable(arm.fields)}`).join("\n")}`;
  }
}

function auditNote({ audit }: MethodSpec): string {
  if (audit === "none") return "Not audited.";
  if (audit === "own") return "Audited by its handler.";
  return audit.target === null ? "Audited." : `Audited with ${code(audit.target)}.`;
}

export function emitMarkdown(model: Model, print: string): string {
  // A type that exactly one method or event mentions is shown there only.
  const mentions = new Map<string, number>();
  const mention = (name: string | null, weight: number): void => {
    if (name !== null) mentions.set(name, (mentions.get(name) ?? 0) + weight);
  };
  for (const type of model.types) for (const field of fieldsOf(type)) eachRef(field.node, (name) => mention(name, 2));
  for (const method of model.methods) {
    mention(method.params, 1);
    mention(method.result, 1);
  }
  for (const event of model.events) mention(event.payload, 1);
  const inlined = new Set([...mentions].filter(([, weight]) => weight === 1).map(([name]) => name));
  const shape = (name: string): string => {
    const type = model.typeByName.get(name);
    return type && inlined.has(name) ? body(type) : `${link(name)}\n`;
  };
  const paragraph = (text: string): string => docLines(text).join("\n");
  let out = `<!-- ${BANNER} -->\n# Wire reference\n\nContract fingerprint ${code(print)}. Behaviour is in SPEC.md; this page lists the shapes.\n\n`;
  out += `${model.methods.length} [methods](#methods), ${model.events.length} [events](#events), ${model.types.length} [types](#types), ${model.errors.length} [errors](#errors), ${model.limits.length} [limits](#limits).\n`;
  out += "\n## Methods\n\n| method | callers | scope | what |\n|---|---|---|---|\n";
  for (const method of model.methods) {
    const first = /^.*?[.!](?= |$)/.exec(method.doc.replaceAll("\n", " "))?.[0] ?? method.doc;
    out += `| [${method.name}](#${anchor(method.name)}) | ${method.callers.join(", ")} | ${method.scope} | ${cell(first)} |\n`;
  }
  for (const method of model.methods) {
    const notes = [
      `Callers: ${method.callers.join(", ")}. Scope: ${method.scope}.`,
      auditNote(method),
      method.deferred ? "Deferred: the answer may come after other frames." : "",
      method.idempotent ? "Idempotent: sending it again has no further effect." : "",
    ];
    out += `\n### ${method.name}\n\n${paragraph(method.doc)}\n\n${notes.filter((note) => note !== "").join(" ")}\n`;
    out += `\n**Params**\n\n${method.params === null ? "None.\n" : shape(method.params)}`;
    out += `\n**Result**\n\n${shape(method.result)}`;
    if (method.errors.length > 0) out += `\n**Errors**: ${[...method.errors].sort().map(code).join(", ")}.\n`;
  }
  out += "\n## Events\n";
  for (const event of model.events) {
    out += `\n### ${event.name} (event)\n\n${paragraph(event.doc)}\n\nTo: ${event.to.join(", ")}.\n\n${shape(event.payload)}`;
  }
  out += "\n## Types\n";
  for (const type of model.types) {
    if (!inlined.has(type.name)) out += `\n### ${type.name}\n\n${paragraph(type.doc)}\n\n${body(type)}`;
  }
  out +=
    "\n## Errors\n\nOn the wire: `{code, reason, message, hint?, details?, retryable?}`. Programs compare `reason`.\n\n| reason | code | blame | retry | HTTP | exit | what happened | what to do next |\n|---|---|---|---|---|---|---|---|\n";
  for (const error of model.errors) {
    out += `| ${code(error.reason)} | ${error.code} | ${error.blame} | ${error.retryable ? "yes" : ""} | ${error.http} | ${error.exit} | ${cell(error.text)} | ${cell(error.hint)} |\n`;
  }
  out += "\n## Limits\n\n| limit | value | what |\n|---|---|---|\n";
  for (const limit of model.limits) out += `| ${code(limit.name)} | ${limit.value} | ${cell(limit.doc)} |\n`;
  if (model.lookups.length > 0) out += "\n## Lookups\n";
  for (const { name, doc, result, rows, otherwise } of model.lookups) {
    out += `\n### ${name}\n\n${paragraph(doc)}\n\n| name | ${link(result)} |\n|---|---|\n`;
    for (const [key, value] of Object.entries(rows)) out += `| ${code(key)} | ${code(value)} |\n`;
    out += `| any other | ${code(otherwise)} |\n`;
  }
  return out;
}
