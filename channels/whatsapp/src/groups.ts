/** Names and member lists of groups. Names are durable; member lists are cached in memory, because Baileys needs them for each send. */
import type { WASocket } from "@whiskeysockets/baileys";
import type { PlatformHost } from "../../kit/src/platform.ts";

export type GroupMetadata = Awaited<ReturnType<WASocket["groupMetadata"]>>;
const FRESH_MS = 300_000;
const MAX_CACHED = 200;
const NAME_CHARS = 256;

export class Groups {
  readonly #host: Pick<PlatformHost, "kv" | "now">;
  readonly #cache = new Map<string, { readonly metadata: GroupMetadata; readonly at: number }>();
  readonly #asked = new Set<string>();

  constructor(host: Pick<PlatformHost, "kv" | "now">) {
    this.#host = host;
  }

  /** The group's name, if it is known. `fetch` is called at most once per group and instance when it is not. */
  name(jid: string, fetch: () => void): string | undefined {
    const known = this.#host.kv.get<string>(`group.${jid}`);
    if (known === undefined && !this.#asked.has(jid)) {
      this.#asked.add(jid);
      fetch();
    }
    return known;
  }
  /** The member list, when it is fresh. */
  metadata(jid: string): GroupMetadata | undefined {
    const cached = this.#cache.get(jid);
    return cached && this.#host.now() - cached.at < FRESH_MS ? cached.metadata : undefined;
  }
  keep(metadata: GroupMetadata): void {
    if (this.#cache.size > MAX_CACHED) this.#cache.clear();
    this.#cache.set(metadata.id, { metadata, at: this.#host.now() });
    this.#rename(metadata.id, metadata.subject);
  }
  changed(jid: string, subject: string | undefined): void {
    this.#cache.delete(jid);
    if (subject !== undefined) this.#rename(jid, subject);
  }
  #rename(jid: string, subject: string): void {
    const { kv } = this.#host;
    const name = subject.slice(0, NAME_CHARS);
    if (kv.get(`group.${jid}`) !== name) kv.put(`group.${jid}`, name);
  }
  clear(): void {
    for (const name of this.#host.kv.keys("group.")) this.#host.kv.delete(name);
  }
}
