/**
 * The hash chain of the audit log: what an entry's hash covers, and what a page of entries says about the chain. PURE: the driver
 * computes sha256.
 */
import type { AuditBreak, AuditEntry } from "../../../protocol/gen/types.ts";

export type AuditRow = {
  seq: number;
  at: number;
  actor: string;
  action: string;
  target: string | null;
  decision: string;
  detail: string | null;
  args_hash: string | null;
  origin: string | null;
  tool: string | null;
  rule: string | null;
  /** 1: an entry of an earlier version. */
  format: number;
  prev_hash: string | null;
  hash: string | null;
};
/** An entry, by its number and its hash. */
export interface Link {
  readonly seq: number;
  readonly hash: string;
}

/** The link before the first entry of a log. */
export const FIRST: Link = { seq: 0, hash: "0".repeat(64) };
/** The first entry of the current format in a log that has older entries. */
export const GENESIS = "audit.genesis";
export const PRUNED = "audit.prune";

/** What the log says of an entry, in the order in which it is hashed and copied. */
export function contentOf(row: AuditRow): Omit<AuditEntry, "prevHash" | "hash"> {
  return {
    seq: row.seq,
    at: row.at,
    actor: row.actor,
    action: row.action,
    ...(row.origin === null ? {} : { origin: row.origin }),
    ...(row.target === null ? {} : { target: row.target }),
    ...(row.tool === null ? {} : { tool: row.tool }),
    ...(row.args_hash === null ? {} : { argsHash: row.args_hash }),
    decision: row.decision === "allowed" || row.decision === "denied" ? row.decision : "failed",
    ...(row.rule === null ? {} : { rule: row.rule }),
    ...(row.detail === null ? {} : { detail: row.detail }),
  };
}
export const entryOf = (row: AuditRow): AuditEntry => ({ ...contentOf(row), prevHash: row.prev_hash ?? "", hash: row.hash ?? "" });

/** The text whose sha256 is the entry's hash. A field that a later version adds is absent here, so that old hashes stay valid. */
export const hashedText = (row: AuditRow, prev: string): string =>
  row.format === 1
    ? JSON.stringify([prev, row.seq, row.at, row.actor, row.action, row.target, row.decision, row.detail, row.args_hash])
    : JSON.stringify([prev, contentOf(row)]);

export const genesisDetail = (count: number, hash: string): string => `${count} entries of an earlier version, the last with hash ${hash}`;
export const pruneDetail = ({ seq, hash }: Link): string =>
  `entries to ${seq} were removed after the retention time, the last with hash ${hash}`;

const brokenAt = ({ seq, at }: Pick<AuditRow, "seq" | "at">, problem: string): AuditBreak => ({ seq, at, problem });

/**
 * Whether a row is the next one after `before`. Entry numbers are consecutive: a gap shows an entry that was removed before it was hashed.
 * Only an anchor of an earlier version has no number.
 */
export const follows = (before: Link, { seq, prev_hash }: Pick<AuditRow, "seq" | "prev_hash">): boolean =>
  prev_hash === before.hash && (seq === before.seq + 1 || (before.seq === 0 && before.hash !== FIRST.hash));

/** The first row that does not follow `before`. `digests`: the sha256 of each row's text, with its own previous hash. */
export function firstBreak(before: Link, rows: readonly AuditRow[], digests: readonly string[]): AuditBreak | undefined {
  let prev = before;
  for (const [index, row] of rows.entries()) {
    if (row.hash === null || row.hash !== digests[index])
      return brokenAt(row, `Entry ${row.seq} was changed after it was written: its hash does not fit its content.`);
    if (!follows(prev, row))
      return brokenAt(row, `Entry ${row.seq} does not follow entry ${prev.seq}: an entry before it was removed, added or moved.`);
    prev = { seq: row.seq, hash: row.hash };
  }
  return undefined;
}

/** Compares the last entry with the end that is stored apart from the log. */
export function endBreak(last: Link, head: Link | undefined): AuditBreak | undefined {
  if (head === undefined)
    return last.seq === 0
      ? undefined
      : { seq: last.seq, problem: `The record of the log's end is missing; the last entry is ${last.seq}.` };
  if (head.seq > last.seq)
    return { seq: last.seq + 1, problem: `The end of the log was cut: the entries from ${last.seq + 1} to ${head.seq} are missing.` };
  if (head.seq < last.seq) return { seq: head.seq + 1, problem: `The log has entries after its recorded end, which is entry ${head.seq}.` };
  return head.hash === last.hash ? undefined : { seq: head.seq, problem: `The last entry, ${head.seq}, is not the one that was recorded.` };
}

/** The log's beginning was cut after 90 days, and an entry of that time names the cut. An older cut has none. */
export function anchorBreak(anchor: Link, newestCut: Pick<AuditRow, "seq" | "at" | "detail"> | undefined): AuditBreak | undefined {
  if (newestCut === undefined || newestCut.detail === pruneDetail(anchor)) return undefined;
  return brokenAt(newestCut, "The log does not begin where its last pruning ended: entries at its beginning were removed.");
}
