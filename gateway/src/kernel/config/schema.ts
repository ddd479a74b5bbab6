/**
 * Looks up settings by path in the contract's table: which exist, which name was probably meant, and how a person's text becomes a
 * value. The contract decides and explains whether a value fits (`protocol/runtime/explain.ts`). A name from outside never reaches a
 * JavaScript prototype. PURE.
 */
import { NOT_SERVED_PATHS, SECRET_PATHS } from "../../../../protocol/gen/config.ts";
import { type Cell, fieldsOf, resolveCell } from "../../../../protocol/runtime/cells.ts";
import { explainCell, problemText } from "../../../../protocol/runtime/explain.ts";
import { editDistance, nearest } from "../../../../protocol/runtime/nearest.ts";
import { isJsonObject, type JsonObject } from "../../../../protocol/runtime/json-object.ts";
import { formatPath, isForbiddenName, parsePath } from "./paths.ts";

const ROOT: Cell = ["ref", "GsvConfig"];

export type Located = { readonly ok: true; readonly cell: Cell } | { readonly ok: false; readonly problem: string };

/** The shape at a path, or the problem of the path and what to write instead. */
export function locate(segments: readonly string[]): Located {
  let cell: Cell = ROOT;
  for (const [index, name] of segments.entries()) {
    const next = isForbiddenName(name) ? undefined : childOf(cell, name);
    if (next === undefined) return { ok: false, problem: unknownPath(segments, index, cell) };
    cell = next;
  }
  return { ok: true, cell: resolveCell(cell) };
}

function childOf(parent: Cell, name: string): Cell | undefined {
  const cell = resolveCell(parent);
  switch (cell[0]) {
    case "struct":
      return fieldsOf(cell[1]).find((field) => field.name === name)?.cell;
    case "map":
      return cell[1];
    case "array":
      return /^\d{1,6}$/.test(name) && Number(name) < cell[2] ? cell[1] : undefined;
    case "json":
      return cell;
    default:
      return undefined;
  }
}

const unknownPath = (segments: readonly string[], index: number, at: Cell): string =>
  `There is no setting ${shown(segments)}${advice(segments, index, at)}`;

/** What to write instead; without anything near, which settings there are. */
function advice(segments: readonly string[], index: number, at: Cell): string {
  const parent = resolveCell(at);
  const name = segments[index] ?? "";
  const where = segments.slice(0, index);
  if (isForbiddenName(name)) return `: nothing can be called ${name}.`;
  if (parent[0] === "array") return `: ${shown(where)} is a list, name a position such as ${shown([...where, "0"])}.`;
  if (parent[0] !== "struct") return `: ${shown(where)} is a single value.`;
  const names = fieldsOf(parent[1]).map((field) => field.name);
  const [here, elsewhere] = [hereOf(segments, index, names, at), elsewhereOf(segments)];
  // A name alone that a setting of a group has (`mode`) is that setting rather than a misspelt group.
  const meant = segments.length === 1 ? (elsewhere ?? here) : (here ?? elsewhere);
  return meant ?? `. ${where.length === 0 ? "Settings are" : `${shown(where)} has`} ${names.join(", ")}.`;
}

/** A misspelt name of this group. Only a setting that exists is named. */
function hereOf(segments: readonly string[], index: number, names: readonly string[], at: Cell): string | undefined {
  const name = segments[index] ?? "";
  const best = beginningWith(name, names) ?? nearest(name, names);
  if (best === undefined) return undefined;
  const fixed = [...segments.slice(0, index), best, ...segments.slice(index + 1)];
  let cell = at;
  for (const [next, part] of fixed.entries()) {
    if (next < index) continue;
    const child = isForbiddenName(part) ? undefined : childOf(cell, part);
    if (child === undefined) return resolveCell(cell)[0] === "struct" ? advice(fixed, next, cell) : undefined;
    cell = child;
  }
  return didYouMean([shown(fixed)]);
}

const didYouMean = (paths: readonly string[]): string => `. Did you mean ${paths.join(" or ")}?`;
/** The only name that begins so: `dayCost` for `dayCostUsd`. */
function beginningWith(name: string, names: readonly string[]): string | undefined {
  const found = name.length < 3 ? [] : names.filter((other) => other.toLowerCase().startsWith(name.toLowerCase()));
  return found.length === 1 ? found[0] : undefined;
}
const MOST_MEANT = 4;
/**
 * Settings with such a name anywhere. Of a name alone those near the top are meant rather than those deep inside, and there may be several.
 * With a group, the group decides: heartbeat.every is `agents.defaultHeartbeat.every`, and a memory has nothing to enable.
 */
function elsewhereOf(segments: readonly string[]): string | undefined {
  const all = leaves().filter((leaf) => isNear(segments, leaf));
  const groups = new Set(segments.slice(0, -1).flatMap(wordsOf));
  // A setting outside every group may be meant within any.
  const related = groups.size === 0 ? all : all.filter(({ words }) => words.length === 0 || words.some((word) => groups.has(word)));
  const top = related.filter(({ depth }) => depth <= 2);
  const meant = top.length > 0 ? top : related;
  const most = groups.size === 0 ? MOST_MEANT : 1;
  return meant.length === 0 || meant.length > most ? undefined : didYouMean(meant.map(({ path }) => path));
}
/** Across groups a name must be nearly the whole name: `timezone` is `userTimezone`, and `token` is not `maxTokens`. */
function isNear(segments: readonly string[], { name, words }: Leaf): boolean {
  const [wanted, known] = [(segments.at(-1) ?? "").toLowerCase(), name.toLowerCase()];
  if (wanted === known) return true;
  const [written, own] = [segments.flatMap(wordsOf), wordsOf(name)];
  const isEnd = written.at(-1) === own.at(-1) && wanted.length * 3 >= known.length;
  if (isEnd && written.every((word) => words.includes(word) || own.includes(word))) return true;
  if (own.includes(wanted)) return wanted.length * 3 >= known.length * 2;
  return wanted.length >= 5 && editDistance(wanted, known) <= Math.floor(wanted.length / 5);
}
const wordsOf = (name: string): readonly string[] => name.split(/(?=[A-Z])/).map((word) => word.toLowerCase());

/** Names come from outside: long ones are cut. */
const shown = (segments: readonly string[]): string => {
  const text = formatPath(segments);
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
};

interface Leaf {
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  /** The words of its groups' names. */
  readonly words: readonly string[];
}
type Leaves = readonly Leaf[];
let allLeaves: Leaves | undefined;
/** Every setting in use that can be named without knowing a map's keys or a list's length. */
const leaves = (): Leaves => (allLeaves ??= findLeaves());
function findLeaves(): Leaves {
  const found: Leaf[] = [];
  const visit = (cell: Cell, path: readonly string[]): void => {
    const here = resolveCell(cell);
    if (notServedAt(path) !== undefined) return;
    if (here[0] === "struct") for (const field of fieldsOf(here[1])) visit(field.cell, [...path, field.name]);
    else {
      const words = path.slice(0, -1).flatMap(wordsOf);
      found.push({ path: formatPath(path), name: path.at(-1) ?? "", depth: path.length, words });
    }
  };
  visit(ROOT, []);
  return found;
}

export type Fitted =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly kind: "unknown" | "invalid"; readonly problem: string };

/**
 * The value as it will be stored at a path: names that no setting has refused, a fresh copy, checked by the contract. Text that is
 * the JSON of another kind of value (`"5"` for a number) is taken as that value; a number or boolean for a text setting as its text.
 */
export function fit(cell: Cell, value: unknown, path: readonly string[]): Fitted {
  const read = coerce(cell, value, path);
  if (!read.ok) return read;
  const problems = explainCell(cell, read.value, shown(path));
  if (problems.length === 0) return read;
  const wantsJson = typeof read.value === "string" && ["array", "map", "struct"].includes(resolveCell(cell)[0]);
  return { ok: false, kind: "invalid", problem: `${problemText(problems)}.${wantsJson ? " Write lists and objects as JSON." : ""}` };
}

/** The value that was meant, as far as its kind goes. Refused: names that no setting has, and broken text. */
function coerce(given: Cell, value: unknown, path: readonly string[]): Fitted {
  const cell = resolveCell(given);
  const meant = meantBy(cell, value);
  if (typeof meant === "string" && !meant.isWellFormed())
    return { ok: false, kind: "invalid", problem: `${shown(path)}: expected valid Unicode text.` };
  if (Array.isArray(meant)) return coerceItems(cell, meant, path);
  return isJsonObject(meant) ? coerceEntries(cell, meant, path) : accept(meant);
}

function meantBy(cell: Cell, value: unknown): unknown {
  if (cell[0] === "string" && (typeof value === "boolean" || Number.isSafeInteger(value))) return String(value);
  if (typeof value !== "string" || TEXTS.has(cell[0])) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
const TEXTS: ReadonlySet<string> = new Set(["string", "enum", "literal", "json"]);

const accept = (value: unknown): Fitted => ({ ok: true, value });

/** In a list or object where the contract has none, every name but a forbidden one passes: the contract refuses the whole. */
function coerceItems(cell: Cell, items: readonly unknown[], path: readonly string[]): Fitted {
  const out: unknown[] = [];
  for (const [index, item] of items.entries()) {
    const read = coerce(cell[0] === "array" ? cell[1] : ["json"], item, [...path, String(index)]);
    if (!read.ok) return read;
    out.push(read.value);
  }
  return accept(out);
}

function coerceEntries(cell: Cell, entries: JsonObject, path: readonly string[]): Fitted {
  const named: Cell = cell[0] === "struct" || cell[0] === "map" ? cell : ["json"];
  const out: [string, unknown][] = [];
  for (const [name, item] of Object.entries(entries)) {
    const where = [...path, name];
    const child = isForbiddenName(name) || name === "" ? undefined : childOf(named, name);
    if (child === undefined) {
      const located = locate(where);
      return { ok: false, kind: "unknown", problem: located.ok ? `${shown(where)} is not a valid name.` : located.problem };
    }
    const read = coerce(child, item, where);
    if (!read.ok) return read;
    out.push([name, read.value]);
  }
  return accept(Object.fromEntries(out));
}

const patternsOf = (paths: readonly string[]): readonly (readonly string[])[] => paths.map((path) => path.split("."));
/** Whether a pattern stands for the beginning of a path, or for all of it. */
const begins = (pattern: readonly string[], path: readonly string[]): boolean =>
  pattern.length <= path.length && pattern.every((name, index) => name === "*" || name === path[index]);

const secrets = patternsOf(SECRET_PATHS);
/** Whether the value at exactly this path is a secret. */
export const isSecretPath = (segments: readonly string[]): boolean =>
  secrets.some((pattern) => pattern.length === segments.length && begins(pattern, segments));

const notServed = patternsOf(NOT_SERVED_PATHS);
/** The setting that contains this path and that nothing reads, if there is one. */
export function notServedAt(segments: readonly string[]): readonly string[] | undefined {
  const pattern = notServed.find((candidate) => begins(candidate, segments));
  return pattern && segments.slice(0, pattern.length);
}

const SECRET_LIKE = /^(?:sk|pk|gsv|xox[a-z]|gh[a-z]|AIza|AKIA)[-_]|[A-Za-z0-9+/=_-]{33}/;
/**
 * A path as the audit keeps it: names of settings and positions in lists, and names that the owner chose (`apiKeys.NAME`). A name that
 * looks like a secret, and everything that is no setting, is `*`: a secret in the wrong argument must not stay in the log.
 */
export function recordedPath(text: string): string {
  const kept: string[] = [];
  let cell: Cell = ROOT;
  for (const name of parsePath(text) ?? ["*"]) {
    const next = isForbiddenName(name) ? undefined : childOf(cell, name);
    if (next === undefined) return formatPath([...kept, "*"]);
    kept.push(SECRET_LIKE.test(name) && resolveCell(cell)[0] === "map" ? "*" : name);
    cell = next;
  }
  return formatPath(kept);
}
