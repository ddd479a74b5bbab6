/**
 * Imports a home into a fresh gateway (rules MV6 to MV12). Objects, sessions and jobs are written as their pages arrive; the gateway's own
 * tables at the end, in one transaction. Every step can be made again.
 */
import type { MoveHome } from "../../../../protocol/gen/types.ts";
import type { Config } from "../../kernel/config/store.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { IndexSpace, JobPort } from "../../ports/jobs.ts";
import { CONVERTER, type MovablePort, type MovedState, type ObjectCursor, type ObjectKind, type ObjectRecord } from "../../ports/moving.ts";
import { newerStateText } from "../../ports/newer-state.ts";
import type { Origin } from "../../ports/origin.ts";
import { failure, type Failure, type Result, succeed } from "../../ports/result.ts";
import type { AskSession, StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import { freshness, restoreDefaults, usedTable } from "./fresh.ts";
import type { ImportState, KeyKind, MoveStore } from "./move-store.ts";
import { countObjects, emptyBucket, writePiece } from "./pieces.ts";
import { decodeRecords, type MoveCounts, type MoveRecord } from "./records.ts";
import { countRows, emptyRows, writeRowPage } from "./row-pages.ts";

export interface TargetPorts extends StopPort, Pick<KernelPorts, "arm" | "ids" | "log" | "now"> {
  readonly store: MoveStore;
  readonly state: MovedState;
  readonly config: Config;
  readonly bucket: Bucket;
  readonly rowDatabase: RowDatabase | undefined;
  readonly jobsIndex: () => IndexSpace;
  readonly movable: (kind: ObjectKind, key: string) => MovablePort;
  readonly job: (id: string) => JobPort;
  readonly ask: AskSession;
  readonly stopRpc: {
    stopFor(by: string, origin: Origin): Promise<string>;
    resumeFor(by: string, origin: Origin, how?: { readonly exported?: boolean }): string;
  };
  readonly sendQueuedAgain: () => Promise<void>;
  /** The object begins again with what is stored now. */
  readonly restart: () => void;
}
interface Removed {
  removedSecrets?: string[];
}
export interface MoveTotals extends Removed {
  readonly objects: number;
  readonly bytes: number;
  readonly sessions: number;
  readonly jobs: number;
  readonly rows: number;
}

const ORIGIN: Origin = { kind: "client", clientId: "move" };
const KEYS = 100;
const CONVERTED_CHARS = 1_000_000;
/** The alarm wakes what waits, if no one asks for it before. */
const WAKE_MS = 2000;
const MAX_KEY_CHARS = 1024;
const damaged = (message: string, hint?: string): Failure => failure("move.damaged", message, hint);

const SETTINGS_NEXT =
  "Correct the setting at the gateway that was exported, give this import up with `gsv deploy import --cancel`, then export and import again.";
/** Ends the transaction that it is thrown in. */
class SettingsRefused extends Error {}
function taken(moved: ReturnType<Config["moveIn"]>): readonly string[] {
  if (!moved.ok) throw new SettingsRefused(`The settings of the export were refused: ${moved.error.message} Nothing is live.`);
  return moved.value;
}
const removedOf = (state: ImportState | undefined): Removed =>
  state?.removedSecrets === undefined ? {} : { removedSecrets: [...state.removedSecrets] };

export class MoveTarget {
  readonly #ports: TargetPorts;
  /** One step at a time: a page that is sent again waits for the one that is being applied. */
  #turn: Promise<unknown> = Promise.resolve();
  /** This incarnation ends. */
  #restartsAt: number | undefined;

  constructor(ports: TargetPorts) {
    this.#ports = ports;
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  // ------------------------------------------------------------ begin

  begin(home: MoveHome, by: string): Promise<Result<{ pages: number; isDone: boolean } & Removed>> {
    return this.#alone(async () => {
      const { store, state, now, stopped, stopRpc } = this.#ports;
      const present = store.state();
      if (present?.home.moveId === home.moveId) {
        await this.#settle();
        return succeed({ pages: present.pages, isDone: store.state()?.phase === "done", ...removedOf(present) });
      }
      if (present !== undefined && present.phase !== "done") return fail("move.in_progress");
      const refused = this.#levelProblem(home);
      if (refused !== undefined) return refused;
      await state.rows.migrate(now());
      const fresh = await freshness(this.#ports);
      // Something may have been accepted while the bucket and the database were asked.
      const found = "found" in fresh ? fresh.found : usedTable(this.#ports);
      if ("found" in fresh || found !== undefined)
        return failure("move.not_fresh", `This gateway has been used: it has ${found}. Nothing was imported.`);
      const wasStopped = stopped() !== undefined;
      store.clear();
      store.save({
        ...{ home, by, beganAt: now(), phase: "writing", pages: 0, sha256: "", wasStopped, defaults: fresh.defaults, replaced: [] },
      });
      if (!wasStopped) await stopRpc.stopFor(by, ORIGIN);
      return succeed({ pages: 0, isDone: false });
    });
  }

  #levelProblem({ levels, version }: MoveHome): Failure | undefined {
    const { store, state } = this.#ports;
    const known: Readonly<Record<string, number>> = { ...store.levels(), ...state.sessionLevels, ...state.rows.levels };
    const names = Object.keys({ ...levels, ...known });
    const newer = names.find((name) => (levels[name] ?? 0) > (known[name] ?? 0));
    if (newer !== undefined)
      return failure(
        "move.newer_state",
        `The export was made by a newer version of GSV (${version}): its ${newer} tables have version ${levels[newer]}, and this gateway knows up to ${known[newer] ?? 0}. Nothing was imported.`,
      );
    // Tables of the row database are shared, so none is made as it was.
    const older = Object.entries(state.rows.levels).find(([name, level]) => (levels[name] ?? 0) < level)?.[0];
    if (older === undefined) return undefined;
    return failure(
      "move.older_state",
      `The export was made by an older version of GSV (${version}): its ${older} have version ${levels[older] ?? 0}, and this gateway has ${known[older]}. Nothing was imported.`,
    );
  }
  /** The gateway's own tables are of an older version. Those of sessions are converted at their first use. */
  #isOlder({ levels }: MoveHome): boolean {
    return Object.entries(this.#ports.store.levels()).some(([name, level]) => (levels[name] ?? 0) < level);
  }

  // ------------------------------------------------------------ pages

  write(moveId: string, page: number, part: number, parts: number, text: string): Promise<Result<{ pages: number }>> {
    return this.#alone(async () => {
      const { store, ids } = this.#ports;
      const present = store.state();
      if (present?.home.moveId !== moveId) return fail("move.none");
      if (page <= present.pages || present.phase !== "writing") return succeed({ pages: present.pages });
      if (page !== present.pages + 1) return damaged(`Page ${page} came before page ${present.pages + 1}.`);
      if (part >= parts) return damaged("A part of a page has a number that the page does not have.");
      store.putPart(page, part, text);
      if (part < parts - 1) return succeed({ pages: present.pages });
      const whole = store.page(page, parts);
      const records = whole === undefined ? undefined : decodeRecords(whole);
      if (whole === undefined || records === undefined) return damaged(`Page ${page} cannot be read.`);
      const applied = await this.#apply(present, records);
      if (!applied.ok) return applied;
      const sha256 = await ids.sha256(present.sha256 + (await ids.sha256(whole)));
      const stays = records.some((record) => record.kind === "settings" || (record.kind === "of" && record.owner === "gateway"));
      store.applied({ ...applied.value, pages: page, sha256 }, stays);
      return succeed({ pages: page });
    });
  }

  async #apply(before: ImportState, records: readonly MoveRecord[]): Promise<Result<ImportState>> {
    const { store, bucket, jobsIndex } = this.#ports;
    let after = before;
    try {
      for (const [owner, group] of byOwner(records)) {
        const written = await this.#writeObject(owner, group);
        if (!written) return damaged("A record is of an object that no home has.");
      }
      for (const record of records) {
        if (record.kind === "piece") {
          if (!(await writePiece(bucket, before.home.moveId, record))) return damaged(`A piece of \`${record.key}\` is not valid.`);
          if (before.defaults.includes(record.key) && !after.replaced.includes(record.key))
            after = { ...after, replaced: [...after.replaced, record.key] };
        } else if (record.kind === "index") {
          store.note("index", record.key);
          await jobsIndex().put(record.key, "", { metadata: record.metadata });
        } else if (record.kind === "end") after = { ...after, counts: record.counts };
      }
      return succeed(after);
    } catch (error) {
      const newer = newerStateText(error);
      if (newer !== undefined) return failure("move.newer_state", newer);
      this.#ports.log.error("move_page_failed", { page: before.pages + 1, error });
      return failure("storage.failed", `Page ${before.pages + 1} of the import could not be stored.`, "Run the same import again.");
    }
  }
  async #writeObject(owner: string, records: readonly ObjectRecord[]): Promise<boolean> {
    const { store, state, rowDatabase, movable } = this.#ports;
    // Written at the end.
    if (owner === "gateway") return true;
    if (owner === "rows") {
      if (rowDatabase === undefined) throw new Error("this deployment has no database for rows");
      await writeRowPage(rowDatabase, state.rows, records);
      return true;
    }
    const target = objectOf(owner);
    if (target === undefined) return false;
    store.note(target.kind, target.key);
    await movable(target.kind, target.key).moveIn(records);
    return true;
  }

  // ------------------------------------------------------------ the end

  finish(moveId: string, pages: number, sha256: string): Promise<Result<MoveTotals>> {
    return this.#alone(async () => {
      const { store } = this.#ports;
      const present = store.state();
      if (present?.home.moveId !== moveId) return fail("move.none");
      if (present.phase === "writing") {
        const refused = await this.#verified(present, pages, sha256);
        if (refused !== undefined) return refused;
        const isOlder = this.#isOlder(present.home);
        const problem = this.#goLive(present, isOlder ? await this.#converted(present) : undefined);
        if (problem !== undefined) return problem;
      } else await this.#settle();
      const counts = present.counts;
      if (counts === undefined) return damaged("The export has no end.");
      const { objects, bytes, sessions, jobs, gatewayRows, sessionRows, rows } = counts;
      return succeed({ objects, bytes, sessions, jobs, rows: gatewayRows + sessionRows + rows, ...removedOf(store.state()) });
    });
  }

  /** Compares the pages, and counts what was written. */
  async #verified(present: ImportState, pages: number, sha256: string): Promise<Failure | undefined> {
    const { bucket, rowDatabase, state } = this.#ports;
    const { counts } = present;
    if (present.pages !== pages || present.sha256 !== sha256) return damaged("The pages that arrived are not those of the export.");
    if (counts === undefined) return damaged("The export has no end.");
    const left = present.defaults.filter((key) => !present.replaced.includes(key));
    for (let at = 0; at < left.length; at += KEYS) await bucket.delete(left.slice(at, at + KEYS));
    const found: Partial<MoveCounts> = {
      ...(await countObjects(bucket)),
      ...(await this.#objectCounts()),
      rows: rowDatabase === undefined ? 0 : await countRows(rowDatabase, state.rows),
      indexed: this.#ports.store.notedCount("index"),
    };
    const names: readonly (keyof MoveCounts)[] = ["objects", "bytes", "sessions", "sessionRows", "jobs", "jobValues", "rows", "indexed"];
    const differs = names.find((name) => found[name] !== counts[name]);
    return differs === undefined
      ? undefined
      : damaged(`The import has ${found[differs]} ${WORDS[differs]}, and the export has ${counts[differs]}. Nothing is live.`);
  }
  async #objectCounts(): Promise<Pick<MoveCounts, "sessions" | "sessionRows" | "jobs" | "jobValues">> {
    const sum = { session: 0, job: 0 };
    await this.#each(["session", "job"], async (kind, key) => {
      const { rows, values } = await this.#ports.movable(kind, key).moveCounts();
      sum[kind] += rows + values;
    });
    const { store } = this.#ports;
    return {
      ...{ sessions: store.notedCount("session"), sessionRows: sum.session, jobs: store.notedCount("job"), jobValues: sum.job },
    };
  }
  async #each<K extends KeyKind>(kinds: readonly K[], work: (kind: K, key: string) => Promise<void>): Promise<void> {
    for (const kind of kinds)
      for (let after = ""; ; ) {
        const keys = this.#ports.store.noted(kind, after, KEYS);
        for (const key of keys) await work(kind, key);
        const last = keys.at(-1);
        if (last === undefined) break;
        after = last;
      }
  }

  /** The rows of the gateway as this version has them. Their own migrations have converted them, in an object that is emptied again. */
  async #converted({ home }: ImportState): Promise<readonly ObjectRecord[]> {
    const { store, state, movable } = this.#ports;
    const converter = movable("session", `${CONVERTER}${home.moveId}`);
    const records: ObjectRecord[] = [];
    await converter.moveIn([{ kind: "object", levels: home.levels }]);
    for (const page of store.keptPages())
      await converter.moveIn(ownRecords(decodeRecords(store.keptPage(page)) ?? []).filter(({ kind }) => kind !== "object"));
    let cursor: ObjectCursor | undefined;
    do {
      const page = await converter.moveOut(cursor, CONVERTED_CHARS);
      records.push(...page.records.filter((record) => "table" in record && state.tables.includes(record.table)));
      cursor = page.next;
    } while (cursor !== undefined);
    await converter.moveAway();
    return records;
  }

  /** The gateway's own tables and settings, in one transaction with the mark that they are written. `converted`: instead of the rows of the pages. */
  #goLive(present: ImportState, converted: readonly ObjectRecord[] | undefined): Failure | undefined {
    const { store, state, config, log, arm, restart } = this.#ports;
    try {
      store.atomic(() => {
        store.empty(state);
        let arrived = 0;
        let removedSecrets: readonly string[] = [];
        for (const page of store.keptPages()) {
          const records = decodeRecords(store.keptPage(page)) ?? [];
          for (const record of records)
            if (record.kind === "settings") removedSecrets = [...removedSecrets, ...taken(config.moveIn(record.settings))];
          const own = ownRecords(records);
          arrived += rowsIn(own);
          if (converted === undefined) store.write(own, state);
        }
        if (converted !== undefined) store.write(converted, state);
        const wanted = present.counts?.gatewayRows;
        const [found, written] = [store.rows(state), converted === undefined ? arrived : rowsIn(converted)];
        if (arrived !== wanted || found !== written) throw new Error(`${arrived} rows of the gateway and ${found}, not ${wanted}`);
        store.save({ ...present, phase: "live", ...(removedSecrets.length === 0 ? {} : { removedSecrets }) });
      });
      return undefined;
    } catch (error) {
      log.error("move_not_live", { error });
      if (error instanceof SettingsRefused) return fail("move.damaged", error.message, SETTINGS_NEXT);
      return damaged("The gateway's own tables could not be written as they were exported. Nothing is live.");
    } finally {
      // Features know in memory what was stored before.
      this.#restartsAt = this.#ports.now() + WAKE_MS;
      arm();
      restart();
    }
  }

  /** The tables are new, and the features of this incarnation know the old ones. */
  get isEnding(): boolean {
    return this.#restartsAt !== undefined;
  }

  /** When what waits is woken, in an incarnation that has read what was imported. */
  wakesAt(): number | undefined {
    return this.#ports.store.state()?.phase === "live" ? (this.#restartsAt ?? 1) : undefined;
  }
  wake(): Promise<void> {
    return this.#alone(() => this.#settle());
  }
  async #settle(): Promise<void> {
    const present = this.#ports.store.state();
    if (present?.phase === "live" && this.#restartsAt === undefined) await this.#wake(present);
  }

  /** Lets waiting work go on. The source is stopped, so nothing runs twice. */
  async #wake(present: ImportState): Promise<void> {
    const { stopRpc, job, ask, sendQueuedAgain, log, store, now } = this.#ports;
    const tried = async (what: string, work: Promise<unknown>): Promise<void> => {
      await work.catch((error: unknown) => log.error("not_woken_after_move", { what, error }));
    };
    await tried("events", sendQueuedAgain());
    // This gateway may have been exported itself before, when it was empty.
    stopRpc.resumeFor(present.by, ORIGIN, { exported: true });
    await this.#each(["session", "job"], async (kind, key) => {
      await tried(key, kind === "job" ? job(key).wake() : ask(key, (session) => session.resume()));
    });
    store.clear();
    store.save({ ...present, phase: "done", beganAt: now() });
  }

  // ------------------------------------------------------------ given up

  cancel(by: string): Promise<Result<{ wasBegun: boolean }>> {
    return this.#alone(async () => {
      const { store, state, bucket, rowDatabase, jobsIndex, movable, stopRpc } = this.#ports;
      const present = store.state();
      if (present === undefined || present.phase === "done") return succeed({ wasBegun: false });
      if (present.phase === "live") return damaged("The import is complete and live, so it can't be given up.", "Run it again to end it.");
      await this.#each(["session", "job"], (kind, key) => movable(kind, key).moveAway());
      await this.#each(["index"], (_kind, key) => jobsIndex().delete(key));
      if (rowDatabase !== undefined) await emptyRows(rowDatabase, state.rows);
      await emptyBucket(bucket, present.home.moveId);
      await restoreDefaults(bucket, state, present.defaults);
      store.clear();
      if (!present.wasStopped) stopRpc.resumeFor(by, ORIGIN);
      return succeed({ wasBegun: true });
    });
  }
}

const WORDS: Readonly<Record<keyof MoveCounts, string>> = {
  objects: "files",
  bytes: "bytes of files",
  sessions: "conversations",
  jobs: "jobs",
  gatewayRows: "rows of the gateway",
  sessionRows: "rows of conversations",
  jobValues: "entries of jobs",
  rows: "memories and events",
  indexed: "jobs in the index",
};

function objectOf(owner: string): { readonly kind: ObjectKind; readonly key: string } | undefined {
  const at = owner.indexOf(":");
  const [kind, key] = [owner.slice(0, at), owner.slice(at + 1)];
  const isKey = key !== "" && key.length <= MAX_KEY_CHARS;
  return isKey && (kind === "session" || kind === "job") ? { kind, key } : undefined;
}
/** The records of the gateway's own object. */
const ownRecords = (records: readonly MoveRecord[]): readonly ObjectRecord[] =>
  records.flatMap((record) => (record.kind === "of" && record.owner === "gateway" ? [record.record] : []));
const rowsIn = (records: readonly ObjectRecord[]): number =>
  records.reduce((sum, record) => sum + (record.kind === "rows" ? record.rows.length : 0), 0);

/** Records that follow each other and are of one object. */
function byOwner(records: readonly MoveRecord[]): readonly (readonly [string, readonly ObjectRecord[]])[] {
  const groups: [string, ObjectRecord[]][] = [];
  for (const record of records) {
    if (record.kind !== "of") continue;
    const last = groups.at(-1);
    if (last?.[0] === record.owner) last[1].push(record.record);
    else groups.push([record.owner, [record.record]]);
  }
  return groups;
}
