/**
 * Reads the home of a stopped gateway page by page (rules MV3 to MV5). Stores nothing: a page follows from its cursor, so that it can be
 * read again.
 */
import type { MoveHome } from "../../../../protocol/gen/types.ts";
import { asMoveId } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import type { Config } from "../../kernel/config/store.ts";
import { fail } from "../../kernel/outcome.ts";
import type { IndexSpace } from "../../ports/jobs.ts";
import type { MovablePort, MovedState, ObjectCursor, ObjectKind, ObjectRecord } from "../../ports/moving.ts";
import type { Failure, Result } from "../../ports/result.ts";
import type { SessionDirectory, SettledPort, StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import type { MoveStore } from "./move-store.ts";
import { objectsAfter, OBJECT_PIECE_BYTES, readPiece } from "./pieces.ts";
import { encodeRecords, type MoveCounts, type MoveRecord, NO_COUNTS } from "./records.ts";
import { readRowPage } from "./row-pages.ts";

/** A page ends when its records have this many characters. */
const PAGE_CHARS = 480_000;
const NAMES = 1000;
const SETTLE_MS = 250;
const SETTLE_LOOKS = 16;
const AT_ONCE = 8;
const KEYS = 50;
const LISTED = 100;
/** Bytes of the envelope around the text of a part. */
const FRAME_ROOM = 16_384;

export interface SourcePorts extends StopPort, SettledPort {
  /** Why this gateway has no home to export now. */
  readonly importing: () => Failure | undefined;
  readonly store: MoveStore;
  readonly state: MovedState;
  readonly config: Pick<Config, "moving">;
  readonly sessions: Pick<SessionDirectory, "activeSince">;
  readonly bucket: Bucket;
  readonly rowDatabase: RowDatabase | undefined;
  readonly jobsIndex: () => IndexSpace;
  readonly movable: (kind: ObjectKind, key: string) => MovablePort;
  readonly now: () => number;
  readonly arm: () => void;
  readonly after: (ms: number, work: () => void) => void;
  readonly version: string;
  readonly randomId: () => string;
}

type Phase = "gateway" | "session" | "job" | "index" | "rows" | "object" | "end";
const NEXT: Readonly<Record<Phase, Phase | undefined>> = {
  ...{ gateway: "session", session: "job", job: "index", index: "rows", rows: "object", object: "end", end: undefined },
};
interface Cursor {
  /** When the gateway was stopped. */
  readonly since: number;
  readonly phase: Phase;
  /** The session, job or object that is being read, or the last one that was. */
  readonly key?: string;
  /** The position in what is being read. */
  readonly at?: ObjectCursor;
  readonly object?: { readonly etag: string; readonly sizeBytes: number; readonly offset: number };
  /** The cursor in the list of the jobs' index. */
  readonly list?: string;
  readonly counts: MoveCounts;
}
class ChangedError extends Error {}

export class MoveSource {
  readonly #ports: SourcePorts;

  constructor(ports: SourcePorts) {
    this.#ports = ports;
  }

  /** The time of the stop. */
  #settled(): Result<number> {
    const { importing, stopped, stopSettled, store, state } = this.#ports;
    const closed = importing();
    if (closed !== undefined) return closed;
    const stop = stopped();
    if (stop === undefined) return fail("move.not_stopped");
    if (!stopSettled() || state.unsettled.some((table) => store.count(table) > 0))
      return fail(
        "move.not_stopped",
        "This gateway is being stopped: some conversations have not answered yet.",
        "Wait a moment, then run the command again.",
      );
    return { ok: true, value: stop.since };
  }

  /** A conversation that got its first message after the stop is told of it by the alarm. */
  async #willSettle(): Promise<Result<number>> {
    const { stopped, stopSettled, after, arm } = this.#ports;
    for (let look = 0; look < SETTLE_LOOKS && stopped() !== undefined && !stopSettled(); look++) {
      arm();
      await new Promise<void>((resolve) => after(SETTLE_MS, resolve));
    }
    return this.#settled();
  }

  async describe(): Promise<Result<MoveHome>> {
    const { store, state, config, now, version, randomId } = this.#ports;
    const settled = await this.#willSettle();
    if (!settled.ok) return settled;
    await state.rows.migrate(now());
    return {
      ok: true,
      value: {
        moveId: asMoveId(randomId()),
        version,
        madeAt: now(),
        levels: { ...store.levels(), ...state.sessionLevels, ...state.rows.levels },
        secrets: [...config.moving().secrets],
        hooks: [...store.names(state.named.hooks, NAMES)],
        machines: [...store.names(state.named.machines, NAMES)],
        channels: [...store.names(state.named.channels, NAMES)],
      },
    };
  }

  async read(cursor: string | undefined, part: number): Promise<Result<{ text: string; parts: number; next?: string }>> {
    const settled = this.#settled();
    if (!settled.ok) return settled;
    const from = cursor === undefined ? { since: settled.value, phase: "gateway" as const, counts: NO_COUNTS } : parseCursor(cursor);
    if (from === undefined) return fail("protocol.invalid_params", "`cursor` is not one of an answer before.");
    if (from.since !== settled.value) return fail("move.changed");
    // Last activities may still be in memory only.
    this.#ports.sessions.activeSince(this.#ports.now(), 1);
    try {
      const { records, next } = await this.#page(from);
      const after = this.#settled();
      if (!after.ok || after.value !== from.since) return fail("move.changed");
      const parts = partsOf(encodeRecords(records));
      const text = parts[part];
      if (text === undefined) return fail("protocol.invalid_params", "The page has no such part.");
      return { ok: true, value: { text, parts: parts.length, ...(next === undefined ? {} : { next: JSON.stringify(next) }) } };
    } catch (error) {
      if (error instanceof ChangedError) return fail("move.changed", error.message);
      throw error;
    }
  }

  async #page(from: Cursor): Promise<{ records: readonly MoveRecord[]; next: Cursor | undefined }> {
    const page = new Page();
    let cursor: Cursor | undefined = from;
    while (cursor !== undefined && page.left > 0) cursor = await this.#step(page, cursor);
    return { records: page.records, next: cursor };
  }

  #step(page: Page, cursor: Cursor): Promise<Cursor | undefined> {
    switch (cursor.phase) {
      case "gateway":
        return this.#gateway(page, cursor);
      case "session":
      case "job":
        return this.#objects(page, cursor, cursor.phase);
      case "index":
        return this.#index(page, cursor);
      case "rows":
        return this.#rows(page, cursor);
      case "object":
        return this.#bucket(page, cursor);
      case "end":
        page.add({ kind: "end", counts: cursor.counts });
        return Promise.resolve(undefined);
    }
  }

  async #gateway(page: Page, cursor: Cursor): Promise<Cursor> {
    const { store, state, config } = this.#ports;
    if (cursor.at === undefined) page.add({ kind: "settings", settings: config.moving().settings });
    const read = store.read(state, cursor.at, page.left);
    page.addOf("gateway", read.records);
    const counts = { ...cursor.counts, gatewayRows: cursor.counts.gatewayRows + rowsIn(read.records) };
    return read.next === undefined ? over(cursor, counts) : { ...cursor, at: read.next, counts };
  }

  async #objects(page: Page, cursor: Cursor, kind: ObjectKind): Promise<Cursor> {
    const { store, state, movable } = this.#ports;
    let { key = "", at, counts } = cursor;
    let waiting = at === undefined ? [] : [key];
    while (page.left > 0) {
      const [next = store.keysAfter(state.objects[kind], key, KEYS)[0], ...rest] = waiting;
      if (next === undefined) return over(cursor, counts);
      waiting = rest;
      key = next;
      const read = await movable(kind, key).moveOut(at, page.left);
      page.addOf(`${kind}:${key}`, read.records);
      counts = counted(counts, kind, read.records);
      at = read.next;
      if (at !== undefined) return { ...cursor, key, at, counts };
    }
    const { at: _done, ...rest } = cursor;
    return { ...rest, key, counts };
  }

  async #index(page: Page, cursor: Cursor): Promise<Cursor> {
    const found = await this.#ports
      .jobsIndex()
      .list({ prefix: "", limit: 500, ...(cursor.list === undefined ? {} : { cursor: cursor.list }) });
    for (const { name, metadata } of found.keys) page.add({ kind: "index", key: name, metadata: metadata ?? null });
    const counts = { ...cursor.counts, indexed: cursor.counts.indexed + found.keys.length };
    return found.list_complete || found.cursor === undefined ? over(cursor, counts) : { ...cursor, list: found.cursor, counts };
  }

  async #rows(page: Page, cursor: Cursor): Promise<Cursor> {
    const { rowDatabase, state, now } = this.#ports;
    if (rowDatabase === undefined) return over(cursor, cursor.counts);
    if (cursor.at === undefined) await state.rows.migrate(now());
    const read = await readRowPage(rowDatabase, state.rows, cursor.at, page.left);
    page.addOf("rows", read.records);
    const counts = { ...cursor.counts, rows: cursor.counts.rows + rowsIn(read.records) };
    return read.next === undefined ? over(cursor, counts) : { ...cursor, at: read.next, counts };
  }

  async #bucket(page: Page, cursor: Cursor): Promise<Cursor> {
    const { key = "", object, counts } = cursor;
    if (object !== undefined) {
      const piece = await this.#piece(key, object);
      page.add(piece);
      const offset = object.offset + OBJECT_PIECE_BYTES;
      const { object: _done, ...rest } = cursor;
      return offset < object.sizeBytes ? { ...cursor, object: { ...object, offset } } : rest;
    }
    const { found, next } = await objectsAfter(this.#ports.bucket, key, LISTED);
    let chars = page.left;
    // As many whole objects as the page takes, and at least one.
    const small: R2Object[] = [];
    for (const one of found) {
      if (one.size > OBJECT_PIECE_BYTES || (small.length > 0 && chars <= 0)) break;
      small.push(one);
      chars -= Math.ceil(one.size / 3) * 4 + 512;
    }
    for (let at = 0; at < small.length; at += AT_ONCE) {
      const read = small.slice(at, at + AT_ONCE).map((one) => this.#piece(one.key, { etag: one.etag, sizeBytes: one.size, offset: 0 }));
      for (const piece of await Promise.all(read)) page.add(piece);
    }
    const first = found[small.length];
    const sum = { ...counts, objects: counts.objects + small.length, bytes: small.reduce((bytes, { size }) => bytes + size, counts.bytes) };
    if (small.length > 0 && first !== undefined) return { ...cursor, key: small.at(-1)?.key ?? key, counts: sum };
    if (first !== undefined)
      return {
        ...cursor,
        key: first.key,
        object: { etag: first.etag, sizeBytes: first.size, offset: 0 },
        counts: { ...sum, objects: sum.objects + 1, bytes: sum.bytes + first.size },
      };
    return next === undefined ? over(cursor, sum) : { ...cursor, key: next, counts: sum };
  }
  async #piece(key: string, { etag, sizeBytes, offset }: NonNullable<Cursor["object"]>) {
    const piece = await readPiece(this.#ports.bucket, key, etag, sizeBytes, offset);
    if (piece === undefined) throw new ChangedError(`\`${key}\` has changed while it was exported.`);
    return piece;
  }
}

class Page {
  readonly records: MoveRecord[] = [];
  left = PAGE_CHARS;

  add(record: MoveRecord): void {
    this.records.push(record);
    this.left -= record.kind === "piece" ? record.base64.length + 256 : JSON.stringify(record).length;
  }
  addOf(owner: string, records: readonly ObjectRecord[]): void {
    for (const record of records) this.add({ kind: "of", owner, record });
  }
}
/** The next phase. */
function over({ since, phase }: Cursor, counts: MoveCounts): Cursor {
  return { since, phase: NEXT[phase] ?? "end", counts };
}
const rowsIn = (records: readonly ObjectRecord[]): number =>
  records.reduce((sum, record) => sum + (record.kind === "rows" ? record.rows.length : 0), 0);
function counted(counts: MoveCounts, kind: ObjectKind, records: readonly ObjectRecord[]): MoveCounts {
  const begun = records.filter((record) => record.kind === "object").length;
  const values = records.filter((record) => record.kind === "value").length;
  return kind === "session"
    ? { ...counts, sessions: counts.sessions + begun, sessionRows: counts.sessionRows + rowsIn(records) + values }
    : { ...counts, jobs: counts.jobs + begun, jobValues: counts.jobValues + rowsIn(records) + values };
}

function parseCursor(text: string): Cursor | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isCursor(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
function isCursor(value: unknown): value is Cursor {
  if (typeof value !== "object" || value === null) return false;
  const { since, phase, counts } = value as Partial<Record<keyof Cursor, unknown>>;
  return typeof since === "number" && typeof phase === "string" && Object.hasOwn(NEXT, phase) && typeof counts === "object";
}

/** The text in parts that fit a frame each: never cut inside a character. */
export function partsOf(text: string): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length || parts.length === 0; ) {
    let length = LIMITS.frameBytes - FRAME_ROOM;
    let piece = text.slice(at, at + length);
    while (utf8Bytes(JSON.stringify(piece)) > LIMITS.frameBytes - FRAME_ROOM) {
      length = Math.floor(length * 0.75);
      const end = at + length;
      piece = text.slice(at, (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end);
    }
    parts.push(piece);
    at += piece.length;
  }
  return parts;
}
