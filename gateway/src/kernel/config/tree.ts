/** Reads, changes and merges plain trees by path. A change makes a new tree. Reads own properties only. PURE. */
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";

/** The value at a path; undefined when there is none. */
export function getAt(value: unknown, segments: readonly string[]): unknown {
  let here = value;
  for (const name of segments) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    here = Reflect.get(here, name);
  }
  return here;
}

/**
 * The tree with `value` at a path; `emptyAt` creates missing branches. Undefined when the value would leave a hole in a list: only an
 * existing position or the next one is possible.
 */
export function setAt(
  root: unknown,
  segments: readonly string[],
  value: unknown,
  emptyAt: (path: readonly string[]) => unknown,
  depth = 0,
): unknown {
  if (depth === segments.length) return value;
  const name = segments[depth] ?? "";
  const here = root ?? emptyAt(segments.slice(0, depth));
  if (Array.isArray(here)) {
    const at = Number(name);
    if (!Number.isInteger(at) || at < 0 || at > here.length) return undefined;
    const item = setAt(here[at], segments, value, emptyAt, depth + 1);
    return item === undefined ? undefined : [...here.slice(0, at), item, ...here.slice(at + 1)];
  }
  if (!isJsonObject(here)) return undefined;
  const child = setAt(getAt(here, [name]), segments, value, emptyAt, depth + 1);
  return child === undefined ? undefined : { ...here, [name]: child };
}

/** The tree without the value at a path, and without branches that become empty. */
export function unsetAt(root: unknown, segments: readonly string[]): unknown {
  const [name, ...rest] = segments;
  if (name === undefined) return undefined;
  if (Array.isArray(root)) {
    const at = Number(name);
    const item = rest.length === 0 ? undefined : unsetAt(root[at], rest);
    const items = item === undefined ? root.filter((_item, index) => index !== at) : root.with(at, item);
    return items.length === 0 ? undefined : items;
  }
  if (!isJsonObject(root) || !Object.hasOwn(root, name)) return root;
  const child = rest.length === 0 ? undefined : unsetAt(root[name], rest);
  const others = Object.fromEntries(Object.entries(root).filter(([key]) => key !== name));
  const tree = child === undefined ? others : { ...root, [name]: child };
  return Object.keys(tree).length === 0 ? undefined : tree;
}

/** The tree without one property; what this leaves empty stays, so that lists keep their positions. */
export function withoutAt(root: unknown, segments: readonly string[]): unknown {
  const [name, ...rest] = segments;
  if (name === undefined || typeof root !== "object" || root === null || !Object.hasOwn(root, name)) return root;
  if (rest.length > 0) return setAt(root, [name], withoutAt(getAt(root, [name]), rest), () => undefined);
  return Object.fromEntries(Object.entries(root).filter(([key]) => key !== name));
}

/** `over` laid on `base`: objects merge, everything else (lists too) replaces. */
export function merge(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (!isJsonObject(base) || !isJsonObject(over)) return over;
  const names = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries([...names].map((name) => [name, merge(getAt(base, [name]), getAt(over, [name]))]));
}

/** Each leaf with its path: lists and objects are walked, empty ones are leaves. */
export function* leavesOf(value: unknown, path: readonly string[] = []): Generator<readonly [readonly string[], unknown]> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (entries.length === 0) yield [path, value];
  for (const [name, item] of entries) yield* leavesOf(item, [...path, name]);
}

/** The tree with each leaf replaced by what `change` makes of it. */
export function mapLeaves(
  value: unknown,
  change: (path: readonly string[], leaf: unknown) => unknown,
  path: readonly string[] = [],
): unknown {
  if (Array.isArray(value)) return value.map((item, index) => mapLeaves(item, change, [...path, String(index)]));
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapLeaves(item, change, [...path, name])]));
  return change(path, value);
}
