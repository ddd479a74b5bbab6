/**
 * How full the model's context is (its pressure): computes the budget of tokens, and where a compaction cuts (product rule P5.3). PURE: counts
 * tokens, never messages. Uses the provider's counts where there are any, and estimates otherwise (models/estimate.ts).
 */
import type { CompactionConfig } from "../../../protocol/gen/types.ts";
import { tokensOfChars } from "../models/estimate.ts";
import { type ContentBlock, textOf } from "../ports/messages.ts";
import { LIMITS, TASK_CHARS } from "./machine/limits.ts";
import { type MessageRow, seqSpan } from "./machine/log.ts";
import type { CutPlan } from "./machine/state.ts";
import { cutMiddle } from "./machine/text.ts";

export interface ContextBudget {
  readonly window: number;
  /** Above this there is too little headroom for the answer. */
  readonly threshold: number;
  /** Tokens of the last messages that stay word for word. */
  readonly keep: number;
}
const DEFAULT_RESERVE = 20_000;
const DEFAULT_KEEP = 20_000;
export function contextBudget(window: number, config: CompactionConfig | undefined): ContextBudget {
  const reserve = Math.min(config?.reserveTokens ?? DEFAULT_RESERVE, Math.floor(window / 2));
  const threshold = Math.max(1, window - reserve);
  return { window, threshold, keep: Math.min(config?.keepRecentTokens ?? DEFAULT_KEEP, Math.floor(threshold / 2)) };
}
/** A summary must leave most of a small window to the conversation. */
export const summaryChars = (window: number): number => Math.max(400, Math.min(LIMITS.summaryChars, Math.floor((window / 8 / 1.2) * 4)));
/**
 * Tokens that stay after a compaction: at most half of what the prompt and the summary leave, so that the next compaction is not due at
 * once. `fixed`: tokens of the prompt and the tools.
 */
export const keepBeside = ({ window, threshold, keep }: ContextBudget, fixed: number): number =>
  Math.max(0, Math.min(keep, Math.floor((threshold - fixed - tokensOfChars(summaryChars(window))) / 2)));

/** A message of the conversation with what it costs. */
export interface Weighed {
  readonly row: MessageRow;
  readonly tokens: number;
}
/**
 * Where to cut so that about `keep` tokens stay: never between a call and its result, but possibly inside a run. The last complete
 * exchange stays. So does the user's newest message, unless its run is too long; then it is quoted beside the summary. Undefined: nothing
 * can be archived.
 */
export function planCut(items: readonly Weighed[], keep: number): CutPlan | undefined {
  const latest = lastExchange(items);
  let at = items.length;
  for (let tokens = 0; at > 0; at--) {
    tokens += items[at - 1]?.tokens ?? 0;
    if (tokens > keep) break;
  }
  at = Math.min(at, latest);
  while (at < latest && items[at]?.row.kind === "toolResult") at += 1;
  at = atBeginning(items, at, latest, keep);
  return at <= 0 ? undefined : cutBefore(items, at);
}
/** Prefers a cut before a message of the user, if that costs at most half of the tokens that may stay. */
function atBeginning(items: readonly Weighed[], from: number, latest: number, keep: number): number {
  let given = 0;
  for (let at = from; at <= latest; at++) {
    if (items[at]?.row.kind === "user") return at;
    given += items[at]?.tokens ?? 0;
    if (given > keep / 2) return from;
  }
  return from;
}
/** Index where the last complete exchange begins: an answer (with its results), and the message of the user right before it. */
function lastExchange(items: readonly Weighed[]): number {
  const answer = items.findLastIndex(({ row }) => row.kind === "assistant");
  if (answer === -1) return items.findLastIndex(({ row }) => row.kind === "user");
  return items[answer - 1]?.row.kind === "user" ? answer - 1 : answer;
}
/** `/compact N`: before a message of the user, so that at least `keep` messages stay. With 0 all messages leave, and nothing is quoted. */
export function planTrim(items: readonly Weighed[], keep: number): CutPlan | undefined {
  if (keep === 0) {
    const plan = cutBefore(items, items.length);
    if (plan === undefined) return undefined;
    const { task: _task, ...whole } = plan;
    return whole;
  }
  for (let at = Math.max(0, items.length - keep); at > 0; at--) if (items[at]?.row.kind === "user") return cutBefore(items, at);
  return undefined;
}
function cutBefore(items: readonly Weighed[], at: number): CutPlan | undefined {
  const [first, last] = [items[0]?.row, items[at - 1]?.row];
  if (!first || !last) return undefined;
  const newest = items.findLastIndex(({ row }) => row.kind === "user");
  const user = newest >= 0 && newest < at ? items[newest]?.row : undefined;
  const task = user?.kind === "user" ? quoted(user.message.content) : undefined;
  // Notices right before the first message that stays, stay with it.
  return {
    contextFrom: last.seq + seqSpan(last),
    count: at,
    kept: items.length - at,
    firstAt: first.at,
    lastAt: last.at,
    ...(task === undefined || task === "" ? {} : { task }),
  };
}
const quoted = (content: string | readonly ContentBlock[]): string =>
  cutMiddle(textOf(content), TASK_CHARS, (missing) => `[... ${missing} characters are in the archive ...]`);
