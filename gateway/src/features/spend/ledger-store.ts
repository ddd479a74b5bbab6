/**
 * The spend ledger's rows: what was used, by day, session, model and guest; the last report of each session; open grants; and what the
 * owner was told. Knows no limits. A report is recorded once, however often it comes (rule SP2).
 */
import type { UsageBy, UsageRow } from "../../../../protocol/gen/types.ts";
import type { Migration } from "../../platform/sql.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import { type Amount, newIn, type Raise, type SpendReport, type SpendSum } from "../../ports/spend.ts";
import type { Scope } from "./caps.ts";
import { monthOf } from "./days.ts";

export const SPEND_MIGRATIONS: readonly Migration[] = [
  {
    name: "usage, reports, grants, notices",
    up: (sql) => {
      sql.exec(`CREATE TABLE spend_usage(
        day TEXT NOT NULL, session TEXT NOT NULL, model TEXT NOT NULL, guest TEXT NOT NULL, agent TEXT NOT NULL, calls INTEGER NOT NULL,
        input INTEGER NOT NULL, output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write INTEGER NOT NULL, cost_usd REAL NOT NULL,
        tokens INTEGER NOT NULL, PRIMARY KEY(day, session, model, guest)
      ) STRICT, WITHOUT ROWID`);
      sql.exec(
        "CREATE TABLE spend_reports(session TEXT PRIMARY KEY, base INTEGER NOT NULL, count INTEGER NOT NULL, sums TEXT NOT NULL) STRICT, WITHOUT ROWID",
      );
      sql.exec(`CREATE TABLE spend_grants(
        session TEXT PRIMARY KEY, serial INTEGER NOT NULL, agent TEXT NOT NULL, guest TEXT NOT NULL, cost_usd REAL NOT NULL,
        tokens INTEGER NOT NULL, until INTEGER NOT NULL, tries INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
      sql.exec(
        "CREATE TABLE spend_told(key TEXT PRIMARY KEY, at INTEGER NOT NULL, session TEXT NOT NULL, text TEXT NOT NULL, sent INTEGER NOT NULL) STRICT, WITHOUT ROWID",
      );
    },
  },
  {
    name: "what the owner has allowed beyond limits",
    up: (sql) => {
      sql.exec(`CREATE TABLE spend_raises(
        id TEXT PRIMARY KEY, scope TEXT NOT NULL, of TEXT NOT NULL, unit TEXT NOT NULL, period TEXT NOT NULL, amount REAL NOT NULL
      ) STRICT, WITHOUT ROWID`);
    },
  },
];

/** Whose limits a call counts toward. `guest` is empty for the owner. */
export interface Spender {
  readonly session: string;
  readonly agent: string;
  readonly guest: string;
}
export interface Grant extends Spender, Amount {
  /** Another grant of the same session has another one. */
  readonly serial: number;
  readonly until: number;
  /** Times that the session did not answer when the grant ended. */
  readonly tries: number;
}
export interface Notice {
  readonly key: string;
  /** The conversation that is told. */
  readonly session: string;
  readonly text: string;
}
type GrantRow = {
  session: string;
  serial: number;
  agent: string;
  guest: string;
  cost_usd: number;
  tokens: number;
  until: number;
  tries: number;
};
type AmountRow = { cost: number | null; tokens: number | null };
type SumsRow = {
  key: string;
  calls: number;
  input: number;
  output: number;
  cache_read: number;
  cache_write: number;
  cost: number;
  tokens: number;
};

const amountOf = (row: AmountRow | undefined): Amount => ({ costUsd: row?.cost ?? 0, tokens: row?.tokens ?? 0 });
const grantOf = ({ cost_usd, ...row }: GrantRow): Grant => ({ ...row, costUsd: cost_usd });
const COLUMNS: Readonly<Record<UsageBy, string>> = { day: "day", agent: "agent", session: "session", model: "model", guest: "guest" };
const SUMS =
  "sum(calls) AS calls, sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read, sum(cache_write) AS cache_write, sum(cost_usd) AS cost, sum(tokens) AS tokens";

export class LedgerStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  transaction<T>(work: () => T): T {
    return this.#db.transactionSync(work);
  }

  /** Adds what the ledger does not have yet of a report. True: there was something. */
  record({ session, agent }: Omit<Spender, "guest">, report: SpendReport): boolean {
    const known = one<{ base: number; count: number; sums: string }>(
      this.#db.sql,
      "SELECT base, count, sums FROM spend_reports WHERE session = ?",
      session,
    );
    if (report.count <= (known?.count ?? 0)) return false;
    // Only this program writes the rows.
    const earlier: readonly SpendSum[] = known !== undefined && report.base < known.count ? JSON.parse(known.sums) : [];
    for (const sum of newIn(report.sums, earlier)) this.#add(session, agent, sum);
    run(
      this.#db.sql,
      "REPLACE INTO spend_reports(session, base, count, sums) VALUES(?, ?, ?, ?)",
      session,
      report.base,
      report.count,
      JSON.stringify(report.sums),
    );
    return true;
  }
  /** Adds what the gateway itself has spent. Negative numbers correct earlier ones. */
  addOwn({ session, agent }: Omit<Spender, "guest">, sum: SpendSum): void {
    this.#add(session, agent, sum);
  }
  #add(session: string, agent: string, { day, model, guest = "", ...sum }: SpendSum): void {
    run(
      this.#db.sql,
      `INSERT INTO spend_usage(day, session, model, guest, agent, calls, input, output, cache_read, cache_write, cost_usd, tokens)
       VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(day, session, model, guest) DO UPDATE SET calls = calls + excluded.calls,
       input = input + excluded.input, output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
       cache_write = cache_write + excluded.cache_write, cost_usd = cost_usd + excluded.cost_usd, tokens = tokens + excluded.tokens`,
      day,
      session,
      model,
      guest,
      agent,
      sum.calls,
      sum.input,
      sum.output,
      sum.cacheRead,
      sum.cacheWrite,
      sum.costUsd,
      sum.tokens,
    );
  }

  /** What counts toward a limit: settled calls of the period. */
  used(scope: Scope, { session, agent, guest }: Spender, today: string): Amount {
    const days = scope === "month" ? "day >= ? AND day <= ?" : "day = ?";
    const period = scope === "month" ? [`${monthOf(today)}-01`, `${monthOf(today)}-31`] : [today];
    const [where, more] = whereOf(scope, { session, agent, guest });
    return amountOf(
      one<AmountRow>(
        this.#db.sql,
        `SELECT sum(cost_usd) AS cost, sum(tokens) AS tokens FROM spend_usage WHERE ${days}${where}`,
        ...period,
        ...more,
      ),
    );
  }
  /** What other sessions have set aside. */
  reserved(scope: Scope, spender: Spender): Amount {
    const [where, more] = whereOf(scope, spender);
    return amountOf(
      one<AmountRow>(
        this.#db.sql,
        `SELECT sum(cost_usd) AS cost, sum(tokens) AS tokens FROM spend_grants WHERE session <> ?${where}`,
        spender.session,
        ...more,
      ),
    );
  }
  /** Once for each answer of the owner, however often it is reported. */
  raise({ id, scope, unit, period, amount }: Raise, spender: Spender): void {
    run(
      this.#db.sql,
      "INSERT OR IGNORE INTO spend_raises(id, scope, of, unit, period, amount) VALUES(?, ?, ?, ?, ?, ?)",
      id,
      scope,
      ofScope(scope, spender),
      unit,
      period,
      amount,
    );
  }
  /** What the owner has allowed beyond a limit in the period of `today`. */
  raised(scope: Scope, spender: Spender, today: string): Amount {
    const rows = all<{ unit: string; amount: number }>(
      this.#db.sql,
      "SELECT unit, sum(amount) AS amount FROM spend_raises WHERE scope = ? AND of = ? AND period = ? GROUP BY unit",
      scope,
      ofScope(scope, spender),
      periodOf(scope, today),
    );
    const of = (unit: keyof Amount): number => rows.find((row) => row.unit === unit)?.amount ?? 0;
    return { costUsd: of("costUsd"), tokens: of("tokens") };
  }

  /** Replaces the session's grant. */
  putGrant({ session, serial, agent, guest, costUsd, tokens, until, tries }: Grant): void {
    run(
      this.#db.sql,
      "REPLACE INTO spend_grants(session, serial, agent, guest, cost_usd, tokens, until, tries) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
      session,
      serial,
      agent,
      guest,
      costUsd,
      Math.ceil(tokens),
      until,
      tries,
    );
  }
  dropGrant(session: string): void {
    run(this.#db.sql, "DELETE FROM spend_grants WHERE session = ?", session);
  }
  forgetSession(session: string): void {
    this.dropGrant(session);
    run(this.#db.sql, "DELETE FROM spend_reports WHERE session = ?", session);
    run(this.#db.sql, "DELETE FROM spend_raises WHERE scope = 'session' AND of = ?", session);
  }
  grant(session: string): Grant | undefined {
    const row = one<GrantRow>(this.#db.sql, "SELECT * FROM spend_grants WHERE session = ?", session);
    return row && grantOf(row);
  }
  /** Those that end first. */
  grants(most: number, before = Number.MAX_SAFE_INTEGER): readonly Grant[] {
    return all<GrantRow>(this.#db.sql, "SELECT * FROM spend_grants WHERE until <= ? ORDER BY until LIMIT ?", before, most).map(grantOf);
  }

  /** Once per key. */
  tell({ key, session, text }: Notice, at: number): void {
    run(this.#db.sql, "INSERT OR IGNORE INTO spend_told(key, at, session, text, sent) VALUES(?, ?, ?, ?, 0)", key, at, session, text);
  }
  untold(most: number): readonly (Notice & { readonly at: number })[] {
    return all<{ key: string; session: string; text: string; at: number }>(
      this.#db.sql,
      "SELECT key, session, text, at FROM spend_told WHERE sent = 0 ORDER BY at, key LIMIT ?",
      most,
    );
  }
  told(key: string): void {
    run(this.#db.sql, "UPDATE spend_told SET sent = 1 WHERE key = ?", key);
  }
  prune(beforeDay: string, toldBefore: number): void {
    run(this.#db.sql, "DELETE FROM spend_usage WHERE day < ?", beforeDay);
    run(this.#db.sql, "DELETE FROM spend_told WHERE at < ?", toldBefore);
    run(this.#db.sql, "DELETE FROM spend_raises WHERE period < ?", monthOf(beforeDay));
  }

  usage(by: UsageBy, from: string, most: number): readonly UsageRow[] {
    const order = by === "day" ? "day" : "cost DESC, tokens DESC, key";
    return all<SumsRow>(
      this.#db.sql,
      `SELECT ${COLUMNS[by]} AS key, ${SUMS} FROM spend_usage WHERE day >= ? GROUP BY ${COLUMNS[by]} ORDER BY ${order} LIMIT ?`,
      from,
      most,
    ).map(usageRow);
  }
  total(from: string): UsageRow {
    const row = one<{ [K in keyof SumsRow]: SumsRow[K] | null }>(
      this.#db.sql,
      `SELECT 'total' AS key, ${SUMS} FROM spend_usage WHERE day >= ?`,
      from,
    );
    return usageRow({
      key: "total",
      calls: row?.calls ?? 0,
      input: row?.input ?? 0,
      output: row?.output ?? 0,
      cache_read: row?.cache_read ?? 0,
      cache_write: row?.cache_write ?? 0,
      cost: row?.cost ?? 0,
      tokens: row?.tokens ?? 0,
    });
  }
  /** The sessions, agents or guests that have used most on a day. */
  largest(by: "session" | "agent" | "guest", day: string, most: number): readonly { readonly key: string; readonly used: Amount }[] {
    return all<{ key: string; cost: number; tokens: number }>(
      this.#db.sql,
      `SELECT ${by} AS key, sum(cost_usd) AS cost, sum(tokens) AS tokens FROM spend_usage WHERE day = ? AND ${by} <> ''
       GROUP BY ${by} ORDER BY cost DESC, tokens DESC, key LIMIT ?`,
      day,
      most,
    ).map(({ key, cost, tokens }) => ({ key, used: { costUsd: cost, tokens } }));
  }
}

/** Whose sum a limit compares: the session's, the agent's, the guest's; empty: everyone's. */
function ofScope(scope: Scope, spender: Spender): string {
  return scope === "session" || scope === "agent" || scope === "guest" ? spender[scope] : "";
}
/** YYYY-MM-DD or YYYY-MM. */
export const periodOf = (scope: Scope, today: string): string => (scope === "month" ? monthOf(today) : today);

function whereOf(scope: Scope, { session, agent, guest }: Spender): readonly [string, readonly string[]] {
  switch (scope) {
    case "session":
      return [" AND session = ?", [session]];
    case "agent":
      return [" AND agent = ?", [agent]];
    case "guest":
      return [" AND guest = ?", [guest]];
    case "guests":
      return [" AND guest <> ''", []];
    case "day":
    case "month":
      return ["", []];
  }
}
const usageRow = ({ key, calls, input, output, cache_read, cache_write, cost, tokens }: SumsRow): UsageRow => ({
  key,
  calls,
  input,
  output,
  cacheRead: cache_read,
  cacheWrite: cache_write,
  costUsd: cost,
  unpricedTokens: tokens,
});
