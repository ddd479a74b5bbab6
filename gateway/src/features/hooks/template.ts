/**
 * Makes the text of a run from the owner's template and what a delivery brought (rules HK6, HK7). PURE. Values stand in the text as
 * JSON on one line, and the whole body in a fence, so that the words of others look like data. That is for readability: the label of
 * the run is what limits it.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { DECEPTIVE } from "../../../../protocol/runtime/clean-name.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import { fence } from "../../prompt/fence.ts";

export interface Brought {
  readonly hook: string;
  readonly id: string;
  readonly body: unknown;
  /** Names are lower case. Without those that carry a proof. */
  readonly headers: ReadonlyMap<string, string>;
}
const PLACE = /\{\{([^{}]*)\}\}/g;
const PATH = /^(?:id|body(?:\.[^\s.{}]+){0,16}|header\.[a-z0-9-]{1,64})$/;
const VALUE_CHARS = 1000;
const BODY_CHARS = 24_000;

/** What is wrong with a template, as a sentence. */
export function templateProblem(template: string): string | undefined {
  for (const [whole, path = ""] of template.matchAll(PLACE))
    if (!PATH.test(path.trim())) return `\`${whole.slice(0, 100)}\` names no value of a delivery.`;
  return /\{\{|\}\}/.test(template.replaceAll(PLACE, "")) ? "A `{{` or `}}` of the template has no partner." : undefined;
}
/** The same for a condition, `PATH=VALUE,VALUE`. */
export function conditionProblem(condition: string): string | undefined {
  const { path, values } = conditionOf(condition);
  if (PATH.test(path) && path !== "id" && path !== "body" && values.every((value) => value !== "")) return undefined;
  return `\`${condition.slice(0, 100)}\` is not a condition.`;
}
function conditionOf(condition: string): { readonly path: string; readonly values: readonly string[] } {
  const at = condition.indexOf("=");
  return {
    path: condition.slice(0, Math.max(0, at)).trim(),
    values:
      at < 0
        ? [""]
        : condition
            .slice(at + 1)
            .split(",")
            .map((value) => value.trim()),
  };
}
/** Whether each condition is true. */
export const fits = (only: readonly string[], brought: Brought): boolean =>
  only.every((condition) => {
    const { path, values } = conditionOf(condition);
    const found = valueAt(path, brought);
    const isPlain = typeof found === "string" || typeof found === "number" || typeof found === "boolean";
    return isPlain && values.includes(String(found));
  });

/**
 * The text of a delivery. What is too long is cut, and the text says so. Only what the delivery brought is cut: where all of it does not
 * fit, each value gets a smaller part, so that no sender cuts away words of the owner.
 */
export function render(template: string, brought: Brought): string {
  for (let part = 1; ; part /= 2) {
    const text = template.replaceAll(PLACE, (_whole, given: string) => {
      const path = given.trim();
      if (path === "body") return `\n${whole(brought, Math.floor(part * BODY_CHARS))}\n`;
      const value = valueAt(path, brought);
      return value === undefined ? "(not given)" : shown(JSON.stringify(value), Math.floor(part * VALUE_CHARS));
    });
    if (text.length <= LIMITS.hookTextChars || part * VALUE_CHARS < 1) return cut(text, LIMITS.hookTextChars);
  }
}
/** A large body stays on one line: indenting it would cost many times its size. */
function whole({ hook, body }: Brought, most: number): string {
  const line = JSON.stringify(body);
  const json = line.length > BODY_CHARS ? line : JSON.stringify(body, undefined, 2);
  return fence(`body of the hook ${hook}`, shown(json, most));
}
/** The beginning of a JSON text, with escapes for what a reader does not see. What is left out costs nothing. */
function shown(json: string, most: number): string {
  const start = json.slice(0, most);
  return cut(start.split("\n").map(visible).join("\n"), most, json.length - start.length);
}

/** Own properties only: a name from outside never reaches a prototype. */
function valueAt(path: string, { id, body, headers }: Brought): unknown {
  if (path === "id") return id;
  if (path.startsWith("header.")) return headers.get(path.slice("header.".length));
  let at = body;
  for (const name of path.split(".").slice(1)) {
    if (Array.isArray(at)) at = /^\d{1,6}$/.test(name) ? (at[Number(name)] as unknown) : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at ?? undefined;
}
const cut = (text: string, most: number, more = 0): string => {
  const left = Math.max(0, text.length - most) + more;
  return left === 0 ? text : `${text.slice(0, most).toWellFormed()} (cut: ${left} more characters)`;
};
/** JSON escapes neither direction marks nor characters that only programs see. */
const visible = (json: string): string =>
  json.replace(DECEPTIVE, (mark) =>
    Array.from({ length: mark.length }, (_, at) => `\\u${mark.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
