/**
 * Conditions that could not be looked at (rule HB11). PURE. Each failure is counted; the first one of a day wakes the model, so that a
 * condition is never silent and never costs a model call at each beat.
 */
import { DAY_MS } from "../../../protocol/runtime/day.ts";

/** What a look at one condition gave. */
export type Answer =
  /** The fingerprint of a page: equal ones mean an unchanged page. */
  | { readonly kind: "print"; readonly print: string }
  /** Whether a command ended with 0. */
  | { readonly kind: "ended"; readonly isTrue: boolean }
  /** `why`: a sentence without any text of a page or a command: the model reads it. */
  | { readonly kind: "failed"; readonly why: string }
  /** The condition cannot be followed until it is repaired. */
  | { readonly kind: "wrong"; readonly why: string };
/** By the text of a condition. */
export type Answers = ReadonlyMap<string, Answer>;

export interface Failing {
  /** Failures in a row. 0: it holds again, and only `toldAt` is kept. */
  readonly count: number;
  readonly since: number;
  readonly why: string;
  /** When the model was woken for it. */
  readonly toldAt?: number;
}
/** By the text of a condition. */
export type Failings = Readonly<Record<string, Failing>>;

const MAX_CHARS = 400;

/** After a look. `tell`: conditions that the model is to be told of now. */
export function failingAfter(
  before: Failings,
  answers: Answers,
  now: number,
): { readonly failing: Failings; readonly tell: readonly string[] } {
  const failing: Record<string, Failing> = {};
  const tell: string[] = [];
  for (const [text, answer] of answers) {
    const known = Object.hasOwn(before, text) ? before[text] : undefined;
    const toldAt = known?.toldAt !== undefined && known.toldAt <= now && now - known.toldAt < DAY_MS ? known.toldAt : undefined;
    const told = toldAt === undefined ? {} : { toldAt };
    if (answer.kind === "failed") {
      const isOn = known !== undefined && known.count > 0;
      failing[text] = { count: isOn ? known.count + 1 : 1, since: isOn ? known.since : now, why: answer.why.slice(0, MAX_CHARS), ...told };
      if (toldAt === undefined) tell.push(text);
    } else if (known !== undefined && toldAt !== undefined) failing[text] = { ...known, count: 0 };
  }
  return { failing, tell };
}
/** The model is woken and told of them. */
export const toldOf = (failing: Failings, tell: readonly string[], now: number): Failings =>
  Object.fromEntries(Object.entries(failing).map(([text, one]) => [text, tell.includes(text) ? { ...one, toldAt: now } : one]));
/** What the model is told. */
export const failingSentence = (text: string, { why, count }: Failing): string =>
  `\`${text}\` could not be looked at${count === 1 ? "" : ` ${count} times in a row`}: ${why}`;
