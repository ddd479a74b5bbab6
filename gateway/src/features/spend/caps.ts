/**
 * The limits of money and tokens, and the decision about a grant (rules SP1, SP3). PURE. Dollars and tokens are two purses: a call of a
 * model with a known price takes from the first, any other call from the second.
 */
import type { LimitsConfig } from "../../../../protocol/gen/types.ts";
import type { Amount } from "../../ports/spend.ts";

export type Scope = "session" | "agent" | "guest" | "guests" | "day" | "month";
export type Unit = keyof Amount;
/** From the narrowest to the widest: the first that is used up is named. */
export const SCOPES: readonly Scope[] = ["session", "agent", "guest", "guests", "day", "month"];
export const UNITS: readonly Unit[] = ["costUsd", "tokens"];
interface Cap {
  readonly setting: string;
  readonly of: (limits: LimitsConfig) => number | undefined;
}
const CAPS: Readonly<Record<Scope, Readonly<Record<Unit, Cap>>>> = {
  session: {
    costUsd: { setting: "limits.sessionDayCostUsd", of: (limits) => limits.sessionDayCostUsd },
    tokens: { setting: "limits.sessionDayTokens", of: (limits) => limits.sessionDayTokens },
  },
  agent: {
    costUsd: { setting: "limits.agentDayCostUsd", of: (limits) => limits.agentDayCostUsd },
    tokens: { setting: "limits.agentDayTokens", of: (limits) => limits.agentDayTokens },
  },
  guest: {
    costUsd: { setting: "limits.guestDayCostUsd", of: (limits) => limits.guestDayCostUsd },
    tokens: { setting: "limits.guestDayTokens", of: (limits) => limits.guestDayTokens },
  },
  guests: {
    costUsd: { setting: "limits.guestsDayCostUsd", of: (limits) => limits.guestsDayCostUsd },
    tokens: { setting: "limits.guestsDayTokens", of: (limits) => limits.guestsDayTokens },
  },
  day: {
    costUsd: { setting: "limits.dayCostUsd", of: (limits) => limits.dayCostUsd },
    tokens: { setting: "limits.dayTokens", of: (limits) => limits.dayTokens },
  },
  month: {
    costUsd: { setting: "limits.monthCostUsd", of: (limits) => limits.monthCostUsd },
    tokens: { setting: "limits.monthTokens", of: (limits) => limits.monthTokens },
  },
};
export const settingOf = (scope: Scope, unit: Unit): string => CAPS[scope][unit].setting;
/** Undefined: there is no such limit. */
export const limitOf = (limits: LimitsConfig, scope: Scope, unit: Unit): number | undefined => CAPS[scope][unit].of(limits);

/** What counts toward the limits of one scope. */
export interface Counted {
  readonly used: Amount;
  /** Set aside for other calls. */
  readonly reserved: Amount;
  /** What the owner has allowed beyond the limit in this period. */
  readonly raised: Amount;
}
export interface Full {
  readonly scope: Scope;
  readonly unit: Unit;
  readonly limit: number;
  /** The part of `limit` that the owner's answers have allowed beyond the setting. Absent: nothing. */
  readonly allowed?: number;
  readonly used: number;
  /** The least that the refused call may cost, and how much of that the limit does not leave. */
  readonly least: number;
  readonly missing: number;
}
export type Ruling = { readonly kind: "granted"; readonly amount: Amount } | { readonly kind: "full"; readonly full: Full };

/** Sums of dollars are inexact: a limit of $0.30 has headroom for three calls of $0.10. */
const ROUNDING = 1e-9;
/** A grant covers about this many calls like the one that asks... */
const CALLS_AHEAD = 8;
/** ...but no more than this share of what is left, so that one session does not block the others. */
const LARGEST_SHARE = 1 / 4;

/**
 * The grant for a call that needs `need` at most and `least` at least. Never more than any limit leaves. `counted` has the scopes that
 * the call belongs to.
 */
export function rule(
  limits: LimitsConfig,
  counted: Partial<Readonly<Record<Scope, Counted>>>,
  { need, least }: { readonly need: Amount; readonly least: Amount },
): Ruling {
  const amount: { -readonly [U in Unit]: number } = { costUsd: 0, tokens: 0 };
  for (const unit of UNITS) {
    if (need[unit] === 0) continue;
    let left = Number.POSITIVE_INFINITY;
    for (const scope of SCOPES) {
      const [configured, here] = [limitOf(limits, scope, unit), counted[scope]];
      if (configured === undefined || here === undefined) continue;
      const limit = configured + here.raised[unit];
      const leftHere = limit - here.used[unit] - here.reserved[unit];
      if (leftHere < least[unit] - ROUNDING)
        return {
          kind: "full",
          full: {
            scope,
            unit,
            limit,
            ...allowedOf(here.raised[unit]),
            used: here.used[unit],
            least: least[unit],
            missing: least[unit] - leftHere,
          },
        };
      left = Math.min(left, leftHere);
    }
    const ahead = Math.min(CALLS_AHEAD * need[unit], left * LARGEST_SHARE);
    amount[unit] = Math.min(left, Math.max(need[unit], ahead));
  }
  return { kind: "granted", amount };
}
export const allowedOf = (raised: number): Pick<Full, "allowed"> => (raised === 0 ? {} : { allowed: raised });
/** The share of a limit that is used up, such as 0.8. */
export const shareOf = (used: number, limit: number): number => (limit > 0 ? used / limit : used > 0 ? 1 : 0);
/** From this share on the owner is told. */
export const WARNED_SHARE = 0.8;
