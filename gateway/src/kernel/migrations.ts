/**
 * Migrates the gateway's database. Early versions had one list for all features, and its version is the position of the last one that ran: each migration of
 * that list keeps its position and its name, in whichever folder it is now. Newer migrations are counted per feature.
 */
import { type Database, type Migration, migrate, migrateAll, type OwnTables } from "../platform/sql.ts";
import type { FeatureTables, HistoricalMigration } from "./feature.ts";

const SHARED_OWNER = "gateway";
export interface KernelTables {
  readonly history: readonly HistoricalMigration[];
  readonly migrations: readonly Migration[];
}

/** The shared list, in order. Throws when a position is missing or has two names: that is a bug. */
export function sharedMigrations(parts: readonly HistoricalMigration[]): readonly Migration[] {
  const list: Migration[] = [];
  for (let position = 1; list.length < new Set(parts.map((part) => part.position)).size; position++) {
    const here = parts.filter((part) => part.position === position);
    const [first] = here;
    if (first === undefined) throw new Error(`there is no migration at position ${position}`);
    if (here.some(({ name }) => name !== first.name)) throw new Error(`the migrations at position ${position} have different names`);
    list.push({
      name: first.name,
      up: (sql) => {
        for (const { up } of here) up(sql);
      },
    });
  }
  return list;
}

/** Brings the tables of all features to the newest version, or throws NewerStateError before anything is changed. */
export function migrateFeatures(database: Database, kernel: KernelTables, definitions: readonly FeatureTables[]): void {
  migrateAll(database, migrationsOf(kernel, definitions));
}

/** Makes the tables of an empty database as they were at these versions. An owner without one has none. */
export function migrateFeaturesTo(
  database: Database,
  kernel: KernelTables,
  definitions: readonly FeatureTables[],
  levels: Readonly<Record<string, number>>,
): void {
  for (const [owner, migrations] of migrationsOf(kernel, definitions)) {
    const level = levels[owner];
    if (level !== undefined) migrate(database, owner, migrations.slice(0, level));
  }
}

/** By owner, in the order in which they run. */
const migrationsOf = (kernel: KernelTables, definitions: readonly FeatureTables[]): readonly OwnTables[] => [
  [SHARED_OWNER, sharedMigrations([...kernel.history, ...definitions.flatMap(({ history }) => history ?? [])])],
  ["kernel", kernel.migrations],
  ...definitions.flatMap(({ name, migrations }) => (migrations === undefined ? [] : [[name, migrations] as const])),
];
