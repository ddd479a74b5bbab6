/** Hides secrets in the texts of a run before they leave the gateway, by the rules of the log (LG1, A11). PURE. */
import { HIDDEN, hideSecrets, isSecretName } from "../../../../protocol/runtime/secret-shapes.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { RunTexts } from "../../ports/session.ts";

const MAX_DEPTH = 16;

/** `scrub` masks the stored secrets. */
export function redactedTexts({ input, answers, calls }: RunTexts, scrub: (text: string) => string): RunTexts {
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
  /** A result is often JSON: then its fields are judged by their names, too. */
  const result = (whole: string): string => {
    try {
      const parsed: unknown = JSON.parse(whole);
      return typeof parsed === "object" && parsed !== null ? JSON.stringify(value(parsed, 0)) : text(whole);
    } catch {
      return text(whole);
    }
  };
  return {
    input: text(input),
    answers: Object.fromEntries(Object.entries(answers).map(([step, answer]) => [step, text(answer)])),
    calls: Object.fromEntries(
      Object.entries(calls).map(([callId, call]) => [
        callId,
        {
          ...(call.args === undefined ? {} : { args: value(call.args, 0) }),
          ...(call.result === undefined ? {} : { result: result(call.result) }),
        },
      ]),
    ),
  };
}
