/** Whether a gateway is fresh, so that a home may be imported into it (rule MV6). */
import type { Config } from "../../kernel/config/store.ts";
import type { IndexSpace } from "../../ports/jobs.ts";
import type { MovedState } from "../../ports/moving.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import type { MoveStore } from "./move-store.ts";
import { objectsAfter } from "./pieces.ts";
import { countRows } from "./row-pages.ts";

export interface FreshPorts {
  readonly store: Pick<MoveStore, "count">;
  readonly state: MovedState;
  readonly config: Pick<Config, "effective">;
  readonly bucket: Bucket;
  readonly rowDatabase: RowDatabase | undefined;
  readonly jobsIndex: () => IndexSpace;
}
/** Agents, each with a handful of default files. */
const MOST_DEFAULTS = 64;

/** What the gateway's own tables have that a fresh gateway does not have, as a part of a sentence. */
export function usedTable({ store, state }: Pick<FreshPorts, "store" | "state">): string | undefined {
  for (const table of state.fresh) {
    const count = store.count(table);
    if (count > 0) return `${count === 1 ? "an entry" : `${count} entries`} in ${table.replaceAll("_", " ")}`;
  }
  return undefined;
}

/** The keys of the default files that are there; or what was found that a fresh gateway does not have, as a part of a sentence. */
export async function freshness(ports: FreshPorts): Promise<{ readonly defaults: readonly string[] } | { readonly found: string }> {
  const { state, config, bucket, rowDatabase, jobsIndex } = ports;
  const used = usedTable(ports);
  if (used !== undefined) return { found: used };
  if ((config.effective().agents?.list ?? []).length > 0) return { found: "agents in its settings" };
  if (rowDatabase !== undefined && (await countRows(rowDatabase, state.rows)) > 0) return { found: "memories or events" };
  if ((await jobsIndex().list({ prefix: "", limit: 1 })).keys.length > 0) return { found: "jobs in its index" };
  const defaults: string[] = [];
  let after = "";
  for (;;) {
    const { found, next } = await objectsAfter(bucket, after);
    for (const { key } of found) {
      if (defaults.length === MOST_DEFAULTS || !(await isDefault(bucket, state, key))) return { found: `the file ${key}` };
      defaults.push(key);
    }
    if (next === undefined) return { defaults };
    after = next;
  }
}

async function isDefault(bucket: Bucket, { defaultFiles, marker }: MovedState, key: string): Promise<boolean> {
  const name = /^agents\/[a-z0-9_-]{1,64}\/([^/]+)$/.exec(key)?.[1];
  if (name === marker) return true;
  const text = name === undefined ? undefined : defaultFiles.get(name);
  if (text === undefined) return false;
  const object = await bucket.get(key);
  return object !== null && hasBody(object) && (await object.text()) === text;
}

/** Restores the files of a fresh gateway when an import is given up. The mark is made with the first use. */
export async function restoreDefaults(bucket: Bucket, { defaultFiles, marker }: MovedState, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const name = key.slice(key.lastIndexOf("/") + 1);
    const text = defaultFiles.get(name);
    if (text !== undefined && name !== marker)
      await bucket.put(key, text, { httpMetadata: { contentType: "text/markdown; charset=utf-8" } });
  }
}
