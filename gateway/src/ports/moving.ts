/** The state of one object as records, for a move to another gateway (gateway/spec/move.md). Crosses RPC: plain data only. */

/** A value of a row. Bytes are text, because records are JSON. */
export type MovedValue = string | number | null | { readonly base64: string };

export type ObjectRecord =
  /** The first record of an object: whatever it had is removed. `levels`: the version of each set of its tables. */
  | { readonly kind: "object"; readonly levels: Readonly<Record<string, number>> }
  | {
      readonly kind: "rows";
      readonly table: string;
      readonly columns: readonly string[];
      readonly rows: readonly (readonly MovedValue[])[];
    }
  /** The last number that a table gave to a row. */
  | { readonly kind: "sequence"; readonly table: string; readonly last: number }
  | { readonly kind: "value"; readonly key: string; readonly json: string };

/** Where the next page of an object begins. */
export interface ObjectCursor {
  /** The number of the table; the number after the last table means the key-value store. */
  readonly table: number;
  /** The key of the last row, or of the last entry. Absent: none yet. */
  readonly after?: readonly MovedValue[];
}
export interface ObjectPage {
  readonly records: readonly ObjectRecord[];
  /** Characters of the records as JSON, about. */
  readonly size: number;
  readonly next?: ObjectCursor;
}
/** How many rows and entries an object has. */
export interface ObjectCounts {
  readonly rows: number;
  readonly values: number;
}

/** An object whose whole state moves. */
export interface MovablePort {
  /** Records of about `budget` characters, or one that is larger. */
  moveOut(cursor: ObjectCursor | undefined, budget: number): Promise<ObjectPage>;
  /** Can be repeated. Throws for tables of a newer program. */
  moveIn(records: readonly ObjectRecord[]): Promise<void>;
  moveCounts(): Promise<ObjectCounts>;
  /** Removes all. */
  moveAway(): Promise<void>;
}

/** How the name of an object begins that has no session, but the gateway's tables of a move that are converted. No session key does. */
export const CONVERTER = "move:";

/** An object beside the gateway's. */
export type ObjectKind = "session" | "job";

/** Which state there is, as data. Only `app/` knows all of it. */
export interface MovedState {
  /** Tables of the gateway's object that move. */
  readonly tables: readonly string[];
  /** Columns of theirs with secrets. */
  readonly blank: Readonly<Record<string, readonly string[]>>;
  /** Those of which a fresh gateway has no row. */
  readonly fresh: readonly string[];
  /** Work that must have ended before an export: tables that must be empty. */
  readonly unsettled: readonly string[];
  /** Where the keys of the other objects are. */
  readonly objects: Readonly<Record<ObjectKind, { readonly table: string; readonly column: string }>>;
  /** Hooks, machines and accounts of channels, for what an import tells. */
  readonly named: Readonly<Record<"hooks" | "machines" | "channels", { readonly table: string; readonly columns: readonly string[] }>>;
  readonly rows: {
    readonly tables: readonly string[];
    /** Columns that get their defaults. */
    readonly without: Readonly<Record<string, readonly string[]>>;
    /** The versions of the tables that this program knows. */
    readonly levels: Readonly<Record<string, number>>;
    /** Makes the tables, and brings them to the newest version. */
    readonly migrate: (now: number) => Promise<void>;
  };
  /** The versions of a session's tables and of its state that this program knows. */
  readonly sessionLevels: Readonly<Record<string, number>>;
  /** The files of a new agent, by their names. */
  readonly defaultFiles: ReadonlyMap<string, string>;
  /** The mark of a workspace whose default files were made. */
  readonly marker: string;
}
