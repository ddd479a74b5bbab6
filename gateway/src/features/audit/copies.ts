/**
 * Copies the audit to the bucket, one file for each day (rule AU5): JSON lines, packed, with the end of the chain as the last line. A
 * copy holds whole entries, so its bytes follow from the log, and writing it again changes nothing. The log remembers how far the copies
 * go only after the bucket has the file.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AuditBreak, AuditEntry, AuditExport } from "../../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import type { Audit } from "../../kernel/audit-store.ts";
import { auditCopiesPrefix, auditCopyKey } from "../../storage/keys.ts";
import type { Bucket } from "../../storage/bucket.ts";

/** Files of one run of the alarm. */
const MAX_FILES = 32;
/** Months that are searched for the newest copy: the retention and one. */
const MAX_MONTHS = 5;
const day = (at: number): string => new Date(at).toISOString().slice(0, 10);
const endOfDay = (at: number): number => Math.floor(at / DAY_MS) * DAY_MS + DAY_MS;

export class AuditCopies {
  readonly #audit: Audit;
  readonly #bucket: Bucket;

  constructor(audit: Audit, bucket: Bucket) {
    this.#audit = audit;
    this.#bucket = bucket;
  }

  /** After the end of the day of the oldest entry without a copy. */
  next(): number | undefined {
    const oldest = this.#audit.oldestUncopiedAt();
    return oldest === undefined ? undefined : endOfDay(oldest);
  }

  /** Copies every complete day. Throws when the bucket fails, so that the alarm tries again; the failure is kept until then. */
  async run(now: number): Promise<void> {
    await this.#audit.seal();
    for (let files = 0; files < MAX_FILES; files++) {
      const due = this.next();
      if (due === undefined || due > now) return;
      try {
        if (!(await this.#copyOne())) return;
      } catch (error) {
        const { seq, failingSince } = this.#audit.copied();
        const problem = error instanceof Error ? error.message : String(error);
        this.#audit.setCopied({ seq, failingSince: failingSince ?? now, problem: problem.slice(0, 512) });
        throw error;
      }
    }
  }

  /** False: there is no sealed entry to copy. */
  async #copyOne(): Promise<boolean> {
    const { seq } = this.#audit.copied();
    const rows = this.#audit.after(seq, LIMITS.auditFileEntries);
    const [first] = rows;
    if (first === undefined) return false;
    const end = endOfDay(first.at);
    const later = rows.findIndex(({ at }) => at >= end);
    const entries = later === -1 ? rows : rows.slice(0, later);
    const last = entries.at(-1) ?? first;
    const bytes = await packed(entries);
    const customMetadata = { lastSeq: String(last.seq), lastHash: last.hash, entries: String(entries.length) };
    await this.#bucket.put(auditCopyKey(day(first.at), first.seq), bytes, {
      httpMetadata: { contentType: "application/gzip" },
      customMetadata,
    });
    this.#audit.setCopied({ seq: last.seq });
    return true;
  }

  /** What the copies say of the log: the end of the newest one must be an entry of it. */
  async compare(now: number): Promise<{ readonly exported: AuditExport; readonly broken?: AuditBreak }> {
    const { failingSince, problem } = this.#audit.copied();
    const failing = failingSince === undefined ? {} : { failingSince, ...(problem === undefined ? {} : { problem }) };
    const newest = await this.#newest(now);
    if (newest === undefined) return { exported: failing };
    const lastSeq = Number(newest.customMetadata?.["lastSeq"]);
    const exported = { key: newest.key, ...(Number.isSafeInteger(lastSeq) && lastSeq >= 0 ? { lastSeq } : {}), ...failing };
    const broken = this.#misfit(newest, lastSeq, now);
    return broken === undefined ? { exported } : { exported, broken };
  }
  /** Whether the retention of the copy's last entry can be over: its day began that long ago. */
  #isDue(key: string, now: number): boolean {
    const [, began] = /(\d{4}-\d{2}-\d{2})-[^/]*$/.exec(key) ?? [];
    return began !== undefined && Date.parse(began) < now - LIMITS.auditDays * DAY_MS;
  }
  #misfit({ key, customMetadata }: R2Object, lastSeq: number, now: number): AuditBreak | undefined {
    if (!Number.isSafeInteger(lastSeq) || lastSeq < 1)
      return {
        seq: 0,
        problem: `The copy ${key} in the bucket does not say with which entry it ends: it was replaced, or added by another program.`,
      };
    // Pruned entries are in the copy alone.
    if (lastSeq <= this.#audit.anchorSeq()) return this.#isDue(key, now) ? undefined : { seq: lastSeq, problem: tooEarly(key, lastSeq) };
    const hash = this.#audit.hashAt(lastSeq);
    if (hash === customMetadata?.["lastHash"]) return undefined;
    const what = hash === undefined ? "is missing in the log" : "differs from the log";
    return { seq: lastSeq, problem: `Entry ${lastSeq} ${what}: the copy ${key} in the bucket ends with it.` };
  }
  async #newest(now: number): Promise<R2Object | undefined> {
    const month = new Date(now);
    // A day ahead, for a clock that was set back.
    month.setTime(now + DAY_MS);
    for (let tried = 0; tried < MAX_MONTHS; tried++) {
      const prefix = auditCopiesPrefix(month.toISOString().slice(0, 7));
      const newest = await this.#lastBelow(prefix);
      if (newest !== undefined) return newest;
      month.setUTCDate(0);
    }
    return undefined;
  }
  async #lastBelow(prefix: string): Promise<R2Object | undefined> {
    let last: R2Object | undefined;
    let cursor: string | undefined;
    do {
      const page = await this.#bucket.list({ prefix, include: ["customMetadata"], ...(cursor === undefined ? {} : { cursor }) });
      last = page.objects.at(-1) ?? last;
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined);
    return last;
  }
}

const tooEarly = (key: string, seq: number): string =>
  `Entry ${seq} was removed before its time: the copy ${key} in the bucket ends with it, and is not as old as the retention.`;

async function packed(entries: readonly AuditEntry[]): Promise<ArrayBuffer> {
  const last = entries.at(-1);
  const chain = { chain: { entries: entries.length, lastSeq: last?.seq, lastHash: last?.hash } };
  const text = [...entries, chain].map((line) => `${JSON.stringify(line)}\n`).join("");
  return new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
}
