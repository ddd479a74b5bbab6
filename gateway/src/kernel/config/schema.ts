/**
 * The shape of the configuration, walked by path: which settings exist, what fits one, which one was probably meant. PURE. It
 * looks only at the contract's own table, so that a name from outside never reaches a prototype.
 */
import { EXPLAIN_TABLE } from "../../../../protocol/gen/explain-table.ts";
import { SECRET_PATHS } from "../../../../protocol/gen/config.ts";
import { formatPath, isForbiddenName, nearest } from "./paths.ts";

/** Cells of the contract's table, kind first (`protocol/runtime/explain.ts`). */
export type Cell = readonly [kind: string, ...rest: unknown[]];
type Fields = Readonly<Record<string, Cell>>;

let parsed: Readonly<Record<string, Cell>> | undefined;
const table = (): Readonly<Record<string, Cell>> => {
  parsed ??= JSON.parse(EXPLAIN_TABLE) as Record<string, Cell>;
  return parsed;
};
const ROOT: Cell = ["ref", "GsvConfig"];

function resolve(cell: Cell): Cell {
  let here = cell;
  while (here[0] === "ref") here = table()[String(here[1])] ?? ["json"];
  return here;
}

interface Field {
  readonly cell: Cell;
  readonly optional: boolean;
}
/** A struct's own fields; a `?` after the name marks the optional ones. */
function fieldsOf(struct: Cell): ReadonlyMap<string, Field> {
  const fields = struct[1] as Fields;
  return new Map(
    Object.entries(fields).map(([name, cell]): [string, Field] =>
      name.endsWith("?") ? [name.slice(0, -1), { cell, optional: true }] : [name, { cell, optional: false }],
    ),
  );
}

export type Located = { readonly ok: true; readonly cell: Cell } | { readonly ok: false; readonly problem: string };

/** The shape at a path, or what is wrong with the path and what to write instead. */
export function locate(segments: readonly string[]): Located {
  let cell = resolve(ROOT);
  for (const [index, name] of segments.entries()) {
    const next = isForbiddenName(name) ? undefined : childOf(cell, name);
    if (next === undefined) return { ok: false, problem: unknownPath(segments, index, cell) };
    cell = resolve(next);
  }
  return { ok: true, cell };
}

function childOf(cell: Cell, name: string): Cell | undefined {
  switch (cell[0]) {
    case "struct":
      return fieldsOf(cell).get(name)?.cell;
    case "map":
      return cell[1] as Cell;
    case "array":
      return /^\d{1,6}$/.test(name) && Number(name) < Number(cell[2]) ? (cell[1] as Cell) : undefined;
    case "json":
      return ["json"];
    default:
      return undefined;
  }
}

function unknownPath(segments: readonly string[], index: number, parent: Cell): string {
  const written = shown(segments);
  const name = segments[index] ?? "";
  const where = segments.slice(0, index);
  if (isForbiddenName(name)) return `There is no setting ${written}: nothing can be called ${name}.`;
  if (parent[0] === "array")
    return `There is no setting ${written}: ${shown(where)} is a list, name a position such as ${shown([...where, "0"])}.`;
  if (parent[0] !== "struct") return `There is no setting ${written}: ${shown(where)} is a single value.`;
  const names = [...fieldsOf(parent).keys()];
  const best = nearest(name, names);
  if (best !== undefined) return `There is no setting ${written}. Did you mean ${shown([...where, best, ...segments.slice(index + 1)])}?`;
  const meant = nearest(
    segments.at(-1) ?? "",
    leaves().map((leaf) => leaf.name),
  );
  const elsewhere = leaves().find((leaf) => leaf.name === meant)?.path;
  if (elsewhere !== undefined) return `There is no setting ${written}. Did you mean ${elsewhere}?`;
  return `There is no setting ${written}. ${where.length === 0 ? "Settings" : `${shown(where)} has`}${where.length === 0 ? " are" : ""} ${names.join(", ")}.`;
}

/** Names come from outside: long ones are cut. */
const shown = (segments: readonly string[]): string => {
  const text = formatPath(segments);
  return text.length <= 120 ? text : `${text.slice(0, 117)}...`;
};

let allLeaves: readonly { readonly path: string; readonly name: string }[] | undefined;
/** Every setting that can be named without knowing a map's keys or a list's length. */
function leaves(): readonly { readonly path: string; readonly name: string }[] {
  if (allLeaves !== undefined) return allLeaves;
  const found: { path: string; name: string }[] = [];
  const visit = (cell: Cell, path: readonly string[]): void => {
    const here = resolve(cell);
    if (here[0] === "struct" && path.length < 6) for (const [name, field] of fieldsOf(here)) visit(field.cell, [...path, name]);
    else if (path.length > 0) found.push({ path: formatPath(path), name: path.at(-1) ?? "" });
  };
  visit(ROOT, []);
  allLeaves = found;
  return found;
}

export type Fitted =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly kind: "unknown" | "invalid"; readonly problem: string };

/**
 * The value as it will be stored at a path: checked all the way down, names that no setting has refused, a fresh copy. Text that is
 * the JSON of a fitting value (`"5"` for a number) is taken as that value; a number or boolean for a text setting as its text.
 */
export function fit(cell: Cell, value: unknown, path: readonly string[]): Fitted {
  const here = resolve(cell);
  const straight = fitStraight(here, value, path);
  if (straight.ok || straight.kind === "unknown") return straight;
  if (typeof value === "string" && here[0] !== "string" && here[0] !== "enum") {
    const meant = parseJson(value);
    if (meant !== undefined && typeof meant !== "string") {
      const coerced = fitStraight(here, meant, path);
      if (coerced.ok) return coerced;
    }
  }
  if (here[0] === "string" && (typeof value === "boolean" || (typeof value === "number" && Number.isSafeInteger(value))))
    return fitStraight(here, String(value), path);
  return straight;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const accept = (value: unknown): Fitted => ({ ok: true, value });

function fitStraight(cell: Cell, value: unknown, path: readonly string[]): Fitted {
  const refuse = (expected: string): Fitted => ({ ok: false, kind: "invalid", problem: `${shown(path)} must be ${expected}.` });
  const [kind, first, second, third] = cell;
  switch (kind) {
    case "boolean":
      return typeof value === "boolean" ? accept(value) : refuse("true or false");
    case "integer":
    case "number": {
      const what = kind === "integer" ? "a whole number" : "a number";
      const right = kind === "integer" ? Number.isSafeInteger(value) : Number.isFinite(value);
      const inside = right && within(Number(value), first, second);
      return inside ? accept(value) : refuse(`${what}${range(first, second === Number.MAX_SAFE_INTEGER ? null : second)}`);
    }
    case "string": {
      if (typeof value !== "string" || !value.isWellFormed() || !within([...value].length, first, second))
        return refuse(`text of ${Number(first) > 0 ? `${String(first)} to ` : "at most "}${String(second ?? "any number of")} characters`);
      if (typeof third === "string" && !new RegExp(third, "u").test(value))
        return refuse(third === "^https?://" ? "an address that begins with http:// or https://" : `text that matches ${third}`);
      return accept(value);
    }
    case "enum":
      return cell.slice(1).includes(value) ? accept(value) : refuse(`one of ${cell.slice(1).join(", ")}`);
    case "literal":
      return value === first ? accept(value) : refuse(JSON.stringify(first));
    case "array":
      return Array.isArray(value) && value.length <= Number(second)
        ? fitItems(first as Cell, value, path)
        : refuse(`a list of at most ${String(second)} items, written as JSON`);
    case "map":
      return isPlain(value) ? fitEntries(() => first as Cell, value, path) : refuse("an object, written as JSON");
    case "struct":
      return isPlain(value) ? fitStruct(cell, value, path) : refuse("an object, written as JSON");
    default:
      return fitFree(value, path);
  }
}

function fitItems(cell: Cell, items: readonly unknown[], path: readonly string[]): Fitted {
  const out: unknown[] = [];
  for (const [index, item] of items.entries()) {
    const fitted = fit(cell, item, [...path, String(index)]);
    if (!fitted.ok) return fitted;
    out.push(fitted.value);
  }
  return accept(out);
}

function fitEntries(cellOf: (name: string) => Cell | undefined, value: Readonly<Record<string, unknown>>, path: readonly string[]): Fitted {
  const out: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const where = [...path, name];
    const cell = isForbiddenName(name) || name === "" ? undefined : cellOf(name);
    if (cell === undefined) {
      const located = locate(where);
      return { ok: false, kind: "unknown", problem: located.ok ? `${shown(where)} is not a valid name.` : located.problem };
    }
    const fitted = fit(cell, item, where);
    if (!fitted.ok) return fitted;
    out.push([name, fitted.value]);
  }
  return accept(Object.fromEntries(out));
}

function fitStruct(cell: Cell, value: Readonly<Record<string, unknown>>, path: readonly string[]): Fitted {
  const fields = fieldsOf(cell);
  const fitted = fitEntries((name) => fields.get(name)?.cell, value, path);
  if (!fitted.ok) return fitted;
  const missing = [...fields].find(([name, field]) => !field.optional && !Object.hasOwn(value, name));
  return missing === undefined ? fitted : { ok: false, kind: "invalid", problem: `${shown([...path, missing[0]])} is missing.` };
}

/** Free JSON: any shape, but no name that means something to JavaScript. */
function fitFree(value: unknown, path: readonly string[]): Fitted {
  if (Array.isArray(value)) return fitItems(["json"], value, path);
  return isPlain(value) ? fitEntries(() => ["json"], value, path) : accept(value);
}

const within = (size: number, least: unknown, most: unknown): boolean =>
  (typeof least !== "number" || size >= least) && (typeof most !== "number" || size <= most);

function range(least: unknown, most: unknown): string {
  if (typeof least === "number" && typeof most === "number") return ` from ${least} to ${most}`;
  if (typeof least === "number") return ` of at least ${least}`;
  return typeof most === "number" ? ` of at most ${most}` : "";
}

const secretPatterns = SECRET_PATHS.map((path) => path.split("."));
/** Whether the value at exactly this path is a secret. */
export const isSecretPath = (segments: readonly string[]): boolean =>
  secretPatterns.some(
    (pattern) => pattern.length === segments.length && pattern.every((name, index) => name === "*" || name === segments[index]),
  );
