/**
 * Explains to a person why a validator refused a value: the path, the expectation and the kind that was found. Runs only after
 * a refusal. It must not repeat a value, only its kind and size, because a refused frame may hold a secret, and it lists at most
 * five problems.
 */
import { EXPLAIN_TABLE, type TypeName } from "../gen/explain-table.ts";

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

type Cell = readonly unknown[];
type Table = Readonly<Record<string, Cell>>;
type Fields = Readonly<Record<string, Cell>>;
type Plain = Readonly<Record<string, unknown>>;

/** Parsed at the first failure and kept: the table never changes. */
let parsed: Table | undefined;
const table = (): Table => {
  parsed ??= JSON.parse(EXPLAIN_TABLE) as Table;
  return parsed;
};

/** The problems of a value, at most five, the first ones in reading order; empty when it fits the named type. */
export function explain(name: TypeName, value: unknown): Problem[] {
  const problems: Problem[] = [];
  walk(["ref", name], value, "", problems);
  return problems;
}

/** One line for an error message: `client.mode: expected ...; tools[3].name: missing`. */
export function explainText(name: TypeName, value: unknown): string {
  return explain(name, value)
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))
    .join("; ");
}

const isPlain = (value: unknown): value is Plain => typeof value === "object" && value !== null && !Array.isArray(value);

function walk(cell: Cell, value: unknown, path: string, problems: Problem[]): void {
  if (problems.length >= MAX_PROBLEMS) return;
  const [kind, first, second, third] = cell;
  const report = (expected: string): void => {
    problems.push({ path, message: `expected ${expected}, got ${found(value)}` });
  };
  switch (kind) {
    case "ref": {
      const target = table()[String(first)];
      if (target) walk(target, value, path, problems);
      return;
    }
    case "json":
      return;
    case "boolean":
      if (typeof value !== "boolean") report("true or false");
      return;
    case "string": {
      const fits = typeof value === "string" && between([...value].length, first, second);
      if (!fits) report(stringBounds(first, second));
      else if (typeof third === "string" && !new RegExp(third, "u").test(value))
        problems.push({ path, message: `expected a string that matches ${third}` });
      return;
    }
    case "integer":
      if (!Number.isInteger(value)) report(numberBounds("a whole number", first, second === Number.MAX_SAFE_INTEGER ? null : second));
      else if (!between(value, first, second))
        problems.push({ path, message: outOfBounds(numberBounds("a whole number", first, second), value, first) });
      return;
    case "number":
      if (!Number.isFinite(value)) report(numberBounds("a number", first, second));
      else if (!between(value, first, second))
        problems.push({ path, message: outOfBounds(numberBounds("a number", first, second), value, first) });
      return;
    case "literal":
      if (value !== first) report(JSON.stringify(first));
      return;
    case "enum":
      if (!cell.slice(1).includes(value)) report(oneOf(cell.slice(1)));
      return;
    case "array":
      walkArray(first as Cell, second, value, path, problems, report);
      return;
    case "map":
      if (!isPlain(value)) report("an object");
      else for (const [key, item] of Object.entries(value)) walk(first as Cell, item, join(path, key), problems);
      return;
    case "struct":
      walkFields(first as Fields, value, path, problems, report);
      return;
    case "tagged":
      walkTagged(String(first), second as Readonly<Record<string, Fields>>, value, path, problems, report);
      return;
    default:
      throw new Error("the explain table holds a cell of an unknown kind");
  }
}

function walkArray(
  items: Cell,
  maxItems: unknown,
  value: unknown,
  path: string,
  problems: Problem[],
  report: (expected: string) => void,
): void {
  if (!Array.isArray(value) || !between(value.length, null, maxItems)) {
    report(`a list of at most ${String(maxItems)} items`);
    return;
  }
  for (let at = 0; at < value.length && problems.length < MAX_PROBLEMS; at++) walk(items, value[at], clip(`${path}[${at}]`), problems);
}

function walkFields(fields: Fields, value: unknown, path: string, problems: Problem[], report: (expected: string) => void): void {
  if (!isPlain(value)) {
    report("an object");
    return;
  }
  for (const [key, cell] of Object.entries(fields)) {
    if (problems.length >= MAX_PROBLEMS) return;
    const optional = key.endsWith("?");
    const name = optional ? key.slice(0, -1) : key;
    const item = value[name];
    if (item !== undefined) walk(cell, item, join(path, name), problems);
    else if (!optional && !(name in value && cell[0] === "json")) problems.push({ path: join(path, name), message: "missing" });
  }
}

function walkTagged(
  tag: string,
  arms: Readonly<Record<string, Fields>>,
  value: unknown,
  path: string,
  problems: Problem[],
  report: (expected: string) => void,
): void {
  if (!isPlain(value)) {
    report("an object");
    return;
  }
  const arm = value[tag];
  if (typeof arm === "string" && Object.hasOwn(arms, arm)) walkFields(arms[arm] ?? {}, value, path, problems, report);
  else if (arm === undefined) problems.push({ path: join(path, tag), message: `missing; expected ${oneOf(Object.keys(arms))}` });
  else problems.push({ path: join(path, tag), message: `expected ${oneOf(Object.keys(arms))}, got ${found(arm)}` });
}

function between(size: unknown, minimum: unknown, maximum: unknown): boolean {
  return typeof size === "number" && (typeof minimum !== "number" || size >= minimum) && (typeof maximum !== "number" || size <= maximum);
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.slice(0, LISTED_VALUES).map((value) => JSON.stringify(value));
  return `${shown.length === 1 ? "" : "one of "}${shown.join(", ")}${values.length > LISTED_VALUES ? ", ..." : ""}`;
}

function stringBounds(minimum: unknown, maximum: unknown): string {
  const least = typeof minimum === "number" && minimum > 0 ? minimum : undefined;
  if (least === undefined) return typeof maximum === "number" ? `a string of at most ${maximum} characters` : "a string";
  return typeof maximum === "number" ? `a string of ${least} to ${maximum} characters` : `a string of at least ${least} characters`;
}

function numberBounds(what: string, minimum: unknown, maximum: unknown): string {
  if (typeof minimum === "number")
    return typeof maximum === "number" ? `${what} from ${minimum} to ${maximum}` : `${what} from ${minimum} up`;
  return typeof maximum === "number" ? `${what} of at most ${maximum}` : what;
}

const outOfBounds = (expected: string, value: unknown, minimum: unknown): string =>
  `expected ${expected}, got a ${typeof value === "number" && typeof minimum === "number" && value < minimum ? "smaller" : "larger"} one`;

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
