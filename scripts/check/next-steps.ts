/**
 * An error's next step is its hint, and not a part of its message: a client that shows both would say it twice, or say two different steps.
 * PURE: takes texts, gives findings.
 */
import { blank, type Finding, type Sources } from "./dependency-rules.ts";

/** How a sentence about the next step begins in messages that were found. */
const STEP = /\b(?:Try (?:it )?again|Run \\?`gsv|Wait |Send (?:it|the message) again)/;
/** A call that makes an error from a reason, a message and a hint, or the fields of an error. The message begins where the match ends. */
const MESSAGES = [
  /\b(?:failure|fail|failed|refuse|problemResponse)\(\s*(?:[\w."'\s?:]|\([^()]*\))*,/g,
  /\breason(?:: *[\w."]+)?,\s*message:/g,
];
const LITERAL = /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

const isProduct = (file: string): boolean => /^gateway\/(?:src|packs)\/.*\.ts$/.test(file) && !/\.test\.ts$/.test(file);

export function nextStepFindings(sources: Sources): Finding[] {
  return [...sources].flatMap(([file, text]): Finding[] => {
    if (!isProduct(file)) return [];
    const code = blank(text, { comments: true, strings: false });
    const shape = blank(text, { comments: true, strings: true });
    return MESSAGES.flatMap((pattern) =>
      [...code.matchAll(pattern)].flatMap(({ index, 0: { length } }): Finding[] => {
        const [from, to] = [index + length, endOf(shape, index + length)];
        const found = [...code.slice(from, to).matchAll(LITERAL)].find(([literal]) => STEP.test(literal));
        if (found === undefined) return [];
        const line = code.slice(0, from + found.index).split("\n").length;
        const step = STEP.exec(found[0])?.[0].trim();
        return [{ rule: "next step", file, line, message: `The message says "${step}": give the next step as the hint.` }];
      }),
    );
  });
}

/** The end of an argument or of a field: the next comma, or the bracket that closes what it is in. */
function endOf(shape: string, from: number): number {
  let depth = 0;
  for (let at = from; at < shape.length; at++) {
    const unit = shape[at] ?? "";
    if (depth === 0 && /[,)\]}]/.test(unit)) return at;
    if (/[([{]/.test(unit)) depth++;
    else if (/[)\]}]/.test(unit)) depth--;
  }
  return shape.length;
}
