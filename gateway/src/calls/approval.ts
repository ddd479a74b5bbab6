/**
 * PURE. The question about one tool call that its owner must allow. The answer is bound to exactly what was asked: call, tool, target,
 * arguments and the policy that asked. It decides nothing about runs, and says nothing about storage or people.
 */
import type { OutboundAction } from "../../../protocol/gen/types.ts";
import { hashPair } from "../../../protocol/runtime/hash.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import type { Offer } from "../ports/grants.ts";
import type { Taint } from "../ports/taint.ts";
import type { ToolTarget } from "../ports/tool-target.ts";

/** What the policy says about a call that needs a word of the owner. */
export interface Ask {
  /** The rule that decided, for the audit and for people. */
  readonly rule: string;
  /** A sentence for the owner: what about this call needs a word. */
  readonly why: string;
  /** What the conversation had read when the call was made. Absent: nothing of others. */
  readonly taint?: Taint;
  /** The change of a file that the call makes, in the place of its arguments. */
  readonly change?: ShownChange;
  /** What an answer can allow for longer than once. Absent: this call only. */
  readonly offer?: Offer;
}
/** A unified diff, as it is shown to people. */
export interface ShownChange {
  /** The whole, or its beginning. */
  readonly text: string;
  /** UTF-8 bytes of the whole. */
  readonly bytes: number;
  /** The digest of the whole, when `text` is only its beginning. */
  readonly sha256?: string;
}
/** The call that an answer is bound to. */
export interface Binding {
  /** sha256 over `bindingText`. */
  readonly hash: string;
  /** sha256 over `sameCallText`: the same call made again has the same one. */
  readonly argsHash: string;
  /** The version of the policy that asked. */
  readonly policy: string;
}
export interface Approval extends Ask, Binding {
  /** Names the question for people, among the open ones of its session. */
  readonly code: string;
  /** Wall times, for people. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface BoundCall {
  readonly callId: string;
  readonly name: string;
  readonly target: ToolTarget;
  readonly args: unknown;
  /** The sha256 of the file that the call changes, as it is before. Absent: it changes none that is shown. */
  readonly fileSha256?: string | undefined;
}
/** The text whose sha256 an answer is bound to. A changed byte of any part is another text. */
export const bindingText = ({ callId, name, target, args, fileSha256 }: BoundCall, policy: string): string =>
  canonicalJson([callId, name, target, args, policy, ...(fileSha256 === undefined ? [] : [fileSha256])]);
export const sameCallText = ({ name, args }: Pick<BoundCall, "name" | "args">): string => canonicalJson([name, args]);

/** JSON with the keys of objects in order, so that equal values are equal texts. */
export function canonicalJson(value: unknown): string {
  const ordered: unknown = JSON.parse(JSON.stringify(value) ?? "null", (_key, part: unknown) =>
    isJsonObject(part)
      ? Object.fromEntries(
          Object.keys(part)
            .sort()
            .map((key) => [key, part[key]]),
        )
      : part,
  );
  return JSON.stringify(ordered);
}

/** Without 0 and O, 1, I and L, 5 and S, 8 and B, U and V: what is read from a screen and typed on a phone is the same. */
export const CODE_ALPHABET = "234679ACDEFGHJKMNPQRTWXYZ";
export const CODE_CHARS = 5;
/** `seed` must be fresh: with a code that can be foreseen, a call could be made to have the code of an older question. */
export function approvalCode(seed: string, taken: ReadonlySet<string>): string {
  for (let round = 0; ; round++) {
    const [high, low] = hashPair(seed, round);
    let code = "";
    let rest = high * 2 ** 21 + (low & 0x1fffff);
    for (let at = 0; at < CODE_CHARS; at++) {
      code += CODE_ALPHABET.charAt(rest % CODE_ALPHABET.length);
      rest = Math.floor(rest / CODE_ALPHABET.length);
    }
    if (!taken.has(code)) return code;
  }
}
/** As a person types it: any case. Undefined: it can't be a code. */
export function readCode(text: string): string | undefined {
  const code = text.trim().toUpperCase();
  return code.length === CODE_CHARS && [...code].every((char) => CODE_ALPHABET.includes(char)) ? code : undefined;
}
/** A button's id is exactly what the owner would write (rule AP14). */
export const answersTo = (code: string, about: "call" | "limit" = "call"): readonly OutboundAction[] => [
  { id: `allow ${code}`, label: about === "limit" ? "Continue" : "Allow once" },
  { id: `deny ${code}`, label: about === "limit" ? "End the run" : "Deny" },
];
