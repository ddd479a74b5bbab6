/** Which sources a request searches. Asking about one by one takes longer than anything else in a search, so they are asked about together. */
import type { Database } from "../../platform/sql.ts";
import type { SearchRequest } from "../../ports/search.ts";

/** With more, all are read at once. */
const MOST_ASKED = 1_000;
export type Sources = Pick<SearchRequest, "sources" | "sessionKey" | "memoryOf">;

export class SearchedSources {
  readonly #storage: Database;
  readonly #conditions: ReturnType<typeof sourceConditions>;
  readonly #asked = new Set<number>();
  readonly #searched = new Set<number>();
  #isWhole = false;

  constructor(storage: Database, request: Sources) {
    this.#storage = storage;
    this.#conditions = sourceConditions(request);
  }
  /** Whether each of these is searched. */
  among(sources: Iterable<number>): ReadonlySet<number> {
    if (this.#isWhole) return this.#searched;
    const unknown = new Set([...sources].filter((source) => !this.#asked.has(source)));
    if (this.#asked.size + unknown.size > MOST_ASKED) return this.all();
    if (unknown.size === 0) return this.#searched;
    this.#find("json_each(?) w CROSS JOIN sources s ON s.id = w.value", JSON.stringify([...unknown]));
    for (const source of unknown) this.#asked.add(source);
    return this.#searched;
  }
  all(): ReadonlySet<number> {
    if (!this.#isWhole) this.#find("sources s");
    this.#isWhole = true;
    return this.#searched;
  }
  #find(from: string, ...asked: readonly string[]): void {
    const { where, params } = this.#conditions;
    const { ids } = this.#storage.sql
      .exec<{ ids: string }>(`SELECT json_group_array(s.id) AS ids FROM ${from} WHERE ${where}`, ...asked, ...params)
      .one();
    for (const id of JSON.parse(ids) as readonly number[]) this.#searched.add(id);
  }
}
/** As a condition on `s`. */
export function sourceConditions({ sources, sessionKey, memoryOf }: Sources): {
  readonly where: string;
  readonly params: readonly SqlStorageValue[];
} {
  const where = ["s.state <> 'gone'"];
  const params: SqlStorageValue[] = [];
  if (memoryOf !== undefined) {
    where.push(
      "(s.kind = 'memory' OR (s.kind = 'workspace' AND (s.name = 'MEMORY.md' OR (s.name >= 'memory/' AND s.name < 'memory0'))) OR (s.kind = 'archives' AND (s.session_key IN (SELECT value FROM json_each(?)) OR (s.session_key >= ? AND s.session_key < ?))))",
    );
    params.push(JSON.stringify(memoryOf.keys), memoryOf.prefix, `${memoryOf.prefix}\u{10ffff}`);
  }
  where.push(`s.kind IN (${sources.map(() => "?").join(", ")})`);
  params.push(...sources);
  if (sessionKey !== undefined) {
    where.push("s.session_key = ?");
    params.push(sessionKey);
  }
  return { where: where.join(" AND "), params };
}
