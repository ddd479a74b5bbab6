/** Makes the gateway's tables in a temporary Durable Object, where an import converts the rows of an older version (rule MV7). */
import { KERNEL_TABLES } from "../kernel/tables.ts";
import { migrateFeatures, migrateFeaturesTo } from "../kernel/migrations.ts";
import type { Database } from "../platform/sql.ts";
import { FEATURES } from "./features.ts";

export const convertTables = (database: Database): void => migrateFeatures(database, KERNEL_TABLES, FEATURES.definitions);
export const makeTables = (database: Database, levels: Readonly<Record<string, number>>): void =>
  migrateFeaturesTo(database, KERNEL_TABLES, FEATURES.definitions, levels);
