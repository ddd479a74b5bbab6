/**
 * PURE. What a person is shown of a call before it is made. Nothing in it can hide from the eye: control, bidi and zero-width
 * characters are written as escapes, and long runs of blanks and empty lines as their number.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { scopeText } from "../policy/grant-text.ts";
import type { GrantScope } from "../ports/grants.ts";
import type { AwaitingCall } from "./open-call.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";

/** Characters that are not seen, or that change how their neighbours are seen: controls, formats, lone halves, unknown ones, blanks of other widths. */
const HIDDEN = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\u2d7f\ufffc\u{16fe4}\u{1d159}]/gu;
/** Marks that stand on nothing, or more of them on one letter than scripts have: they hide what is beside them. */
const STRAY_MARKS = /(?<=^|[\n\t ])\p{M}|(?<=\p{M}{3})\p{M}/gu;
const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;

/** One function for every text that a question shows. A backslash that looks like an escape is doubled, so that no text can imitate one. */
export const visible = (text: string): string =>
  text
    .replace(/\\(?=u\{)/g, "\\\\")
    .replace(HIDDEN, escaped)
    .replace(STRAY_MARKS, escaped)
    .replace(/\t/g, "    ")
    .replace(/ {17,}/g, (blanks) => ` [${blanks.length} blanks] `)
    .replace(/\n(?:[ ]*\n){2,}/g, (lines) => `\n[${lines.split("\n").length - 2} empty lines]\n`);

export interface ShownCall {
  readonly text: string;
  /** UTF-8 bytes of the whole, as it is shown. */
  readonly bytes: number;
  /** The whole, when `text` is only its two ends. */
  readonly whole?: string;
  /** The digest of the whole, where it is known already. */
  readonly sha256?: string;
}
/** What a question shows of a call: the change of a file that it makes, else its arguments. */
export const shownOf = ({ approval: { change } }: Pick<AwaitingCall, "approval">, args: Readonly<Record<string, unknown>>): ShownCall =>
  change ?? shownCall(args);
/** A text as a question shows it. */
export const shownText = (text: string): ShownCall => fitted(visible(text));
function fitted(whole: string): ShownCall {
  const bytes = utf8Bytes(whole);
  return bytes <= LIMITS.approvalTextBytes ? { text: whole, bytes } : { text: bothEnds(whole, LIMITS.approvalTextBytes), bytes, whole };
}
/** Arguments that say where or how a call is made. They are shown before others, which may be unknown ones that a model has made up. */
const DECIDING: readonly string[] =
  "command sandbox hosts workdir background action sessionId processId path source destination force to channel account peerKind peerId sessionKey agentId".split(
    " ",
  );
const FOLDED: ReadonlySet<string> = new Set(DECIDING.map((name) => name.toLowerCase()));
const rankOf = (name: string): number => (DECIDING.includes(name) ? DECIDING.indexOf(name) : DECIDING.length);
/**
 * The arguments, one line or more each: a command first, bare, then those that decide, then the others, the short ones first. No text of one
 * can be taken for another one: further lines of a value are indented, and a name has no line break. Where there is too much, each long
 * value is cut by itself, so that no argument hides another one.
 */
export function shownCall(args: Readonly<Record<string, unknown>>): ShownCall {
  const entries = Object.keys(args)
    .map((name) => ({ name, text: entryOf(name, args[name]) }))
    .sort((left, right) => rankOf(left.name) - rankOf(right.name) || left.text.length - right.text.length)
    .map(({ text }) => text);
  const whole = entries.length === 0 ? "(no arguments)" : entries.join("\n");
  const bytes = utf8Bytes(whole);
  return bytes <= LIMITS.approvalTextBytes ? { text: whole, bytes } : { text: eachCut(entries), bytes, whole };
}
function entryOf(name: string, value: unknown): string {
  const text = visible(typeof value === "string" ? value : (JSON.stringify(value) ?? "")).replaceAll("\n", `\n${INDENT}`);
  return name === "command" ? text : `${shownName(name)}: ${text}`;
}
/** A name that a model may have made up to look like another one is in quotes: `Sandbox`, `workdir ` and letters of other scripts. */
function shownName(name: string): string {
  const isPlain = /^[A-Za-z][\w-]*$/.test(name) && (DECIDING.includes(name) || !FOLDED.has(name.toLowerCase()));
  return isPlain ? name : `"${visible(name).replaceAll(/[^ -~]|"/gu, escaped)}"`;
}
const INDENT = "    ";
/** The least that is shown of an argument that is cut. When not all arguments get so much, the first ones are shown. */
const LEAST_BYTES = 256;
function eachCut(entries: readonly string[]): string {
  const most = LIMITS.approvalTextBytes;
  const shown = entries.slice(0, Math.floor((most - GAP_BYTES) / (LEAST_BYTES + 1)));
  const others = entries.slice(shown.length);
  const left = others.reduce((sum, entry) => sum + utf8Bytes(entry) + 1, 0);
  const rest = others.length === 0 ? [] : [`[... ${others.length} more arguments of ${left} bytes are not shown ...]`];
  const share = shareOf(
    shown.map((entry) => utf8Bytes(entry)),
    most - (shown.length - 1) - (others.length === 0 ? 0 : GAP_BYTES + 1),
  );
  const parts = shown.map((entry) => (utf8Bytes(entry) <= share ? entry : bothEnds(entry, share, INDENT)));
  return [...parts, ...rest].join("\n");
}
/** The largest size with which all together have at most `most`, when each is cut to it. */
function shareOf(sizes: readonly number[], most: number): number {
  let left = most;
  const ascending = [...sizes].sort((one, other) => one - other);
  for (const [index, size] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (size > share) return share;
    left -= size;
  }
  return most;
}
/** The whole question, for a chat: what will be done where, why it is asked, and how to answer. */
export function questionText(call: Pick<AwaitingCall, "name" | "target" | "approval">, args: Readonly<Record<string, unknown>>): string {
  const { name, target, approval } = call;
  const { code, why, rule, offer } = approval;
  const { text, bytes } = shownOf(call, args);
  const where = target.kind === "node" ? target.nodeId : "the gateway";
  const isCut = bytes > LIMITS.approvalTextBytes;
  const more = isCut ? [`! The whole has ${bytes} bytes and is not shown: \`gsv approval show ${code}\` has its sha256.`] : [];
  return [
    `${visible(name)} on ${visible(where)} needs your word. ${visible(why)} (${visible(rule)})`,
    ...text.split("\n").map((line) => `| ${line}`),
    ...more,
    ...(offer === undefined ? [] : [longerText(code, offer.scope)]),
    `Code ${code}, for ${Math.round(LIMITS.approvalMs / 60_000)} minutes. Answer in your direct chat with "allow ${code}", or "deny ${code}" with a word to the agent, or with \`gsv approval allow ${code}\`.`,
  ].join("\n");
}
/**
 * For a platform that reads Markdown: as a block of code, in which `*`, `||` and links are what they are. Elsewhere they would change what is
 * seen of a command, or hide a part of it. Nothing in the text can end the block.
 */
export const verbatim = (text: string): string => `\`\`\`\n${text.replace(/`{3,}/g, (marks) => escaped("`").repeat(marks.length))}\n\`\`\``;
/** How to allow more than this call, and exactly what that would be. */
const longerText = (code: string, scope: GrantScope): string =>
  `To allow more than this call: \`gsv approval allow ${code} --for session\`, or 1h, 8h or 30d, allows ${scopeText(scope, visible)}.`;
/** The last bytes of a long text are shown, too: padding often hides something at the end. */
const LAST_BYTES = 1_024;
const LAST_SHARE = 1 / 4;
/** For the line between the two parts, or the line that ends a list. */
const GAP_BYTES = 64;
/** `indent` begins the line of the second part. */
function bothEnds(whole: string, most: number, indent = ""): string {
  const lastBytes = Math.min(LAST_BYTES, Math.floor(most * LAST_SHARE));
  const last = fitting(Array.from(whole.slice(-lastBytes)).reverse(), lastBytes).reverse();
  const first = fitting(whole, most - lastBytes - GAP_BYTES - indent.length);
  const left = utf8Bytes(whole) - utf8Bytes(first.join("")) - utf8Bytes(last.join(""));
  return `${first.join("")}\n[... ${left} bytes are not shown here ...]\n${indent}${last.join("")}`;
}
/** As many characters as fit, none of them cut. */
function fitting(chars: Iterable<string>, most: number): string[] {
  const taken: string[] = [];
  let bytes = 0;
  for (const char of chars) {
    bytes += utf8Bytes(char);
    // Half a character, where a text was cut between its halves.
    if (bytes > most || /^[\ud800-\udfff]$/.test(char)) break;
    taken.push(char);
  }
  return taken;
}
