/**
 * A number that rises with every change of a store, kept with its rows: who holds a copy sees from the number whether it is out of date.
 */
import type { Database } from "../platform/sql.ts";

export class Version {
  readonly #db: Database;
  readonly #name: string;
  #value: number | undefined;

  constructor(db: Database, name: string) {
    this.#db = db;
    this.#name = name;
  }

  get(): number {
    this.#value ??= this.#db.kv.get<number>(this.#name) ?? 0;
    return this.#value;
  }
  /** Part of the transaction that makes the change. */
  raise(): void {
    const next = this.get() + 1;
    this.#db.kv.put(this.#name, next);
    this.#value = next;
  }
}
