/**
 * Explains to a person why a validator refused a value: the path, the expectation and the kind that was found. Runs only after
 * a refusal. It must not repeat a value, only its kind and size, because a refused frame may hold a secret, and it lists at most
 * five problems where no one asks for more.
 */
import type { TypeName } from "../gen/explain-table.ts";
import { type Cell, type CellFields, fieldsOf, resolveCell } from "./cells.ts";
import { isJsonObject } from "./json-object.ts";

export interface Problem {
  /** Dotted, with list positions in brackets: `client.mode`, `tools[3].name`. Empty for the value itself. */
  readonly path: string;
  /** Complete without the path: `expected a string of at most 64 characters, got a number`. */
  readonly message: string;
}

export const MAX_PROBLEMS = 5;
/** A path is cut here: map keys come from outside. */
const PATH_CHARS = 200;
const KEY_CHARS = 64;
/** Longer lists are cut: they do not help a reader. */
const LISTED_VALUES = 12;

/** Problems as they are found, until there are enough. */
class Problems {
  readonly list: Problem[] = [];
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }
  get isFull(): boolean {
    return this.list.length >= this.#most;
  }
  push(problem: Problem): void {
    this.list.push(problem);
  }
}

/** The problems of a value, at most `most`, the first ones in reading order; empty when it fits the named type. */
export const explain = (name: TypeName, value: unknown, most = MAX_PROBLEMS): readonly Problem[] =>
  explainCell(["ref", name], value, "", most);

/** The same for a part of a type. `path` is where the part is. */
export function explainCell(cell: Cell, value: unknown, path = "", most = MAX_PROBLEMS): readonly Problem[] {
  const problems = new Problems(most);
  walk(cell, value, path, problems);
  return problems.list;
}

/** One line for an error message: `client.mode: expected ...; tools[3].name: missing`. */
export const explainText = (name: TypeName, value: unknown): string => problemText(explain(name, value));

export const problemText = (problems: readonly Problem[]): string =>
  problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");

function walk(given: Cell, value: unknown, path: string, problems: Problems): void {
  if (problems.isFull) return;
  const cell = resolveCell(given);
  const add = (message: string): void => void problems.push({ path, message });
  const report = (expected: string): void => add(`expected ${expected}, got ${found(value)}`);
  switch (cell[0]) {
    case "json":
      return;
    case "boolean":
      if (typeof value !== "boolean") report("true or false");
      return;
    case "string": {
      const [, minimum, maximum, pattern] = cell;
      if (typeof value !== "string" || !between([...value].length, minimum, maximum)) report(stringBounds(minimum, maximum));
      else if (pattern !== null && !new RegExp(pattern, "u").test(value)) add(`expected ${matching(pattern)}`);
      return;
    }
    case "integer": {
      const [, minimum, maximum] = cell;
      const isTime = path.endsWith("Ms");
      const bounds = (most: number | null): string =>
        numberBounds(isTime ? "a whole number of milliseconds" : "a whole number", minimum, most, isTime ? inUnits : String);
      if (!Number.isInteger(value)) report(bounds(maximum === Number.MAX_SAFE_INTEGER ? null : maximum));
      else if (!between(value, minimum, maximum)) add(outOfBounds(bounds(maximum), value, minimum));
      return;
    }
    case "number": {
      const [, minimum, maximum] = cell;
      if (!Number.isFinite(value)) report(numberBounds("a number", minimum, maximum));
      else if (!between(value, minimum, maximum)) add(outOfBounds(numberBounds("a number", minimum, maximum), value, minimum));
      return;
    }
    case "literal":
      if (value !== cell[1]) report(JSON.stringify(cell[1]));
      return;
    case "enum": {
      const [, ...values] = cell;
      if (!values.some((known) => known === value)) report(oneOf(values));
      return;
    }
    case "array":
      walkArray(cell[1], cell[2], value, path, problems, report);
      return;
    case "map":
      if (!isJsonObject(value)) report("an object");
      else for (const [key, item] of Object.entries(value)) walk(cell[1], item, join(path, key), problems);
      return;
    case "struct":
      walkFields(cell[1], value, path, problems, report);
      return;
    case "tagged":
      walkTagged(cell[1], cell[2], value, path, problems, report);
      return;
  }
}

function walkArray(
  items: Cell,
  maxItems: number,
  value: unknown,
  path: string,
  problems: Problems,
  report: (expected: string) => void,
): void {
  if (!Array.isArray(value) || !between(value.length, null, maxItems)) {
    report(`a list of at most ${maxItems} items`);
    return;
  }
  for (let at = 0; at < value.length && !problems.isFull; at++) walk(items, value[at], clip(`${path}[${at}]`), problems);
}

function walkFields(fields: CellFields, value: unknown, path: string, problems: Problems, report: (expected: string) => void): void {
  if (!isJsonObject(value)) {
    report("an object");
    return;
  }
  for (const { name, cell, optional } of fieldsOf(fields)) {
    if (problems.isFull) return;
    const item = value[name];
    if (item !== undefined) walk(cell, item, join(path, name), problems);
    else if (!optional && !(name in value && cell[0] === "json")) problems.push({ path: join(path, name), message: "missing" });
  }
}

function walkTagged(
  tag: string,
  arms: Readonly<Record<string, CellFields>>,
  value: unknown,
  path: string,
  problems: Problems,
  report: (expected: string) => void,
): void {
  if (!isJsonObject(value)) {
    report("an object");
    return;
  }
  const arm = value[tag];
  if (typeof arm === "string" && Object.hasOwn(arms, arm)) walkFields(arms[arm] ?? {}, value, path, problems, report);
  else if (arm === undefined) problems.push({ path: join(path, tag), message: `missing; expected ${oneOf(Object.keys(arms))}` });
  else problems.push({ path: join(path, tag), message: `expected ${oneOf(Object.keys(arms))}, got ${found(arm)}` });
}

const between = (size: unknown, minimum: number | null, maximum: number | null): boolean =>
  typeof size === "number" && (minimum === null || size >= minimum) && (maximum === null || size <= maximum);

function oneOf(values: readonly unknown[]): string {
  const shown = values.slice(0, LISTED_VALUES).map((value) => JSON.stringify(value));
  return `${shown.length === 1 ? "" : "one of "}${shown.join(", ")}${values.length > LISTED_VALUES ? ", ..." : ""}`;
}

function stringBounds(minimum: number, maximum: number | null): string {
  if (minimum === 0) return maximum === null ? "a string" : `a string of at most ${maximum} characters`;
  return maximum === null ? `a string of at least ${minimum} characters` : `a string of ${minimum} to ${maximum} characters`;
}

const matching = (pattern: string): string =>
  pattern === "^https?://" ? "a URL that begins with http:// or https://" : `a string that matches ${pattern}`;

function numberBounds(what: string, minimum: number | null, maximum: number | null, shown: (bound: number) => string = String): string {
  if (minimum === null) return maximum === null ? what : `${what} of at most ${shown(maximum)}`;
  return maximum === null ? `${what} from ${shown(minimum)} up` : `${what} from ${shown(minimum)} to ${shown(maximum)}`;
}

const UNITS_MS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;
/** A time in ms, and in the largest unit that it is a whole number of. */
function inUnits(ms: number): string {
  const unit = ms === 0 ? undefined : UNITS_MS.find(([, size]) => ms % size === 0);
  return unit === undefined ? String(ms) : `${ms} (${ms / unit[1]} ${unit[0]})`;
}

const outOfBounds = (expected: string, value: unknown, minimum: number | null): string =>
  `expected ${expected}, got a ${typeof value === "number" && minimum !== null && value < minimum ? "smaller" : "larger"} one`;

/** The kind and size of a value, never the value. */
function found(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null (leave the field out instead)";
  if (typeof value === "string") return `a string of ${[...value].length} characters`;
  if (typeof value === "number")
    return Number.isInteger(value)
      ? "a whole number"
      : Number.isFinite(value)
        ? "a number with a fraction"
        : "a number that JSON can't hold";
  if (typeof value === "boolean") return "a boolean";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Map keys come from outside: only short, plain ones are shown as they are. */
function join(path: string, key: string): string {
  const shown = /^[\w.@+:-]+$/.test(key) && key.length <= KEY_CHARS ? key : `<key of ${key.length} characters>`;
  return clip(path === "" ? shown : `${path}.${shown}`);
}

const clip = (path: string): string => (path.length <= PATH_CHARS ? path : `${path.slice(0, PATH_CHARS - 3)}...`);
