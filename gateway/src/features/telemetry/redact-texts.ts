/** Hides secrets in the texts of a run before they leave the gateway, by the rules of the log (LG1, A11). PURE. */
import { HIDDEN, hideSecrets, isSecretName } from "../../../../protocol/runtime/secret-shapes.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { RunTexts } from "../../ports/session.ts";

const MAX_DEPTH = 16;
const TEXT_CHARS = 8_000;

/** What the spans have of the texts. Arguments are JSON. */
export interface ShownTexts extends Omit<RunTexts, "calls"> {
  readonly calls: Readonly<Record<string, { readonly args?: string; readonly result?: string }>>;
}

/** Cuts a text from which secrets are masked already. A cut before that could leave a part of a secret, or JSON without names of fields. */
export const cut = (clean: string): string => clean.slice(0, TEXT_CHARS).replace(/[\uD800-\uDBFF]$/, "");

/** `scrub` masks the stored secrets. */
export function redactedTexts({ input, answers, calls }: RunTexts, scrub: (text: string) => string): ShownTexts {
  const text = (whole: string): string => hideSecrets(scrub(whole));
  const value = (given: unknown, depth: number): unknown => {
    if (typeof given === "string") return text(given);
    if (depth >= MAX_DEPTH) return HIDDEN;
    if (Array.isArray(given)) return given.map((item) => value(item, depth + 1));
    if (!isJsonObject(given)) return given;
    return Object.fromEntries(
      Object.entries(given).map(([name, held]) => [text(name), isSecretName(name) ? HIDDEN : value(held, depth + 1)]),
    );
  };
  // The whole, too: a number can be a secret.
  const json = (given: unknown): string => text(JSON.stringify(value(given, 0)));
  /** A result is often JSON: then its fields are judged by their names, too. */
  const result = (whole: string): string => {
    try {
      const parsed: unknown = JSON.parse(whole);
      return typeof parsed === "object" && parsed !== null ? json(parsed) : text(whole);
    } catch {
      return text(whole);
    }
  };
  return {
    input: cut(text(input)),
    answers: Object.fromEntries(Object.entries(answers).map(([step, answer]) => [step, cut(text(answer))])),
    calls: Object.fromEntries(
      Object.entries(calls).map(([callId, call]) => [
        callId,
        {
          ...(call.args === undefined ? {} : { args: cut(json(call.args)) }),
          ...(call.result === undefined ? {} : { result: cut(result(call.result)) }),
        },
      ]),
    ),
  };
}
