/**
 * Whether HEARTBEAT.md has something to do now (rules HB3, HB4, HB9, HB10). PURE: the file, the marks of earlier beats, the current state
 * of the files that it names and what pages and commands have answered come in. No model is asked.
 */
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import { isMeaningful } from "../prompt/heartbeat.ts";
import { momentOnDay } from "./beat.ts";
import { readDuration } from "./duration.ts";
import type { Answers } from "./failing.ts";
import { publicUrl } from "./public-url.ts";

/** A condition of the front matter, as it is written. */
export type Condition = { readonly text: string } & (
  | { readonly kind: "every"; readonly ms: number; readonly at?: number }
  | { readonly kind: "file_changed"; readonly path: string }
  | { readonly kind: "unread"; readonly channel: string }
  | { readonly kind: "http_changed"; readonly url: string }
  | { readonly kind: "exec"; readonly nodeId: string; readonly command: string }
);
/** A condition that something outside of the gateway answers. */
export type Asked = Extract<Condition, { readonly kind: "http_changed" | "exec" }>;
export const isAsked = (condition: Condition): condition is Asked => condition.kind === "http_changed" || condition.kind === "exec";
export type Instructions =
  | { readonly kind: "empty" }
  /** Without conditions, each beat asks the model. */
  | { readonly kind: "tasks"; readonly conditions: readonly Condition[] }
  /** `lines`: those that are wrong. `conditions`: those that are right, which are not looked at until all are. */
  | {
      readonly kind: "wrong";
      readonly problem: string;
      readonly lines: readonly WrongLine[];
      readonly conditions: readonly Condition[];
    };
/** `why` continues a sentence that begins with the line. */
export interface WrongLine {
  readonly number: number;
  readonly text: string;
  readonly why: string;
}
/** By the text of a condition: when it was true the last time, the state of its file or page, or the last message that was seen. */
export type Marks = Readonly<Record<string, number | string>>;

const MAX_CONDITIONS = 20;
/** Each of them is a request or a command at every beat. */
const MAX_ASKED = 5;
const MAX_CONDITION_CHARS = 1_000;
/** Characters of a wrong line in a message, and the wrong lines of one message. */
const SHOWN_CHARS = 100;
const MAX_TOLD = 8;
const CHANNEL = /^[a-z][a-z0-9_-]{0,63}$/;
const FRONT = /^\ufeff?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;
/** A line of three dashes without another one is also a rule of Markdown: then no key follows. */
const UNENDED = /^\ufeff?---[ \t]*\r?\n\s*(?:-\s+)?[a-z_]+:/;

export function readInstructions(text: string): Instructions {
  const front = FRONT.exec(text);
  if (front === null && UNENDED.test(text))
    return wrong("The front matter of HEARTBEAT.md has no end: write a line `---` after its conditions.");
  const rest = front === null ? text : text.slice(front[0].length);
  if (!isMeaningful(rest)) return { kind: "empty" };
  const conditions: Condition[] = [];
  const lines: WrongLine[] = [];
  for (const [index, line] of (front?.[1] ?? "").split(/\r?\n/).entries()) {
    // In a command `#` may be a part of it.
    const said = (COMMAND_LINE.test(line) ? line : line.replace(/(?:^|\s)#.*$/, "")).trim();
    if (said === "" || said === "when:") continue;
    const condition = conditionOf(said.replace(/^-\s+/, ""));
    // The first line is the `---`.
    if (condition === undefined || typeof condition === "string")
      lines.push({ number: index + 2, text: shownLine(said), why: condition ?? NO_CONDITION });
    else conditions.push(condition);
  }
  const asked = conditions.filter(isAsked).length;
  const isWithin = asked <= MAX_ASKED && conditions.length <= MAX_CONDITIONS;
  if (lines.length > 0) return wrong(problemOf(lines), lines, isWithin ? conditions : []);
  if (asked > MAX_ASKED)
    return wrong(`HEARTBEAT.md has ${asked} conditions with \`http_changed\` or \`exec\`; at most ${MAX_ASKED} are looked at.`);
  if (conditions.length > MAX_CONDITIONS)
    return wrong(`HEARTBEAT.md has ${conditions.length} conditions; at most ${MAX_CONDITIONS} are read.`);
  return { kind: "tasks", conditions };
}
export const wrong = (problem: string, lines: readonly WrongLine[] = [], conditions: readonly Condition[] = []): Instructions => ({
  kind: "wrong",
  problem,
  lines,
  conditions,
});
const NO_CONDITION = "is not a condition";
/** As it is shown, sent to the owner and kept in the log of the heartbeat. */
export const shownLine = (text: string): string => withoutPassword(text).slice(0, SHOWN_CHARS);
/** What stops a heartbeat. `unfit`: the conditions that cannot be followed, each with the end of a sentence that begins with it. */
export function problemOf(lines: readonly WrongLine[], unfit: Iterable<readonly [condition: string, why: string]> = []): string {
  const others = [...unfit].map(([text, why]) => ({ number: undefined, text: shownLine(text), why }));
  return problemWith([...lines, ...others]);
}
function problemWith(lines: readonly (Omit<WrongLine, "number"> & { readonly number: number | undefined })[]): string {
  const [first] = lines;
  const examples = lines.some(({ why }) => why === NO_CONDITION) ? ` Conditions are such as ${EXAMPLES}.` : "";
  if (first !== undefined && lines.length === 1) return `\`${first.text}\` in HEARTBEAT.md ${first.why}.${examples}`;
  const told = lines
    .slice(0, MAX_TOLD)
    .map(({ number, text, why }) => `${number === undefined ? "" : `Line ${number}, `}\`${text}\`: it ${why}.`);
  const more = lines.length > MAX_TOLD ? ` and ${lines.length - MAX_TOLD} more.` : "";
  return `HEARTBEAT.md has ${lines.length} wrong lines. ${told.join(" ")}${more}${examples}`;
}
const withoutPassword = (text: string): string => text.replace(/\/\/[^/\s@]*@/g, "//***@");
const COMMAND_LINE = /^\s*(?:-\s+)?exec:/;
const EXAMPLES =
  "`every: 2h`, `every: 1d at 09:00`, `file_changed: notes/inbox.md`, `unread: whatsapp`, `http_changed: https://example.org/news` and `exec: laptop test -e /tmp/ready`";

/** A text continues the sentence that names the line, and says what is wrong with it. */
function conditionOf(text: string): Condition | string | undefined {
  if (text.length > MAX_CONDITION_CHARS) return undefined;
  const [, name, given] = /^(\w+):\s*(.+)$/.exec(text) ?? [];
  const value = given?.replace(/^(["'])(.*)\1$/, "$2").trim();
  if (value === undefined || value === "") return undefined;
  if (name === "file_changed") return { kind: "file_changed", path: value, text: `file_changed: ${value}` };
  if (name === "unread") {
    const channel = value.toLowerCase();
    return CHANNEL.test(channel) ? { kind: "unread", channel, text: `unread: ${channel}` } : undefined;
  }
  if (name === "http_changed") {
    const read = publicUrl(value);
    return read.ok ? { kind: "http_changed", url: value, text: `http_changed: ${value}` } : read.problem;
  }
  if (name === "exec") {
    const [, nodeId, command] = /^([A-Za-z0-9][\w.-]{0,63})\s+(.+)$/.exec(value) ?? [];
    if (nodeId === undefined || command === undefined) return "names no machine and command, as in `exec: laptop test -e /tmp/ready`";
    return { kind: "exec", nodeId, command, text: `exec: ${nodeId} ${command}` };
  }
  if (name !== "every") return undefined;
  const [, duration = "", hour, minute] = /^(.+?)(?:\s+at\s+(\d{1,2}):(\d{2}))?$/.exec(value) ?? [];
  const ms = readDuration(duration);
  if (ms === undefined || ms < 60_000) return undefined;
  const written = { kind: "every", ms, text: `every: ${value}` } as const;
  if (hour === undefined || minute === undefined) return written;
  const at = Number(hour) * 60 + Number(minute);
  return Number(hour) > 23 || Number(minute) > 59 || ms % DAY_MS !== 0 ? undefined : { ...written, at };
}

/** From when on messages count for a condition. What was written before the first look is not new. */
export function unreadSince(text: string, marks: Marks, now: number): number {
  const mark = Object.hasOwn(marks, text) ? marks[text] : undefined;
  return typeof mark === "number" ? Math.min(mark, now) : now;
}
/** What is known about the conditions now. `states`: of the files that they name, by path; `wrote`: the last message, by channel. */
export interface Facts {
  readonly now: number;
  readonly tz: string;
  readonly states: ReadonlyMap<string, string>;
  readonly wrote?: ReadonlyMap<string, number>;
  /** By the text of a condition, also why one could not be looked at. */
  readonly answers?: Answers;
}
/** How a condition stands now. */
export interface Standing {
  readonly isTrue: boolean;
  /** A sentence for the owner. */
  readonly why: string;
  /** For the next beat. Absent: nothing is kept. */
  readonly mark?: number | string;
}
/** What is true now, and the marks for the next beat. */
export function check(
  conditions: readonly Condition[],
  marks: Marks,
  facts: Facts,
): { readonly due: readonly string[]; readonly marks: Marks } {
  const due: string[] = [];
  const next: Record<string, number | string> = {};
  for (const condition of conditions) {
    const { isTrue, mark } = standing(condition, marks, facts);
    if (isTrue) due.push(condition.text);
    if (mark !== undefined) next[condition.text] = mark;
  }
  return { due, marks: next };
}
const BEGINNING = "There is nothing to compare with yet: the first look of a heartbeat is a beginning.";
export function standing(condition: Condition, marks: Marks, { now, tz, states, wrote = new Map(), answers = new Map() }: Facts): Standing {
  const { text } = condition;
  const mark = Object.hasOwn(marks, text) ? marks[text] : undefined;
  switch (condition.kind) {
    case "file_changed": {
      const state = states.get(condition.path) ?? "absent";
      // Changes before the first look do not count.
      if (mark === undefined) return { isTrue: false, why: BEGINNING, mark: state };
      const why = mark !== state ? "The file has changed since the last check." : "The file has not changed since the last check.";
      return { isTrue: mark !== state, why: state === "absent" ? `${why} There is no such file.` : why, mark: state };
    }
    case "unread": {
      const from = unreadSince(text, marks, now);
      const at = wrote.get(condition.channel) ?? from;
      const none = mark === undefined ? BEGINNING : "No one else has written since the last look.";
      return { isTrue: at > from, why: at > from ? "Someone has written since the last look." : none, mark: Math.max(at, from) };
    }
    case "exec": {
      const isTrue = answerIsTrue(answers, text);
      const why = isTrue ? "The command exited with 0." : "The command exited with a nonzero code.";
      return { isTrue, why, ...(mark === undefined ? {} : { mark }) };
    }
    case "http_changed": {
      const answer = answers.get(text);
      const print = answer?.kind === "print" ? answer.print : undefined;
      // As for a file, the first look is no change. What could not be looked at keeps its mark.
      const isTrue = print !== undefined && mark !== undefined && mark !== print;
      const same = mark === undefined ? BEGINNING : "The page has not changed since the last check.";
      const seen = print ?? mark;
      return {
        isTrue,
        why: isTrue ? "The page has changed since the last check." : same,
        ...(seen === undefined ? {} : { mark: seen }),
      };
    }
    case "every":
      return everyStanding(condition, typeof mark === "number" && mark <= now ? mark : undefined, now, tz);
  }
}
const answerIsTrue = (answers: Answers, text: string): boolean => {
  const answer = answers.get(text);
  return answer?.kind === "ended" && answer.isTrue;
};
function everyStanding({ ms, at }: Extract<Condition, { kind: "every" }>, since: number | undefined, now: number, tz: string): Standing {
  const isTrue = at === undefined ? since === undefined || now - since >= ms : isSlotDue(ms, at, since, now, tz);
  const first = at === undefined ? "It was never true before." : BEGINNING;
  const why = isTrue ? "The interval has passed since it was last true." : "The interval has not passed since it was last true.";
  return { isTrue, why: since === undefined ? first : why, mark: isTrue || since === undefined ? now : since };
}
/** Enough days lie between the last time of the day and the one at or before the mark. The first look is a mark: it makes nothing due. */
function isSlotDue(ms: number, at: number, since: number | undefined, now: number, tz: string): boolean {
  if (since === undefined) return false;
  const slotOf = (moment: number): number => {
    const today = momentOnDay(moment, 0, at, tz);
    return today <= moment ? today : momentOnDay(moment, -1, at, tz);
  };
  return slotOf(now) - slotOf(since) >= ms - CLOCK_CHANGE_MS;
}
/** A change of clocks makes a day this much shorter at most. */
const CLOCK_CHANGE_MS = 3 * 3_600_000;
