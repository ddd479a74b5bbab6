/**
 * The account's credentials and keys in the account's own database: synchronous, in atomic batches. Never logs. After `end` it writes
 * nothing more, so that late work of an old connection cannot restore deleted keys.
 */
import {
  type AuthenticationCreds,
  BufferJSON,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalKeyStore,
} from "@whiskeysockets/baileys";
import type { PlatformHost } from "../../kit/src/platform.ts";
import { own } from "./content.ts";

const CREDS = "creds";
const KEYS = "key.";

/** Baileys' `registered` stays false after a QR login, so this checks the owner's id and WhatsApp's signed account. */
export const isPaired = (creds: Pick<AuthenticationCreds, "me" | "account"> | undefined): boolean =>
  creds?.me?.id !== undefined && creds.me.id !== "" && creds.account !== undefined && creds.account !== null;

/** Revives bytes in all stored formats, including older ones; Baileys itself reads only base64. */
function revive(name: string, value: unknown): unknown {
  const data = own(value, "type") === "Buffer" ? own(value, "data") : undefined;
  return Array.isArray(data) ? Buffer.from(data) : BufferJSON.reviver(name, value);
}
const encode = (value: unknown): string => JSON.stringify(value, BufferJSON.replacer);

export class AuthStore {
  readonly #kv: PlatformHost["kv"];
  readonly #transaction: PlatformHost["transaction"];
  #ended = false;
  readonly creds: AuthenticationCreds;

  constructor({ kv, transaction }: Pick<PlatformHost, "kv" | "transaction">) {
    this.#kv = kv;
    this.#transaction = (work) => transaction(work);
    const kept = this.#read<AuthenticationCreds>(CREDS);
    // The server refuses credentials of an unfinished login, so they are replaced.
    this.creds = kept && (isPaired(kept) || kept.me === undefined) ? kept : initAuthCreds();
  }

  get paired(): boolean {
    return isPaired(this.creds);
  }
  saveCreds(): void {
    if (this.#ended) return;
    const text = encode(this.creds);
    this.#transaction(() => {
      // A delete overwrites the earlier value; a put leaves it in the free space of a page, where a logout does not find it.
      this.#kv.delete(CREDS);
      this.#kv.put(CREDS, text);
    });
  }
  readonly keys: SignalKeyStore = {
    get: async (type, ids) => {
      const found: Record<string, never> = {};
      for (const id of ids) {
        const value = this.#read<never>(`${KEYS}${type}.${id}`);
        if (value === undefined) continue;
        found[id] = type === "app-state-sync-key" ? (proto.Message.AppStateSyncKeyData.fromObject(value) as never) : value;
      }
      return found;
    },
    set: async (data: SignalDataSet) => {
      if (this.#ended) return;
      this.#transaction(() => {
        for (const [type, entries] of Object.entries(data)) {
          for (const [id, value] of Object.entries(entries ?? {})) {
            const name = `${KEYS}${type}.${id}`;
            if (value === null || value === undefined) this.#kv.delete(name);
            else this.#kv.put(name, encode(value));
          }
        }
      });
    },
  };
  /** From now on this store writes nothing. */
  end(): void {
    this.#ended = true;
  }

  #read<T>(name: string): T | undefined {
    const text = this.#kv.get<string>(name);
    return text === undefined ? undefined : (JSON.parse(text, revive) as T);
  }
}

/** Deletes all credentials and keys, atomically. The host's delete overwrites what it deletes. */
export function clearAuth({ kv, transaction }: Pick<PlatformHost, "kv" | "transaction">): void {
  transaction(() => {
    kv.delete(CREDS);
    for (const name of kv.keys(KEYS)) kv.delete(name);
  });
}
/** The linked device's ids; undefined when none is linked. Creates no keys. */
export function pairedAs(kv: PlatformHost["kv"]): { readonly id: string; readonly lid?: string; readonly name?: string } | undefined {
  const text = kv.get<string>(CREDS);
  const creds = text === undefined ? undefined : (JSON.parse(text, revive) as AuthenticationCreds);
  const me = creds?.me;
  if (!isPaired(creds) || me?.id === undefined) return undefined;
  return { id: me.id, ...(me.lid ? { lid: me.lid } : {}), ...(me.name ? { name: me.name } : {}) };
}
