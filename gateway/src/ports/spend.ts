/**
 * Money and tokens between a session and the spend ledger of the gateway (rules SP1-SP4). A session keeps sums of what it used since the
 * ledger last confirmed them, and reserves money in the ledger: one reservation covers several calls, so that few calls have to ask.
 */
import type { Origin } from "./origin.ts";
import type { GsvError } from "./result.ts";

/** Dollars of models with a known price, and tokens of all other models. */
export interface Amount {
  readonly costUsd: number;
  readonly tokens: number;
}
export const NOTHING: Amount = { costUsd: 0, tokens: 0 };

/** What calls of one model used on one day, for one guest or for none. */
export interface SpendSum extends Amount {
  /** YYYY-MM-DD, in the owner's time zone. */
  readonly day: string;
  /** `provider/id` */
  readonly model: string;
  /** Absent: the owner. */
  readonly guest?: string;
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}
/** Sums of the session's calls from `base` (exclusive) to `count`; calls are numbered in the order of their commits. */
export interface SpendReport {
  readonly base: number;
  readonly count: number;
  readonly sums: readonly SpendSum[];
}
export const NO_REPORT: SpendReport = { base: 0, count: 0, sums: [] };

/** A session's identity, as far as the ledger needs it. */
export interface SpendingSession {
  readonly key: string;
  readonly agentId: string;
  readonly isOwnersSession: boolean;
}
/** More than a limit of a day or a month allows, by the owner's answer. It ends with its period. */
export interface Raise extends RaiseOffer {
  /** The id of the answered question: a raise that is reported again counts once. */
  readonly id: string;
}
/** What the owner could allow when a limit of a day or a month leaves too little for the next call. */
export interface RaiseOffer {
  readonly scope: "session" | "agent" | "day" | "month";
  readonly unit: keyof Amount;
  /** YYYY-MM-DD or YYYY-MM, in the owner's time zone. */
  readonly period: string;
  readonly amount: number;
}
/** What the owner is asked for when a run has used up a limit: more of one of its own limits, or of one of a day or a month. */
export type MoreOffer = ({ readonly of: RunLimit; readonly amount: number } | { readonly of: "period"; readonly raise: RaiseOffer }) & {
  /** A sentence: which limit is used up. */
  readonly why: string;
  /** The setting of the limit. */
  readonly setting: string;
  /** The least with which the refused model call makes sense. Absent: no call was refused. */
  readonly least?: Amount;
  /** How large the refused call was: with another model or price it needs something else. Absent: no call was refused. */
  readonly size?: CallSize;
};
/** Tokens of a model call's context, and how many of them the provider may have in its cache. */
export interface CallSize {
  readonly inputTokens: number;
  readonly cachedTokens: number;
}
/** The settings of a run's own limits. */
export const RUN_LIMITS = {
  steps: "limits.stepsPerRun",
  ms: "limits.runMs",
  costUsd: "limits.runCostUsd",
  tokens: "limits.runTokens",
} as const;
export type RunLimit = keyof typeof RUN_LIMITS;
/** The same in an agent's definition, which has none for tokens. */
const DEFINED_LIMITS = { steps: "autonomy.max_iterations", ms: "autonomy.time_budget_ms", costUsd: "autonomy.cost_budget_usd" } as const;
export type DefinedLimit = keyof typeof DEFINED_LIMITS;
const isDefined = (of: RunLimit, defined: readonly DefinedLimit[]): of is DefinedLimit => defined.some((limit) => limit === of);
/** Where a limit of a run is set. `defined`: the limits that are the definition's. */
export const settingOf = (of: RunLimit, defined: readonly DefinedLimit[] = []): string =>
  isDefined(of, defined) ? DEFINED_LIMITS[of] : RUN_LIMITS[of];
/** The limit once more, or as often as it takes for what is missing. */
export const enoughMore = (limit: number, missing: number): number =>
  limit > 0 ? limit * Math.max(1, Math.ceil(missing / limit)) : missing;

export interface SpendAsk {
  readonly identity: SpendingSession;
  readonly guest?: string;
  /** The most that the next call can cost, and the least with which it makes sense. */
  readonly need: Amount;
  readonly least: Amount;
  readonly report: SpendReport;
  /** What the owner has allowed the run beyond limits of a day or a month. Absent: nothing. */
  readonly raises?: readonly Raise[];
}
export interface SpendGrant extends Amount {
  readonly calls: number;
  /** Epoch ms. No call begins under the grant after this. */
  readonly until: number;
}
/** `settled`: the ledger has the session's calls up to this number. `offer`: what the owner could allow; absent for a guest. */
export type SpendAnswer =
  | { readonly ok: true; readonly settled: number; readonly grant: SpendGrant }
  | { readonly ok: false; readonly settled: number; readonly error: GsvError; readonly offer?: MoreOffer };

/** A session's answer to the ledger, which ends its grant: what it used, and what its open call may still use. */
export interface SpendState {
  readonly report: SpendReport;
  readonly open: Amount;
}

/**
 * The guest on whose behalf a run spends; undefined: the owner. What no guest's name stands for in another person's session (ends of
 * processes, messages of sessions) counts for the session as a whole.
 */
export function guestOf({ isOwnersSession, key }: SpendingSession, origin: Origin | undefined): string | undefined {
  if (origin?.kind === "client") return undefined;
  if (origin?.kind === "channel") {
    if (origin.role === "owner") return undefined;
    return `${origin.channel}:${origin.accountId}:${origin.senderId ?? origin.peer?.id ?? ""}`.slice(0, 512);
  }
  return isOwnersSession ? undefined : key;
}

const keyOf = ({ day, model, guest }: SpendSum): string => JSON.stringify([day, model, guest ?? null]);
const NUMBERS = ["calls", "input", "output", "cacheRead", "cacheWrite", "costUsd", "tokens"] as const;
/** `sums` with one more. */
export function addSum(sums: readonly SpendSum[], more: SpendSum): readonly SpendSum[] {
  const at = sums.findIndex((sum) => keyOf(sum) === keyOf(more));
  const known = sums[at];
  return known === undefined ? [...sums, more] : sums.with(at, combined(known, more, 1));
}
/** What `sums` have more than `before`. */
export function newIn(sums: readonly SpendSum[], before: readonly SpendSum[]): readonly SpendSum[] {
  return sums.flatMap((sum) => {
    const known = before.find((old) => keyOf(old) === keyOf(sum));
    const left = known === undefined ? sum : combined(sum, known, -1);
    return left.calls > 0 ? [left] : [];
  });
}
function combined(left: SpendSum, right: SpendSum, sign: 1 | -1): SpendSum {
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, Math.max(0, left[name] + sign * right[name])]));
  return { ...left, ...numbers };
}

/** For calls that no session makes. */
export interface SpendPort {
  /** The setting of a limit of the day or the month that is used up for the owner's work of this agent. Undefined: there is none. */
  readonly spendFull: (agentId: string) => string | undefined;
  /**
   * Sets aside what a call of the gateway itself may use, for an agent's work. It counts as used until `settle` says what was. Refused
   * when a limit is used up, and while everything is stopped.
   */
  readonly ownCall: (call: OwnCall) => OwnCallAnswer;
}
export interface OwnCall {
  readonly agentId: string;
  /** `provider/id` */
  readonly model: string;
  /** The most that it can use. */
  readonly need: Amount;
}
/** What a call of the gateway itself used. */
export type OwnUse = Amount & Partial<Pick<SpendSum, "input" | "output" | "cacheRead" | "cacheWrite">>;
export type OwnCallAnswer =
  | { readonly ok: true; readonly settle: (used: OwnUse) => void }
  | { readonly ok: false; readonly error: GsvError };
/** What stands for the gateway itself, where usage is shown by conversation. */
export const OWN_WORK = "gateway";
