/**
 * Small named values of an account, as JSON, in the same database as its queues. The account's settings and its platform's values, which
 * have tokens and logins, are stored sealed, each bound to its account and name.
 */
import { isSealed, open, type ReadKeys, type SealingKeys, seal, sealedBy } from "../../../protocol/runtime/sealing.ts";
import type { Database } from "./database.ts";

/** How values are sealed. Without keys, values of an account that was set up before are read and written plain. */
export interface KvSealing {
  readonly accountId: string;
  readonly keys: ReadKeys;
  /** New random bytes. */
  readonly nonce: () => Uint8Array;
}
/** The settings of the account (`account.config`) and all values of its platform (`p.`). */
const isSecret = (name: string): boolean => name === "account.config" || name.startsWith("p.");
/** The id of the key under which every secret value is sealed. Absent: some may be plain, or under another key. */
const SEALED_UNDER = "sealed-under";

export class KeyValues {
  readonly #db: Database;
  readonly #sealing: KvSealing | undefined;

  constructor(db: Database, sealing?: KvSealing) {
    this.#db = db;
    this.#sealing = sealing;
  }

  get #keys(): SealingKeys | undefined {
    return this.#sealing?.keys.ok === true ? this.#sealing.keys.keys : undefined;
  }
  #place(name: string): string {
    return `channel account ${JSON.stringify([this.#sealing?.accountId, name])}`;
  }

  /** Undefined also for a value that cannot be opened. */
  get<T>(name: string): T | undefined {
    const text = this.#text(name);
    if (text === undefined) return undefined;
    if (!isSealed(text)) return JSON.parse(text) as T;
    const opened = open(this.#keys, this.#place(name), text);
    return opened.ok ? (JSON.parse(opened.text) as T) : undefined;
  }
  put(name: string, value: unknown): void {
    const text = JSON.stringify(value);
    const keys = isSecret(name) ? this.#keys : undefined;
    this.#write(
      name,
      keys === undefined || this.#sealing === undefined ? text : seal(keys, this.#place(name), text, this.#sealing.nonce()),
    );
  }
  /** As `put`, for secrets: the earlier value is overwritten where it stands, so that none of it stays in the free space of a page. */
  replace(name: string, value: unknown): void {
    this.#overwrite(name);
    this.put(name, value);
  }
  /** Overwrites the value first, because it may be a key. */
  delete(name: string): void {
    this.#overwrite(name);
    this.#db.query("DELETE FROM kv WHERE name = ?", name);
  }
  /** All names with this prefix, sorted. */
  names(prefix: string): readonly string[] {
    return this.#db
      .query<{ name: string }>("SELECT name FROM kv WHERE name >= ? AND name < ? ORDER BY name", prefix, `${prefix}\u{10ffff}`)
      .map(({ name }) => name);
  }

  /**
   * Seals what is stored plain or under an earlier key, in one transaction. Call it when an instance begins. False: some values cannot be
   * opened; they stay as they are.
   */
  sealStored(): boolean {
    const keys = this.#keys;
    if (this.get<string>(SEALED_UNDER) === keys?.current.id && keys !== undefined) return true;
    return this.#db.transaction(() => {
      if (keys === undefined) {
        // Values that are written from now on are plain.
        this.delete(SEALED_UNDER);
        return this.#unreadable().length === 0;
      }
      const lost = this.#unreadable();
      for (const name of this.#secretNames()) {
        const text = this.#text(name) ?? "";
        if (sealedBy(text) !== keys.current.id && !lost.includes(name)) this.replace(name, this.get(name));
      }
      // A value that cannot be opened is tried again at each start, because its key may come back.
      if (lost.length === 0) this.put(SEALED_UNDER, keys.current.id);
      return lost.length === 0;
    });
  }
  /** Removes the values that cannot be opened, because others take their place. */
  dropUnreadable(): void {
    this.#db.transaction(() => {
      for (const name of this.#unreadable()) this.delete(name);
    });
  }

  #unreadable(): readonly string[] {
    return this.#secretNames().filter((name) => {
      const text = this.#text(name) ?? "";
      return isSealed(text) && !open(this.#keys, this.#place(name), text).ok;
    });
  }
  #secretNames(): readonly string[] {
    return [...this.names("account.config"), ...this.names("p.")].filter(isSecret);
  }
  #text(name: string): string | undefined {
    return this.#db.query<{ value: string }>("SELECT value FROM kv WHERE name = ?", name)[0]?.value;
  }
  #write(name: string, text: string): void {
    this.#db.query("INSERT INTO kv(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value", name, text);
  }
  #overwrite(name: string): void {
    this.#db.query("UPDATE kv SET value = printf('%.*c', length(CAST(value AS BLOB)), '0') WHERE name = ?", name);
  }
}
