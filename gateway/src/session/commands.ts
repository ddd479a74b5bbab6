/**
 * Parses slash commands and directives (product rule P3.3, gateway rule R6). PURE; executes nothing.
 * A command is the whole message; a directive is a part of a message and applies to it alone. An unknown `/word` is text.
 */
import {
  type Directives,
  type MachineWait,
  type ModelRef,
  type PolicyMode,
  PolicyModeValues,
  type ThinkLevel,
  ThinkLevelValues,
} from "../../../protocol/gen/types.ts";
import { durationText } from "../calls/wait.ts";
import { modelNamed, parseModel } from "../models/choose.ts";
import { isUnsure, type Taint, taintText } from "../ports/taint.ts";
import { modeTime } from "./mode.ts";

export type Command =
  | { readonly name: "stop"; readonly all?: true }
  | { readonly name: "resume" }
  | { readonly name: "trust" }
  | { readonly name: "status" }
  | { readonly name: "help" }
  | { readonly name: "new" | "reset" }
  /** `keep` absent: with a summary. */
  | { readonly name: "compact"; readonly keep?: number }
  /** Without a model: show it. `named`: an id without its provider. `clear`: back to the configured one. */
  | { readonly name: "model"; readonly model?: ModelRef; readonly named?: string; readonly clear?: true }
  | { readonly name: "think"; readonly level?: ThinkLevel; readonly clear?: true }
  /** Without a mode: show it. `ms`: how long it holds. */
  | { readonly name: "mode"; readonly mode?: PolicyMode; readonly ms?: number; readonly clear?: true };
export type Parsed =
  | { readonly kind: "command"; readonly command: Command }
  /** A command with wrong arguments; the text says how to write it. */
  | { readonly kind: "bad-command"; readonly name: string; readonly message: string }
  | { readonly kind: "bad-directive"; readonly message: string }
  /** Directives and nothing else. */
  | { readonly kind: "directive-only"; readonly directives: Directives; readonly status: boolean }
  | {
      readonly kind: "message";
      readonly text: string;
      readonly directives: Directives;
      readonly status: boolean;
      /** For the run that is under way: `/steer TEXT`. */
      readonly steer?: true;
    };

const LEVELS = ThinkLevelValues.join(", ");
export const HELP_TEXT = [
  "/status            what the conversation is doing, its model and its size",
  "/steer TEXT        show TEXT to the run that is under way, at its next step",
  "/stop              stop the run; waiting messages start next",
  "/stop all          stop everything, everywhere; messages wait until /resume",
  "/resume            go on after /stop all",
  "/new, /reset       archive the conversation and start a new one",
  "/compact           archive older messages; a summary takes their place",
  "/compact N         archive all but the last N messages, without a summary",
  "/model [P/ID]      show the model, or use this one from now on (`/model default`: the configured one)",
  "                   the provider may be left out where one provider has the model: `/model o3`",
  "/think [LEVEL]     show how long the model may think, or set it (`/think default`)",
  `                   levels: ${LEVELS} (off: none)`,
  "/mode [MODE [2h]]  show which tool calls run and which ask, or set it (`/mode default`: as configured)",
  `                   modes: ${PolicyModeValues.join(", ")} (full: from your own client only, for 1h or the given time up to 24h)`,
  "/trust             vouch for what the conversation has read (see `Read:` in /status)",
  "/help              this text",
  "For one message only, inside it: /t:LEVEL, /m:PROVIDER/MODEL, /status",
].join("\n");

export const GUEST_HELP_TEXT = [
  "/status            what this conversation is doing",
  "/help              this text",
  "Everything else that you write goes to the assistant. Other commands are its owner's.",
].join("\n");

/** `current` is the current model, as far as it is known: an id without a provider may be its provider's. */
export function parseMessage(raw: string, current?: ModelRef): Parsed {
  const text = raw.trim();
  return parseSteer(text, current) ?? parseCommand(text) ?? parseDirectives(raw, current);
}

/** A message with a command in front of it. */
function parseSteer(text: string, current: ModelRef | undefined): Parsed | undefined {
  const match = /^\/steer(?:\s+(\S[\s\S]*))?$/i.exec(text);
  if (!match) return undefined;
  const about = match[1] === undefined ? undefined : parseDirectives(match[1], current);
  if (about?.kind === "message") return { ...about, steer: true };
  if (about?.kind === "bad-directive") return about;
  return { kind: "bad-command", name: "steer", message: "Write what the run is to be shown: `/steer use the other branch`." };
}

/** Other names of commands: those of the reference's command line. */
const ALIASES: Readonly<Record<string, string>> = { t: "think", thinking: "think", "?": "help" };
/** Other names of levels, as the reference's command line has them. */
const LEVEL_ALIASES: Readonly<Record<string, ThinkLevel>> = {
  off: "none",
  min: "minimal",
  med: "medium",
  max: "xhigh",
};

const NAMES: ReadonlySet<string> = new Set([
  "steer",
  "stop",
  "resume",
  "status",
  "help",
  "new",
  "reset",
  "compact",
  "model",
  "think",
  "mode",
  "trust",
]);
/** A text that looks like a command and is none; a path or a directive does not look like one. */
export function unknownCommand(text: string): Parsed | undefined {
  const name = /^\s*\/([a-z]{1,64})(?:\s|$)/i.exec(text)?.[1]?.toLowerCase();
  if (name === undefined || NAMES.has(name) || Object.hasOwn(ALIASES, name)) return undefined;
  const message = `There is no command /${name}, so nothing was sent. /help lists the commands. To send the text, begin it with a word.`;
  return { kind: "bad-command", name, message };
}

function parseCommand(text: string): Parsed | undefined {
  const match = /^\/([a-z]+|\?)(?:\s+(\S[\s\S]*))?$/i.exec(text);
  if (!match) return undefined;
  const written = (match[1] ?? "").toLowerCase();
  const name = Object.hasOwn(ALIASES, written) ? (ALIASES[written] ?? written) : written;
  const rest = (match[2] ?? "").trim();
  const found = (command: Command): Parsed => ({ kind: "command", command });
  const bad = (message: string): Parsed => ({ kind: "bad-command", name, message });
  switch (name) {
    case "stop":
      return rest.toLowerCase() === "all" ? found({ name, all: true }) : found({ name });
    case "resume":
    case "help":
      return found({ name });
    case "trust":
      return rest === "" ? found({ name }) : bad("Send `/trust` alone.");
    case "status":
      // With more text it is a directive of that message.
      return rest === "" ? found({ name }) : undefined;
    case "new":
    case "reset":
      return rest === "" ? found({ name }) : bad(`Send \`/${name}\` alone, and the message after it.`);
    case "compact": {
      if (rest === "") return found({ name });
      const keep = /^[0-9]{1,6}$/.test(rest) ? Number(rest) : -1;
      return keep >= 0 && keep <= 100_000 ? found({ name, keep }) : bad("Say how many messages to keep, for example `/compact 20`.");
    }
    case "model": {
      if (rest === "") return found({ name });
      if (rest.toLowerCase() === "default") return found({ name, clear: true });
      const model = parseModel(rest);
      if (model) return found({ name, model });
      return /^[^\s/]{1,256}$/.test(rest)
        ? found({ name, named: rest })
        : bad("Name the model as provider/id, for example `/model anthropic/claude-sonnet-5`.");
    }
    case "think": {
      if (rest === "") return found({ name });
      if (rest.toLowerCase() === "default") return found({ name, clear: true });
      const level = parseLevel(rest);
      return level ? found({ name, level }) : bad(`There is no such level. Use one of ${LEVELS}.`);
    }
    case "mode": {
      const [word = "", time, ...more] = rest.toLowerCase().split(/\s+/);
      if (word === "") return found({ name });
      if (word === "default" && time === undefined) return found({ name, clear: true });
      const mode = PolicyModeValues.find((known) => known === word);
      if (mode === undefined) return bad(`There is no such mode. Use one of ${PolicyModeValues.join(", ")}, default.`);
      if (time === undefined) return found({ name, mode });
      const ms = more.length === 0 ? modeTime(time) : undefined;
      return ms === undefined ? bad(`Write the time as 30m, 2h or 1d, up to 24 hours: \`/mode ${mode} 2h\`.`) : found({ name, mode, ms });
    }
    default:
      return undefined;
  }
}

function parseLevel(text: string): ThinkLevel | undefined {
  const written = text.toLowerCase();
  return Object.hasOwn(LEVEL_ALIASES, written) ? LEVEL_ALIASES[written] : ThinkLevelValues.find((level) => level === written);
}

/** Text in backticks is code: it has no directives. */
const CODE = /(```[\s\S]*?(?:```|$)|`[^`\n]*`)/;
const DIRECTIVE = /(^|\s)\/(t|think|m|model):(\S+)(?=\s|$)/gi;

function parseDirectives(raw: string, current: ModelRef | undefined): Parsed {
  let directives: Directives = {};
  let wrong: string | undefined;
  let touched = false;
  const strip = (part: string): string =>
    part.replace(DIRECTIVE, (_all, before: string, name: string, value: string) => {
      touched = true;
      if (name.toLowerCase().startsWith("t")) {
        const thinkLevel = parseLevel(value);
        if (thinkLevel) directives = { ...directives, thinkLevel };
        else wrong ??= `"${value.slice(0, 64)}" is not a thinking level. Use one of ${LEVELS}; nothing was sent.`;
      } else {
        const meant = modelNamed(value, current);
        if (meant.ok) directives = { ...directives, model: meant.model };
        else wrong ??= `${meant.message} Nothing was sent.`;
      }
      // The space after the directive stays.
      return before === "\n" ? before : "";
    });
  let text = raw
    .split(CODE)
    .map((part, index) => (index % 2 === 0 ? strip(part) : part))
    .join("");
  if (wrong !== undefined) return { kind: "bad-directive", message: wrong };
  // In the middle of a sentence `/status` is more likely a path than a directive.
  const edge = /^\s*\/status(?=\s)|(?:^|\s)\/status\s*$/i;
  const status = edge.test(text);
  if (status) text = text.replace(edge, " ");
  if (touched || status) text = text.trim();
  if (text === "" && (touched || status)) return { kind: "directive-only", directives, status };
  return { kind: "message", text, directives, status };
}

// ---------------------------------------------------------------- answers

export interface StatusView {
  readonly state: string;
  readonly step: number | undefined;
  readonly waiting: number;
  /** Codes of the questions that wait for the owner. In another person's conversation only their number is shown. */
  readonly questions: readonly string[];
  /** The calls that wait for their machines. In another person's conversation none is named. */
  readonly machines: readonly MachineWait[];
  readonly wall: number;
  readonly isOwners: boolean;
  readonly messages: number;
  readonly context: { readonly tokens?: number; readonly window?: number };
  readonly compactions: number;
  readonly tokens: { readonly input: number; readonly output: number; readonly costUsd?: number };
  readonly model: string | undefined;
  readonly thinkLevel: string | undefined;
  /** Absent in another person's conversation. */
  readonly mode?: string;
  /** What others may have written in the conversation. */
  readonly taint?: Taint;
  readonly sessionId: string;
  readonly sessionKey: string;
}
export function statusText(view: StatusView): string {
  const cost = view.tokens.costUsd ? `, $${view.tokens.costUsd.toFixed(4)}` : "";
  return [
    `Session: ${view.sessionKey} (${view.sessionId})`,
    `State: ${view.state}${view.step === undefined ? "" : `, step ${view.step}`}${view.waiting > 0 ? `, ${view.waiting} waiting` : ""}`,
    ...questionsText(view),
    ...machinesText(view),
    `Model: ${view.model ?? "as configured"}${view.thinkLevel === undefined ? "" : `, thinking ${view.thinkLevel}`}`,
    ...(view.mode === undefined ? [] : [`Mode: ${view.mode}`]),
    ...(isUnsure(view.taint) ? [`Read: ${taintText(view.taint)}; others may have written it (/trust vouches for it)`] : []),
    `Messages: ${view.messages}${view.compactions === 0 ? "" : `, after ${view.compactions} ${view.compactions === 1 ? "compaction" : "compactions"}`}`,
    ...contextText(view.context),
    `Tokens: ${view.tokens.input} in, ${view.tokens.output} out${cost}`,
  ].join("\n");
}
function questionsText({ questions, isOwners }: Pick<StatusView, "questions" | "isOwners">): readonly string[] {
  if (questions.length === 0) return [];
  if (!isOwners) return ["Question: the run waits for the assistant's owner"];
  const [first = ""] = questions;
  return questions.length === 1
    ? [`Question: ${first} waits for your answer (\`gsv approval show ${first}\`)`]
    : [`Questions: ${questions.join(", ")} wait for your answer (\`gsv approval list\`)`];
}
function machinesText({ machines, wall, isOwners }: Pick<StatusView, "machines" | "wall" | "isOwners">): readonly string[] {
  if (machines.length === 0) return [];
  if (!isOwners) return ["Waits: the run waits for a machine"];
  return machines.map(
    ({ nodeId, tool, until }) => `Waits: ${tool} waits for ${nodeId}, for ${durationText(until - wall)} more (/stop ends the run)`,
  );
}
function contextText({ tokens, window }: StatusView["context"]): readonly string[] {
  const grouped = (count: number): string => Math.round(count).toLocaleString("en-US");
  if (tokens === undefined) return [];
  return [`Context: ${grouped(tokens)}${window === undefined ? "" : ` of ${grouped(window)}`} tokens`];
}
export function directiveOnlyText(directives: Directives): string {
  const parts = [
    ...(directives.thinkLevel === undefined ? [] : [`thinking ${directives.thinkLevel} (to keep it: /think ${directives.thinkLevel})`]),
    ...(directives.model === undefined
      ? []
      : [
          `the model ${directives.model.provider}/${directives.model.id} (to keep it: /model ${directives.model.provider}/${directives.model.id})`,
        ]),
  ];
  return parts.length === 0 ? "" : `A directive applies to its own message only, and this message has no text: ${parts.join(" and ")}.`;
}
