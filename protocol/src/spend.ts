/** Money and tokens of model calls. The limits are settings: `limits` in config.ts. */
import { enumOf, method, struct, t } from "./dsl.ts";

export const UsageBy = enumOf("UsageBy", "What usage is grouped by.", ["day", "agent", "session", "model", "guest"]);
const counts = {
  calls: t.int(),
  input: t.int(),
  output: t.int(),
  cacheRead: t.int(),
  cacheWrite: t.int(),
  /** Dollars for calls of models with a known price. */
  costUsd: t.number(0),
  /** Tokens of the calls of all other models. */
  unpricedTokens: t.int(),
};
export const UsageRow = struct("UsageRow", "What one group of model calls used.", {
  /** The day (YYYY-MM-DD), agent, session key, model or guest. Empty: no guest. */
  key: t.string(512),
  ...counts,
});
export const UsageCap = struct("UsageCap", "One limit and what counts toward it, in dollars or tokens.", {
  /** The setting, such as `limits.dayCostUsd`. */
  setting: t.string(64),
  /** The guest, agent or session that the limit is for. Absent: all. */
  of: t.optional(t.string(512)),
  used: t.number(0),
  /** Set aside for calls that are under way. */
  reserved: t.number(0),
  limit: t.number(0),
  /** The part of `limit` that the owner's answers have allowed beyond the setting, until the period ends. Absent: nothing. */
  allowed: t.optional(t.number(0)),
});
method("usage.get", {
  doc: "Returns what model calls used, by day, agent, session, model or guest, and how far the limits are used up. Days are those of the owner's time zone.",
  params: {
    /** Absent: by day. */
    by: t.optional(UsageBy),
    /** How many days, today included. Absent: 30. */
    days: t.optional(t.int(1, 400)),
  },
  result: {
    from: t.string(10),
    today: t.string(10),
    timeZone: t.string(64),
    /** Days in their order; anything else by cost, the most expensive first. */
    rows: t.array(UsageRow, 400),
    /** There are more rows than an answer has. */
    more: t.bool(),
    total: UsageRow,
    caps: t.array(UsageCap, 200),
    /** What the owner should know: limits that are nearly or wholly used up. */
    attention: t.array(t.string(1024), 100),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
