/** The whole state of a session's or a job's object, out of it and into it (gateway/spec/move.md). The objects' shells pass their calls here. */
import { countObject, readObject, writeRecords } from "../platform/object-rows.ts";
import { type Migration, migrate } from "../platform/sql.ts";
import { NewerStateError } from "../ports/newer-state.ts";
import type { MovablePort, ObjectCounts, ObjectCursor, ObjectPage, ObjectRecord } from "../ports/moving.ts";

export interface MovableHost {
  readonly storage: DurableObjectStorage;
  /** Throws for tables of a newer program. */
  readonly check: (levels: Readonly<Record<string, number>>) => void;
  /** Makes the tables of an empty object as old as the rows are: the missing migrations convert them later. */
  readonly make: (levels: Readonly<Record<string, number>>) => void;
  /** Brings the tables to the newest version. */
  readonly migrate: () => void;
  /** Removes all. The parts that use the storage begin again. */
  readonly erase: () => Promise<void>;
  /** The parts that use the storage begin again. */
  readonly restart: () => void;
}
const ALL = { values: true } as const;

export class Movable implements MovablePort {
  readonly #host: MovableHost;

  constructor(host: MovableHost) {
    this.#host = host;
  }

  async moveOut(cursor: ObjectCursor | undefined, budget: number): Promise<ObjectPage> {
    if (cursor === undefined) this.#host.migrate();
    return readObject(this.#host.storage, ALL, cursor, budget);
  }
  async moveIn(records: readonly ObjectRecord[]): Promise<void> {
    const { storage, check, make, erase, restart } = this.#host;
    const first = records[0];
    if (first?.kind === "object") {
      check(first.levels);
      await erase();
    }
    storage.transactionSync(() => {
      if (first?.kind === "object") make(first.levels);
      writeRecords(storage, records);
    });
    restart();
  }
  async moveCounts(): Promise<ObjectCounts> {
    return countObject(this.#host.storage, ALL);
  }
  moveAway(): Promise<void> {
    return this.#host.erase();
  }
}

/** An object with tables of one owner, or with none. */
export function ownTables(
  storage: DurableObjectStorage,
  tables: { readonly owner: string; readonly migrations: readonly Migration[] } | undefined,
): Pick<MovableHost, "check" | "make"> {
  return {
    check(levels) {
      for (const [owner, level] of Object.entries(levels)) {
        const known = owner === tables?.owner ? tables.migrations.length : 0;
        if (level > known) throw new NewerStateError(`the ${owner} tables`, level, known);
      }
    },
    make(levels) {
      const level = tables === undefined ? undefined : levels[tables.owner];
      if (tables !== undefined && level !== undefined) migrate(storage, tables.owner, tables.migrations.slice(0, level));
    },
  };
}
