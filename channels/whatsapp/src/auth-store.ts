/**
 * The account's keys, in the account's own store: synchronous, and whole batches or nothing. It knows when a device is linked. It
 * never logs, and after `end` it writes nothing more: late work of a connection whose link is gone can't bring its keys back.
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

/** Baileys' `registered` stays false after a login by QR code: what counts is whose device it is, and that WhatsApp signed it. */
export const isPaired = (creds: Pick<AuthenticationCreds, "me" | "account"> | undefined): boolean =>
  creds?.me?.id !== undefined && creds.me.id !== "" && creds.account !== undefined && creds.account !== null;

/** Bytes in any of the forms in which they were ever written: Baileys itself reads only base64. */
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
    // A login that began and never ended would be refused by the server: it begins anew.
    this.creds = kept && (isPaired(kept) || kept.me === undefined) ? kept : initAuthCreds();
  }

  get paired(): boolean {
    return isPaired(this.creds);
  }
  saveCreds(): void {
    if (!this.#ended) this.#kv.put(CREDS, encode(this.creds));
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
  /** Nothing of this link is written from here on. */
  end(): void {
    this.#ended = true;
  }

  #read<T>(name: string): T | undefined {
    const text = this.#kv.get<string>(name);
    return text === undefined ? undefined : (JSON.parse(text, revive) as T);
  }
}

/** Everything that belongs to the link goes, in one step. */
export function clearAuth({ kv, transaction }: Pick<PlatformHost, "kv" | "transaction">): void {
  transaction(() => {
    kv.delete(CREDS);
    for (const name of kv.keys(KEYS)) kv.delete(name);
  });
}
/** Whether a device is linked, without making new keys. */
export function pairedAs(kv: PlatformHost["kv"]): { readonly id: string; readonly lid?: string; readonly name?: string } | undefined {
  const text = kv.get<string>(CREDS);
  const creds = text === undefined ? undefined : (JSON.parse(text, revive) as AuthenticationCreds);
  const me = creds?.me;
  if (!isPaired(creds) || me?.id === undefined) return undefined;
  return { id: me.id, ...(me.lid ? { lid: me.lid } : {}), ...(me.name ? { name: me.name } : {}) };
}
