/**
 * Replaces the configuration by an edited copy of what was shown (rules CF1, CF2). Only a difference from the shown copy is a change: a
 * default that was shown stays a default, and a masked secret keeps its value. PURE: nothing is stored here.
 */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import { HIDDEN } from "../../../../protocol/runtime/secret-shapes.ts";
import { fail } from "../outcome.ts";
import { broughtIdle, type ChangeCheck, emptyAt, IDLE_HINT, keepMasked, NO_CHECK, type Outcome, settle } from "./change.ts";
import { effective, shown } from "./effective.ts";
import { formatPath } from "./paths.ts";
import { fit, isSecretPath, locate } from "./schema.ts";
import { getAt, leavesOf, setAt, unsetAt } from "./tree.ts";

export interface Replaced {
  readonly config: GsvConfig;
  /** The settings that differ now, in the order of the copy. */
  readonly changed: readonly string[];
}
/** Characters of a path in an answer. */
const PATH_CHARS = 512;
const NAMED = 3;

export function replaceAll(set: Readonly<GsvConfig>, edited: unknown, check: ChangeCheck = NO_CHECK): Outcome<Replaced> {
  if (!isJsonObject(edited))
    return fail("config.invalid", "The configuration must be a JSON object.", "Put the settings into `{` and `}`.");
  let next: unknown = set;
  const changed: string[] = [];
  for (const [path, value] of differences(shown(effective(set)), edited)) {
    const name = formatPath(path).slice(0, PATH_CHARS);
    const before = getAt(next, path);
    if (value === undefined) {
      if (before === undefined) continue;
      next = unsetAt(next, path) ?? {};
    } else {
      const kept = accepted(set, path, value);
      if (!kept.ok) return kept;
      next = setAt(next, path, kept.value, emptyAt);
      if (next === undefined) return fail("config.invalid", `${name} would leave a gap in a list.`);
    }
    changed.push(name);
  }
  const named = changed.length <= NAMED ? changed.join(", ") : `${changed.length} settings`;
  const settled = settle(set, next, named, check);
  return settled.ok ? { ok: true, value: { config: settled.value.config, changed } } : settled;
}

/** The value as it will be stored at the path. */
function accepted(set: Readonly<GsvConfig>, path: readonly string[], value: unknown): Outcome<unknown> {
  const located = locate(path);
  if (!located.ok) return fail("config.unknown_path", located.problem);
  const fitted = fit(located.cell, value, path);
  if (!fitted.ok) return fail(fitted.kind === "unknown" ? "config.unknown_path" : "config.invalid", fitted.problem);
  const idle = broughtIdle(set, path, fitted.value);
  if (idle !== undefined)
    return fail("config.not_served", `This version of GSV does not use ${formatPath(idle)}, so nothing was stored.`, IDLE_HINT);
  for (const [below, leaf] of leavesOf(fitted.value)) {
    const at = [...path, ...below];
    if (typeof leaf === "string" && leaf.includes(HIDDEN) && !isSecretPath(at))
      return fail(
        "config.invalid",
        `${formatPath(at)} contains ${HIDDEN}, which stands for a secret that is not shown.`,
        "Write the whole text, or change this setting with `gsv config set`.",
      );
  }
  return keepMasked(set, path, fitted.value);
}

/** Where the copy differs, with the new value; undefined: it is missing there. Lists are compared as a whole. */
function* differences(before: unknown, edited: unknown, path: readonly string[] = []): Generator<readonly [readonly string[], unknown]> {
  if (isJsonObject(before) && isJsonObject(edited)) {
    const names = new Set([...Object.keys(before), ...Object.keys(edited)]);
    for (const name of names) yield* differences(getAt(before, [name]), getAt(edited, [name]), [...path, name]);
  } else if (!isSame(before, edited)) yield [path, edited];
}
function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => isSame(item, right[index]));
  return isJsonObject(left) && isJsonObject(right) && differences(left, right).next().done === true;
}
