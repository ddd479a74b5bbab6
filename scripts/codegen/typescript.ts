/** TypeScript output: plain types, the method and event tables, errors and limits. Needs no TypeBox at run time. */
import type { AuditPolicy, Field, Model, Node, TypeDef } from "./model.ts";
import { BANNER, docLines, pascal, tsKey } from "./names.ts";

const header = (about: string): string => `// ${BANNER}\n/** ${about} */\n`;

/** A TypeScript comment. Empty when there is no text. */
export function comment(doc: string | undefined, indent = ""): string {
  if (doc === undefined || doc.trim() === "") return "";
  const lines = docLines(doc.replaceAll("*/", "*\\/"));
  if (lines.length === 1) return `${indent}/** ${lines[0] ?? ""} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

export function tsNode(node: Node): string {
  switch (node.kind) {
    case "ref":
      return node.name;
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "json":
      return "unknown";
    case "literal":
      return JSON.stringify(node.value);
    case "array":
      return `${tsNode(node.items)}[]`;
    case "map":
      return `Record<string, ${tsNode(node.values)}>`;
  }
}

/** A bound that the type does not show. */
function bound(node: Node): string | undefined {
  if (node.kind === "string" && node.maxLength !== undefined) return `at most ${node.maxLength} characters`;
  if (node.kind === "integer") {
    if (node.maximum !== Number.MAX_SAFE_INTEGER) return `${node.minimum} to ${node.maximum}`;
    return node.minimum === 0 ? undefined : `from ${node.minimum}`;
  }
  if (node.kind === "number" && (node.minimum !== undefined || node.maximum !== undefined)) {
    if (node.maximum === undefined) return `from ${node.minimum}`;
    return node.minimum === undefined ? `at most ${node.maximum}` : `${node.minimum} to ${node.maximum}`;
  }
  if (node.kind === "array") return `at most ${node.maxItems} items`;
  return undefined;
}

/** The sentence about a field: the description of the schema, then the bound. */
export function fieldDoc(node: Node): string | undefined {
  const parts = [node.doc?.trim().replace(/\.$/, ""), bound(node)].filter((part): part is string => part !== undefined && part !== "");
  const text = parts.join("; ");
  return text === "" ? undefined : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function objectType(fields: readonly Field[], tag?: { readonly name: string; readonly value: string }): string {
  if (fields.length === 0 && !tag) return "Record<never, never>";
  let out = "{\n";
  if (tag) out += `  ${tsKey(tag.name)}: ${JSON.stringify(tag.value)};\n`;
  for (const field of fields)
    out += `${comment(fieldDoc(field.node), "  ")}  ${tsKey(field.name)}${field.required ? "" : "?"}: ${tsNode(field.node)};\n`;
  return `${out}}`;
}

function typeDef(type: TypeDef, model: Model): string {
  const doc = comment(type.doc);
  switch (type.kind) {
    case "newtype":
      return (
        `${doc}export type ${type.name} = string & { readonly __brand: "${type.name}" };\n` +
        `/** Names a string that is known to be a ${type.name}; checks nothing. */\n` +
        `export const as${type.name} = (text: string): ${type.name} => text as ${type.name};\n`
      );
    case "enum":
      return (
        `${doc}export type ${type.name} = ${type.values.map((value) => JSON.stringify(value)).join(" | ")};\n` +
        `export const ${type.name}Values = [${type.values.map((value) => JSON.stringify(value)).join(", ")}] as const satisfies readonly ${type.name}[];\n`
      );
    case "struct":
      return `${doc}export type ${type.name} = ${objectType(type.fields)};\n`;
    case "tagged": {
      // Each arm has its own name, such as `FrameReq`, unless the contract already uses that name.
      const arms = type.arms.map((arm) => ({ arm, name: `${type.name}${pascal(arm.value)}` }));
      const named = arms.filter(({ name }) => !model.typeByName.has(name));
      const inline = (name: string): boolean => model.typeByName.has(name);
      return (
        named
          .map(
            ({ arm, name }) =>
              `/** ${type.name} where \`${type.tag}\` is \`${arm.value}\`. */\nexport type ${name} = ${objectType(arm.fields, { name: type.tag, value: arm.value })};\n`,
          )
          .join("") +
        `${doc}export type ${type.name} =\n${arms.map(({ arm, name }) => `  | ${inline(name) ? objectType(arm.fields, { name: type.tag, value: arm.value }) : name}`).join("\n")};\n`
      );
    }
  }
}

export function emitTypes(model: Model): string {
  const head = header("Every named type of the wire. Optional fields are absent, never null; readers ignore unknown fields.");
  return head + model.types.map((type) => `\n${typeDef(type, model)}`).join("");
}

const list = (values: readonly string[]): string => `[${values.map((value) => JSON.stringify(value)).join(", ")}]`;

/** The interfaces of the calls between Workers. */
export function emitServices(model: Model): string {
  const calls = model.services.flatMap((service) => service.calls);
  const used = [...new Set(calls.flatMap(({ params, result }) => [params, result]))].sort();
  let out = header("Calls between Workers over service bindings. The server checks the params, the caller checks the result.");
  if (used.length > 0) out += `import type {\n${used.map((name) => `  ${name},\n`).join("")}} from "./types.ts";\n`;
  for (const { name, doc, calls } of model.services) {
    out += `\n${comment(doc)}export interface ${name} {\n`;
    for (const call of calls)
      out += `${comment(call.doc, "  ")}  ${call.name}(params: ${call.params}): Promise<${call.result}${call.list ? "[]" : ""}>;\n`;
    out += "}\n";
  }
  return out;
}

const auditText = (audit: AuditPolicy): string =>
  typeof audit === "string" ? JSON.stringify(audit) : `{ target: ${JSON.stringify(audit.target)} }`;

export function emitMethods(model: Model, print: string): string {
  const used = new Set<string>();
  for (const method of model.methods) {
    if (method.params !== null) used.add(method.params);
    used.add(method.result);
  }
  for (const event of model.events) used.add(event.payload);
  const callers = [...new Set([...model.methods.flatMap((method) => method.callers), ...model.events.flatMap((event) => event.to)])].sort();
  const scopes = [...new Set(model.methods.map((method) => method.scope))].sort();
  const union = (values: readonly string[]): string =>
    values.length === 0 ? "never" : values.map((value) => JSON.stringify(value)).join(" | ");
  let out = header("The method and event tables: callers, scopes and types. Authorisation reads only these tables.");
  out += `import type { ErrorReason } from "./errors.ts";\n`;
  if (used.size > 0)
    out += `import type {\n${[...used]
      .sort()
      .map((name) => `  ${name},\n`)
      .join("")}} from "./types.ts";\n`;
  out += `\n/** Same fingerprint, same contract (prose aside). Travels in \`connect\`. */\nexport const PROTOCOL_FINGERPRINT = "${print}";\n`;
  out += `\n/** What a connection was authenticated as. */\nexport type Caller = ${union(callers)};\n/** What the token of a client must grant; a method that no client calls has its caller here. */\nexport type Scope = ${union(scopes)};\n`;
  out += `
/**
 * The audit entry of a call. \`none\`: no entry. \`{target}\`: one entry, which names the value of that parameter (null: no
 * parameter). \`own\`: the handler writes the entry.
 */
export type AuditPolicy = "none" | "own" | { readonly target: string | null };

export interface MethodInfo {
  /** Name of the params type, or null when the method takes none. */
  readonly params: string | null;
  readonly result: string;
  readonly callers: readonly Caller[];
  readonly scope: Scope;
  readonly audit: AuditPolicy;
  /** Reasons beside those that every method may answer with. */
  readonly errors: readonly ErrorReason[];
  /** The answer may come after other frames. */
  readonly deferred: boolean;
  /** Sending the same request again has no further effect. */
  readonly idempotent: boolean;
}
export interface EventInfo {
  readonly payload: string;
  readonly to: readonly Caller[];
}
`;
  out += "\nexport const METHODS = {\n";
  for (const method of model.methods) {
    out += comment(method.doc, "  ");
    out += `  ${JSON.stringify(method.name)}: {\n    params: ${JSON.stringify(method.params)},\n    result: ${JSON.stringify(method.result)},\n    callers: ${list(method.callers)},\n    scope: ${JSON.stringify(method.scope)},\n    audit: ${auditText(method.audit)},\n`;
    out += `    errors: ${list([...method.errors].sort())},\n    deferred: ${method.deferred},\n    idempotent: ${method.idempotent},\n  },\n`;
  }
  out += "} as const satisfies Record<string, MethodInfo>;\n";
  out += "\nexport const EVENTS = {\n";
  for (const event of model.events) {
    out += `${comment(event.doc, "  ")}  ${JSON.stringify(event.name)}: { payload: ${JSON.stringify(event.payload)}, to: ${list(event.to)} },\n`;
  }
  out += "} as const satisfies Record<string, EventInfo>;\n";
  out += "\n/** The types behind the table; `undefined` params mean that the method takes none. */\nexport interface MethodTypes {\n";
  for (const method of model.methods)
    out += `  ${JSON.stringify(method.name)}: { params: ${method.params ?? "undefined"}; result: ${method.result} };\n`;
  out += "}\nexport interface EventTypes {\n";
  for (const event of model.events) out += `  ${JSON.stringify(event.name)}: ${event.payload};\n`;
  out += `}
export type MethodName = keyof MethodTypes;
export type ParamsOf<M extends MethodName> = MethodTypes[M]["params"];
export type ResultOf<M extends MethodName> = MethodTypes[M]["result"];
export type EventName = keyof EventTypes;
export type PayloadOf<E extends EventName> = EventTypes[E];

export const isMethodName = (name: string): name is MethodName => Object.hasOwn(METHODS, name);
export const isEventName = (name: string): name is EventName => Object.hasOwn(EVENTS, name);
`;
  return out;
}

export function emitErrors(model: Model): string {
  const blames = [...new Set(model.errors.map((error) => error.blame))].sort();
  let out = header(
    "The one table of errors: what programs compare (`reason`), who is to blame, whether to retry, and two texts for a person: what happened and what to do next.",
  );
  out += `
export interface ErrorInfo {
  /** The number on the wire. */
  readonly code: number;
  readonly blame: ${blames.length === 0 ? "never" : blames.map((blame) => JSON.stringify(blame)).join(" | ")};
  readonly retryable: boolean;
  readonly http: number;
  /** Exit status of the command line. */
  readonly exit: number;
  /** What happened. */
  readonly text: string;
  /** What to do next. */
  readonly hint: string;
}

export const ERRORS = {
`;
  for (const error of model.errors) {
    out += `  ${JSON.stringify(error.reason)}: {\n    code: ${error.code},\n    blame: ${JSON.stringify(error.blame)},\n    retryable: ${error.retryable},\n    http: ${error.http},\n    exit: ${error.exit},\n    text: ${JSON.stringify(error.text)},\n    hint: ${JSON.stringify(error.hint)},\n  },\n`;
  }
  out += `} as const satisfies Record<string, ErrorInfo>;

export type ErrorReason = keyof typeof ERRORS;
export const isErrorReason = (reason: string): reason is ErrorReason => Object.hasOwn(ERRORS, reason);
`;
  return out;
}

export function emitLimits(model: Model): string {
  let out = `${header("The one table of limits; the unit is the last word of the name.")}\nexport const LIMITS = {\n`;
  for (const limit of model.limits) out += `${comment(limit.doc, "  ")}  ${tsKey(limit.name)}: ${limit.value},\n`;
  return `${out}} as const;\n\nexport type LimitName = keyof typeof LIMITS;\n`;
}

/** Names that `types.ts` exports beside the types, for the check that nothing is exported twice. */
export function exportedNames(model: Model): string[] {
  return model.types.flatMap((type) => {
    if (type.kind === "newtype") return [type.name, `as${type.name}`];
    if (type.kind === "enum") return [type.name, `${type.name}Values`];
    if (type.kind === "tagged")
      return [type.name, ...type.arms.map((arm) => `${type.name}${pascal(arm.value)}`).filter((name) => !model.typeByName.has(name))];
    return [type.name];
  });
}
