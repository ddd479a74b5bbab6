/**
 * The audit log: who did what, and whether it was allowed (promise S16, rules AU1-AU6). Append-only; each entry's hash covers the entry
 * before, and the end of the chain is stored apart from the entries. An entry is stored with the act itself and hashed soon after,
 * together with its neighbours: hashing is asynchronous, and a write of its own for each entry would slow every tool call. Stores
 * digests of arguments, never arguments.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { AuditBreak, AuditEntry } from "../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import type { Clock } from "../platform/clock.ts";
import { sha256Hex } from "../platform/ids.ts";
import { all, type Database, one, run } from "../platform/sql.ts";
import type { AuditInput } from "../ports/audit.ts";
import {
  type AuditRow,
  anchorBreak,
  endBreak,
  entryOf,
  FIRST,
  firstBreak,
  GENESIS,
  genesisDetail,
  hashedText,
  type Link,
  PRUNED,
  pruneDetail,
  follows,
} from "./audit-chain.ts";
import { DenialCounter } from "./audit-denials.ts";

/** The last entry that was pruned. Versions before kept its hash alone. */
const ANCHOR = "audit-anchor";
/** The last entry. In another table than the entries. */
const HEAD = "audit-head";
const COPIED = "audit-copied";
/** Entries that are hashed at once. */
const SEAL_ROWS = 200;

export interface AuditPage {
  readonly checked: number;
  readonly last: Link;
  readonly done: boolean;
  readonly broken?: AuditBreak;
}
/** How far the copies in the bucket go. */
export interface AuditCopied {
  readonly seq: number;
  readonly failingSince?: number;
  readonly problem?: string;
}

export interface AuditHost {
  /** The first entry since the last copy was written, so that there is a time for the next copy. */
  readonly deadline: () => void;
  /** Does the work within a second. Work that is lost with the instance is planned again by the next one (`resume`). */
  readonly soon: (work: () => Promise<void>) => void;
}

export class Audit {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #denials = new DenialCounter();
  readonly #host: AuditHost;
  #sealing: Promise<void> = Promise.resolve();
  #isSealPlanned = false;
  #isDeadlineTold = false;

  constructor(db: Database, clock: Clock, host: AuditHost = { deadline: () => undefined, soon: () => undefined }) {
    this.#db = db;
    this.#clock = clock;
    this.#host = host;
  }

  /** Stores an entry at once. It becomes part of the hash chain soon, or with the next call of `seal`; every reader seals first. */
  append(input: AuditInput): void {
    const now = this.#clock.now();
    const held = input.decision === "denied" ? this.#denials.count(floodOf(input), now) : 0;
    if (held === "drop") return;
    const detail = held > 0 ? `${input.detail ?? ""} (and ${held} more like it before)`.trim() : input.detail;
    run(
      this.#db.sql,
      `INSERT INTO audit(at, actor, action, origin, target, tool, decision, rule, detail, args_hash, format)
       VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 2)`,
      now,
      input.actor.slice(0, 256),
      input.action.slice(0, 128),
      input.origin?.slice(0, 256) ?? null,
      input.target?.slice(0, 512) ?? null,
      input.tool?.slice(0, 256) ?? null,
      input.decision,
      input.rule?.slice(0, 128) ?? null,
      detail?.slice(0, 1024) ?? null,
      input.argsHash?.slice(0, 64) ?? null,
    );
    if (!this.#isDeadlineTold) {
      this.#isDeadlineTold = true;
      this.#host.deadline();
    }
    this.#planSeal();
  }

  /** At the start of an instance: the one before may have ended before it had hashed its entries. */
  resume(): void {
    if (this.#open(1).length > 0) this.#planSeal();
  }

  #planSeal(): void {
    if (this.#isSealPlanned) return;
    this.#isSealPlanned = true;
    this.#host.soon(() => {
      this.#isSealPlanned = false;
      return this.seal();
    });
  }

  /** Hashes the new entries in order. Concurrent calls share one pass. */
  seal(): Promise<void> {
    this.#sealing = this.#sealing.catch(() => undefined).then(() => this.#sealOpen());
    return this.#sealing;
  }

  /** The newest first. `intact` covers the listed entries, their links and the end of the log. */
  async list(
    limit: number,
    beforeSeq: number | undefined,
    action: string | undefined,
  ): Promise<{ readonly entries: readonly AuditEntry[]; readonly count: number; readonly intact: boolean }> {
    await this.seal();
    const rows = all<AuditRow>(
      this.#db.sql,
      "SELECT * FROM audit WHERE seq < ? AND (? = '' OR action = ?) AND hash IS NOT NULL ORDER BY seq DESC LIMIT ?",
      beforeSeq ?? Number.MAX_SAFE_INTEGER,
      action ?? "",
      action ?? "",
      limit,
    );
    const count =
      one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM audit WHERE (? = '' OR action = ?)", action ?? "", action ?? "")?.n ?? 0;
    return { entries: rows.map(entryOf), count, intact: await this.#listedIntact(rows) };
  }

  /** Sealed entries of some actions in a time, at most a bounded number of them, the oldest first. */
  between(actions: readonly string[], from: number, to: number): readonly AuditEntry[] {
    const wanted = actions.map(() => "?").join(", ");
    const rows = all<AuditRow>(
      this.#db.sql,
      `SELECT * FROM audit WHERE at BETWEEN ? AND ? AND action IN (${wanted}) AND hash IS NOT NULL ORDER BY seq LIMIT ?`,
      from,
      to,
      ...actions,
      LIMITS.auditVerifyEntries,
    );
    return rows.map(entryOf);
  }

  /** Checks the entries after `afterSeq`, as many as one page has. */
  async verify(afterSeq = 0): Promise<AuditPage> {
    await this.seal();
    const anchor = this.#anchor();
    const first = afterSeq <= anchor.seq;
    const before = first ? anchor : this.#link(afterSeq);
    if (before === undefined) {
      const broken = { seq: afterSeq, problem: `Entry ${afterSeq} is missing; it was there when the check began.` };
      return { checked: 0, last: { seq: afterSeq, hash: "" }, done: true, broken };
    }
    const rows = this.#sealed(before.seq, LIMITS.auditVerifyEntries);
    const done = rows.length < LIMITS.auditVerifyEntries;
    // Read together with the rows: entries that come meanwhile belong to neither.
    const head = this.#head();
    const cut = first ? one<AuditRow>(this.#db.sql, "SELECT * FROM audit WHERE action = ? ORDER BY seq DESC LIMIT 1", PRUNED) : undefined;
    const last = linkOf(rows.at(-1)) ?? before;
    const broken =
      (first ? anchorBreak(anchor, cut) : undefined) ??
      firstBreak(before, rows, await digestsOf(rows)) ??
      (done ? endBreak(last, head) : undefined);
    return { checked: rows.length, last, done: done || broken !== undefined, ...(broken === undefined ? {} : { broken }) };
  }

  /** The actions that the log has entries of, in alphabetical order. */
  actions(): readonly string[] {
    return all<{ action: string }>(this.#db.sql, "SELECT DISTINCT action FROM audit ORDER BY action").map(({ action }) => action);
  }

  /** Sealed entries after `afterSeq`, the oldest first. */
  after(afterSeq: number, limit: number): readonly AuditEntry[] {
    return this.#sealed(afterSeq, limit).map(entryOf);
  }
  /** The hash of an entry; undefined: it is not in the log. */
  hashAt(seq: number): string | undefined {
    return this.#link(seq)?.hash;
  }
  /** The entry at which the log begins; entries up to it were pruned. */
  anchorSeq(): number {
    return this.#anchor().seq;
  }
  headSeq(): number {
    return this.#head()?.seq ?? this.#anchor().seq;
  }

  /** The entries up to here are in the bucket. */
  copied(): AuditCopied {
    return this.#db.kv.get<AuditCopied>(COPIED) ?? { seq: 0 };
  }
  setCopied(copied: AuditCopied): void {
    this.#db.kv.put(COPIED, copied);
    this.#isDeadlineTold = false;
  }
  /** When the oldest entry without a copy was written. */
  oldestUncopiedAt(): number | undefined {
    return one<{ at: number }>(this.#db.sql, "SELECT at FROM audit WHERE seq > ? ORDER BY seq LIMIT 1", this.copied().seq)?.at;
  }

  /** Removes entries that are older than the retention. The chain continues from the last removed hash, which an entry names. */
  async prune(now: number): Promise<void> {
    await this.seal();
    const last = linkOf(
      one<AuditRow>(
        this.#db.sql,
        "SELECT * FROM audit WHERE hash IS NOT NULL AND ((at < ? AND seq <= ?) OR at < ?) ORDER BY seq DESC LIMIT 1",
        now - LIMITS.auditDays * DAY_MS,
        this.copied().seq,
        now - 2 * LIMITS.auditDays * DAY_MS,
      ),
    );
    if (last === undefined) return;
    this.#db.transactionSync(() => {
      this.#db.kv.put(ANCHOR, last);
      run(this.#db.sql, "DELETE FROM audit WHERE seq <= ?", last.seq);
      this.append({ actor: "gateway", origin: "gateway", action: PRUNED, decision: "allowed", detail: pruneDetail(last) });
    });
    await this.seal();
  }

  /** When the oldest entry expires: after 90 days, or after twice that time while it has no copy in the bucket. */
  nextPrune(): number | undefined {
    const oldest = one<{ at: number; seq: number }>(this.#db.sql, "SELECT at, seq FROM audit ORDER BY seq LIMIT 1");
    if (oldest === undefined) return undefined;
    const days = (oldest.seq <= this.copied().seq ? 1 : 2) * LIMITS.auditDays;
    // A day late, so that a busy day is pruned at once and not entry by entry.
    return oldest.at + (days + 1) * DAY_MS;
  }

  /** Entries without a hash. They follow the recorded end: without it, the whole log would be read for each entry. */
  #open(limit: number): readonly AuditRow[] {
    const from = this.#head()?.seq ?? 0;
    return all<AuditRow>(this.#db.sql, "SELECT * FROM audit WHERE seq > ? AND hash IS NULL ORDER BY seq LIMIT ?", from, limit);
  }

  async #sealOpen(): Promise<void> {
    for (;;) {
      const end = this.#head();
      const open = this.#open(SEAL_ROWS);
      const [first] = open;
      if (first === undefined) return;
      // The recorded end, and not the last entry: one that follows a cut does not hide it. An earlier version recorded no end.
      let prev = (end ?? this.#before(first.seq)).hash;
      const sealed: AuditRow[] = [];
      for (const row of open) {
        const detail = row.action === GENESIS && row.detail === null ? this.#genesis(row.seq, prev) : row.detail;
        const whole = { ...row, detail, prev_hash: prev };
        prev = await sha256Hex(hashedText(whole, prev));
        sealed.push({ ...whole, hash: prev });
      }
      this.#db.transactionSync(() => {
        for (const { seq, detail, prev_hash, hash } of sealed)
          run(
            this.#db.sql,
            "UPDATE audit SET detail = ?, prev_hash = ?, hash = ? WHERE seq = ? AND hash IS NULL",
            detail,
            prev_hash,
            hash,
            seq,
          );
        const head = linkOf(sealed.at(-1));
        if (head !== undefined) this.#db.kv.put(HEAD, head);
      });
      // What came meanwhile has a pass of its own.
      if (open.length < SEAL_ROWS) return;
    }
  }
  #genesis(seq: number, lastHash: string): string {
    return genesisDetail(one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM audit WHERE seq < ?", seq)?.n ?? 0, lastHash);
  }

  async #listedIntact(rows: readonly AuditRow[]): Promise<boolean> {
    const digests = await digestsOf(rows);
    // Read after the wait, and the log only grows at its end: entries of one action are not neighbours.
    const fits = rows.every((row, at) => row.hash === digests[at] && follows(this.#before(row.seq), row));
    return fits && endBreak(this.#before(Number.MAX_SAFE_INTEGER), this.#head()) === undefined;
  }
  #sealed(afterSeq: number, limit: number): readonly AuditRow[] {
    return all<AuditRow>(this.#db.sql, "SELECT * FROM audit WHERE seq > ? AND hash IS NOT NULL ORDER BY seq LIMIT ?", afterSeq, limit);
  }
  #link(seq: number): Link | undefined {
    return linkOf(one<AuditRow>(this.#db.sql, "SELECT * FROM audit WHERE seq = ? AND hash IS NOT NULL", seq));
  }
  /** The sealed entry before this number, or where the log begins. */
  #before(seq: number): Link {
    const row = one<AuditRow>(this.#db.sql, "SELECT * FROM audit WHERE seq < ? AND hash IS NOT NULL ORDER BY seq DESC LIMIT 1", seq);
    return linkOf(row) ?? this.#anchor();
  }
  #head(): Link | undefined {
    return this.#db.kv.get<Link>(HEAD);
  }
  #anchor(): Link {
    const stored = this.#db.kv.get<Link | string>(ANCHOR);
    return typeof stored === "string" ? { seq: 0, hash: stored } : (stored ?? FIRST);
  }
}

/** Which denials are one flood. Of tools, denials by another rule or of another tool are not: a flood of one must not hide them. */
const floodOf = ({ actor, action, rule, tool, target }: AuditInput): string =>
  rule === undefined ? `${actor} ${action}` : `${actor} ${action} ${rule} ${tool ?? target ?? ""}`;
const linkOf = (row: AuditRow | undefined): Link | undefined =>
  row === undefined || row.hash === null ? undefined : { seq: row.seq, hash: row.hash };
const digestsOf = (rows: readonly AuditRow[]): Promise<string[]> =>
  Promise.all(rows.map((row) => sha256Hex(hashedText(row, row.prev_hash ?? ""))));
