/**
 * Reads an agent.yaml and lists everything that is wrong with it (rules AD1 to AD3). PURE; never throws. The text comes from a person, so
 * problems name path and line, never the value.
 */
import type { AgentDefinition, DefinitionProblem } from "../../../protocol/gen/types.ts";
import { checkAgentDefinition } from "../../../protocol/gen/validators/checks.js";
import { type Cell, fieldsOf, resolveCell } from "../../../protocol/runtime/cells.ts";
import { explain } from "../../../protocol/runtime/explain.ts";
import { isJsonObject, type JsonObject } from "../../../protocol/runtime/json-object.ts";
import { nearest } from "../../../protocol/runtime/nearest.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { dangerousIn, visible } from "../prompt/hidden.ts";
import { parsePath, type WorkspacePath } from "../storage/keys.ts";
import { readStrictYaml } from "../storage/strict-yaml.ts";
import { REMEMBER } from "../tools/memory-tools.ts";
import { NATIVE_PREFIX, SEPARATOR } from "../tools/registry.ts";
import { allows, EMIT, isAllowed, REPORT_LOW_CONFIDENCE } from "./definition.ts";
import { delegationTool } from "./delegation.ts";

export const MAX_DEFINITION_BYTES = 65_536;
const MAX_DEPTH = 8;
const MAX_PROBLEMS = 64;
const SHOWN_CHARS = 64;
const NEEDS_TOPICS = "Name topics in `events.emit` to give the agent this tool.";
const NEEDS_ESCALATION = "Add `escalation: [{ when: low_confidence, to: human_review }]` to give the agent this tool.";
const NEEDS_LONG_TERM = "Set `memory_config.long_term_enabled: true` to give the agent this tool.";

/** The existing things that a definition may name. */
export interface Known {
  /** The text of a file in the agent's folder; undefined: there is none. */
  readonly fileOf: (path: WorkspacePath) => string | undefined;
  readonly nativeTools: ReadonlySet<string>;
  /** The names of the known topics of domain events. */
  readonly topics: ReadonlySet<string>;
  /** Those that take a question: `{question, reason, details}`. */
  readonly questionTopics: ReadonlySet<string>;
  /** The name of each agent: that of its definition in force, else its id. */
  readonly names: ReadonlyMap<string, string>;
  /** The `sub_agents` of each definition in force, by its name. */
  readonly below: ReadonlyMap<string, readonly string[]>;
}
export type ReadDefinition =
  /** `files`: those that the definition names. */
  | { readonly ok: true; readonly definition: AgentDefinition; readonly files: readonly WorkspacePath[] }
  | { readonly ok: false; readonly problems: readonly DefinitionProblem[] };
type Found = Omit<DefinitionProblem, "line">;
type Path = readonly (string | number)[];

/** The agent's id and the files that a text names, as far as they can be read: what must be loaded before `readDefinition`. */
export function namedIn(text: string): { readonly agentId: string | undefined; readonly files: readonly WorkspacePath[] } {
  const read = utf8Bytes(text) > MAX_DEFINITION_BYTES ? undefined : readStrictYaml(text, { maxDepth: MAX_DEPTH });
  const value = read?.kind === "value" ? read.value : undefined;
  const id = partOf(partOf(value, "metadata"), "id");
  const file = fileNameOf(partOf(partOf(value, "core_context"), "system_prompt"));
  const path = file === undefined ? undefined : parsePath(file.replace(/^\.\//, ""));
  return { agentId: typeof id === "string" ? id : undefined, files: path?.ok === true ? [path.value] : [] };
}

export function readDefinition(text: string, known: Known): ReadDefinition {
  if (utf8Bytes(text) > MAX_DEFINITION_BYTES) return whole(`The file has more than ${MAX_DEFINITION_BYTES} bytes.`);
  const danger = dangerousIn(text);
  if (danger !== undefined)
    return whole(`There is a hidden character (${danger.code}) that makes the text read differently than it looks.`, danger.line);
  const read = readStrictYaml(text, { maxDepth: MAX_DEPTH });
  if (read.kind === "unreadable") return whole(`The file ${read.problem}`);
  if (read.kind === "flawed")
    return { ok: false, problems: read.problems.map(({ line, problem }) => ({ path: "", line, problem: upper(problem) })) };
  if (!isJsonObject(read.value)) return whole("The file must be keys and values, such as `metadata:`.");

  const problems: Found[] = [];
  const prompt = promptOf(read.value, known, problems);
  unknownKeys(["ref", "AgentDefinition"], prompt.value, [], problems);
  for (const { path, message } of explain("AgentDefinition", prompt.value, MAX_PROBLEMS))
    if (!problems.some((found) => found.path === path)) problems.push({ path, problem: `${upper(message)}.` });
  const { value } = prompt;
  const readable = fits(value) ? value : fittingPart(value, problems);
  if (readable !== undefined) {
    const told = new Set(problems.map(({ path }) => path));
    const isStandIn = (path: string): boolean => STANDS_IN.test(path) && problems.some((found) => STANDS_IN.test(found.path));
    // When a section has a mistake, the tools that it would give are not known.
    const toolsAreKnown = !problems.some(({ path }) => GIVES_TOOLS.test(path));
    const meant: Found[] = [];
    checkMeaning(readable, known, meant);
    problems.push(...meant.filter(({ path }) => !told.has(path) && !isStandIn(path) && (toolsAreKnown || !NAMES_TOOLS.test(path))));
  }
  if (problems.length === 0 && fits(value)) return { ok: true, definition: value, files: prompt.files };
  return {
    ok: false,
    problems: problems.slice(0, MAX_PROBLEMS).map((found) => ({ ...found, line: read.lineOf(stepsOf(found.path)) })),
  };
}
const STANDS_IN = /^(?:metadata|core_context)\b/;
const GIVES_TOOLS = /^(?:memory_config|events|escalation|sub_agents)\b/;
const NAMES_TOOLS = /^(?:tools\.allowed|autonomy\.requires_approval)\b/;
/** Stands for what a definition must have, so that the rest is checked too. */
const STAND_IN: JsonObject = { metadata: { id: "a", name: "a" }, core_context: { system_prompt: "-" } };
/** The definition without the field of each mistake, or else without its whole section. */
function fittingPart(value: JsonObject, problems: readonly Found[]): AgentDefinition | undefined {
  const paths = problems.map(({ path }) => stepsOf(path));
  const without = paths.reduce<JsonObject>((rest, path) => withoutField(rest, path), value);
  const broken = new Set(paths.map(([section]) => section));
  const sections = Object.fromEntries(Object.entries(without).filter(([section]) => !broken.has(section)));
  return [without, { ...STAND_IN, ...without }, { ...STAND_IN, ...sections }].find(fits);
}
/** Removes a whole field, never one entry of a list: the other entries must keep their numbers in the message. */
function withoutField(value: JsonObject, [key, ...rest]: Path): JsonObject {
  if (typeof key !== "string" || !Object.hasOwn(value, key)) return value;
  const { [key]: inner, ...others } = value;
  return rest.length > 0 && isJsonObject(inner) ? { ...others, [key]: withoutField(inner, rest) } : others;
}
const fits = (value: unknown): value is AgentDefinition => checkAgentDefinition(value);
const whole = (problem: string, line?: number): ReadDefinition => ({
  ok: false,
  problems: [{ path: "", problem, ...(line === undefined ? {} : { line }) }],
});
const upper = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);
const partOf = (value: unknown, key: string): unknown => (isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined);
const fileNameOf = (prompt: unknown): string | undefined => {
  const file = isJsonObject(prompt) && Object.keys(prompt).length === 1 ? partOf(prompt, "file") : undefined;
  return typeof file === "string" ? file : undefined;
};
const stepsOf = (path: string): Path =>
  path
    .split(/[.[\]]+/)
    .filter((step) => step !== "")
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
const written = (path: Path): string =>
  path.reduce<string>((text, step) => (typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`), "");

/** The value with the text of the prompt's file in its place. */
function promptOf(
  value: JsonObject,
  { fileOf }: Known,
  problems: Found[],
): { readonly value: JsonObject; readonly files: readonly WorkspacePath[] } {
  const core = partOf(value, "core_context");
  const file = fileNameOf(partOf(core, "system_prompt"));
  if (!isJsonObject(core) || file === undefined) return { value, files: [] };
  const path = "core_context.system_prompt";
  const withPrompt = (text: string): JsonObject => ({ ...value, core_context: { ...core, system_prompt: text } });
  const refused = (problem: string): { readonly value: JsonObject; readonly files: readonly WorkspacePath[] } => {
    problems.push({ path, problem });
    // Stands for the text, so that the rest is checked too.
    return { value: withPrompt("-"), files: [] };
  };
  const parsed = parsePath(file.replace(/^\.\//, ""));
  if (!parsed.ok) return refused("The file must be one of the agent's own folder, such as `./NAME.prompt.md`.");
  const text = fileOf(parsed.value);
  if (text === undefined) return refused(`There is no file \`${visible(parsed.value, SHOWN_CHARS)}\` beside agent.yaml.`);
  if (utf8Bytes(text) > MAX_DEFINITION_BYTES) return refused(`The file has more than ${MAX_DEFINITION_BYTES} bytes.`);
  if (text.trim() === "") return refused("The file is empty.");
  const danger = dangerousIn(text);
  if (danger !== undefined) return refused(`Line ${danger.line} of the file has a hidden character (${danger.code}).`);
  return { value: withPrompt(text), files: [parsed.value] };
}

/** The contract's readers pass over names that they do not know; in a file of a person such a name is a mistake. */
function unknownKeys(given: Cell, value: unknown, path: Path, problems: Found[]): void {
  const cell = resolveCell(given);
  if (cell[0] === "array" && Array.isArray(value)) {
    for (const [index, item] of value.entries()) unknownKeys(cell[1], item, [...path, index], problems);
    return;
  }
  if (cell[0] !== "struct" || !isJsonObject(value)) return;
  const fields = fieldsOf(cell[1]);
  for (const [key, item] of Object.entries(value)) {
    const field = fields.find(({ name }) => name === key);
    if (field !== undefined) {
      unknownKeys(field.cell, item, [...path, key], problems);
      continue;
    }
    const names = fields.map(({ name }) => name);
    const meant = nearest(key, names);
    problems.push({
      path: written([...path, visible(key, SHOWN_CHARS)]),
      problem: `There is no such key.${meant === undefined ? ` Keys here are ${names.join(", ")}.` : ` Did you mean \`${meant}\`?`}`,
    });
  }
}

/** Mistakes that the contract's types cannot express. */
function checkMeaning(definition: AgentDefinition, known: Known, problems: Found[]): void {
  const { nativeTools, names } = known;
  const { id, name } = definition.metadata;
  const other = [...names].find(([agentId, taken]) => taken === name && agentId !== id)?.[0];
  if (other !== undefined) problems.push({ path: "metadata.name", problem: `The agent ${other} has this name already.` });
  if (definition.core_context.system_prompt.trim() === "")
    problems.push({ path: "core_context.system_prompt", problem: "It is empty; say what the agent does." });
  const lists = [
    ["tools.allowed", definition.tools?.allowed ?? []],
    ["autonomy.requires_approval", definition.autonomy?.requires_approval ?? []],
  ] as const;
  for (const [path, list] of lists)
    for (const [index, tool] of list.entries()) {
      const needed = isAllowed(definition, tool) ? undefined : NEEDED.get(tool);
      const problem = needed ?? toolProblem(tool, nativeTools, definition.sub_agents);
      if (problem !== undefined) problems.push({ path: `${path}[${index}]`, problem });
    }
  for (const list of ["emit", "on"] as const)
    for (const [index, entry] of (definition.events?.[list] ?? []).entries()) {
      const problem = topicProblem(entry, known.topics);
      if (problem !== undefined) problems.push({ path: `events.${list}[${index}]`, problem });
    }
  for (const [index, { when, to }] of (definition.escalation ?? []).entries()) {
    const problem = known.questionTopics.has(to)
      ? undefined
      : known.topics.has(to)
        ? `The topic takes no question. Topics that do are ${[...known.questionTopics].join(", ")}.`
        : topicProblem(to, known.questionTopics);
    if (problem !== undefined) problems.push({ path: `escalation[${index}].to`, problem });
    if (definition.escalation?.findIndex((other) => other.when === when) !== index)
      problems.push({ path: `escalation[${index}].when`, problem: "An entry above has this cause already." });
  }
  for (const [index, sub] of (definition.sub_agents ?? []).entries()) {
    const problem = subAgentProblem(sub, name, known);
    if (problem !== undefined) problems.push({ path: `sub_agents[${index}]`, problem });
  }
}
/** Tools that a field of the definition gives, and no list. */
const NEEDED: ReadonlyMap<string, string> = new Map([
  [REMEMBER, NEEDS_LONG_TERM],
  [EMIT, NEEDS_TOPICS],
  [REPORT_LOW_CONFIDENCE, NEEDS_ESCALATION],
]);
function topicProblem(entry: string, topics: ReadonlySet<string>): string | undefined {
  if ([...topics].some((topic) => allows(entry, topic))) return undefined;
  const meant = nearest(entry, [...topics]);
  return `There is no such topic.${meant === undefined ? ` Topics are ${[...topics].join(", ")}.` : ` Did you mean \`${meant}\`?`}`;
}
function toolProblem(tool: string, nativeTools: ReadonlySet<string>, subAgents: readonly string[] = []): string | undefined {
  if (!/^[A-Za-z0-9_.-]*\*?$/.test(tool))
    return "It is not the name of a tool: write MACHINE__Tool, gsv__Tool, or the beginning of names and `*`.";
  if (tool.endsWith("*")) {
    const isNative = tool.startsWith(NATIVE_PREFIX);
    return isNative && ![...nativeTools].some((name) => allows(tool, name)) ? "No tool of GSV begins with this." : undefined;
  }
  const isMachines = tool.includes(SEPARATOR) && !tool.startsWith(NATIVE_PREFIX);
  if (isMachines || nativeTools.has(tool)) return undefined;
  const delegations = subAgents.map(delegationTool);
  if (delegations.includes(tool)) return undefined;
  const meant = nearest(tool, [...nativeTools, ...delegations]);
  return `There is no such tool.${meant === undefined ? "" : ` Did you mean \`${meant}\`?`}`;
}

/** What is wrong with an entry of `sub_agents`. */
function subAgentProblem(sub: string, own: string, { names, below }: Known): string | undefined {
  if (sub === own) return "An agent cannot hand tasks to itself.";
  const known = [...names.values()];
  if (!known.includes(sub)) {
    const meant = nearest(sub, known);
    return `There is no agent with this name.${meant === undefined ? " Define it first." : ` Did you mean \`${meant}\`?`}`;
  }
  if (!below.has(sub)) return "This agent has no definition, so it gets no tasks of other agents. Define it first.";
  const reached = new Set<string>();
  for (let next: readonly string[] = [sub]; next.length > 0; ) {
    next = next.flatMap((name) => below.get(name) ?? []).filter((name) => !reached.has(name));
    for (const name of next) reached.add(name);
  }
  return reached.has(own) ? `It leads back to this agent: ${sub} hands tasks to it, itself or through others.` : undefined;
}
