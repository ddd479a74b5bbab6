/**
 * Shows an answer on the platform while it is generated, by one message that is edited. Best effort: never throws, never delays the
 * queue, and shows nothing once the answer itself is queued or while an earlier message of the conversation is not sent (gateway rule
 * CH23). The platform's id of the shown message is durable, so that the answer replaces that message also after a restart.
 */
import type { LiveText, Peer } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import type { Database } from "./database.ts";
import { errorText } from "./error-text.ts";
import { KIT } from "./limits.ts";
import { peerName } from "./peer-name.ts";
import { withinOrThrow } from "./waits.ts";
import { liveNonce } from "./nonce.ts";
import type { Permission } from "./permission.ts";
import type { Platform } from "./platform.ts";
import { splitText } from "./split-text.ts";

export interface LivePorts {
  readonly db: Database;
  readonly now: () => number;
  readonly after: After;
  readonly platform: () => Pick<Platform, "capabilities" | "recognisesNonceMs" | "mark" | "showLive">;
  /** The account is started and its platform is connected. */
  readonly isOpen: () => boolean;
  readonly permission: Pick<Permission, "ask" | "covers">;
  readonly log: (event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>) => void;
}

export class LiveTexts {
  readonly #ports: LivePorts;
  /** By delivery: the newest text and when one was last shown. In memory only; the final answer goes through the outbox. */
  readonly #texts = new Map<string, { readonly shownAt: number; readonly busy: boolean; readonly next?: LiveText }>();
  readonly #showing = new Map<string, Promise<void>>();

  constructor(ports: LivePorts) {
    this.#ports = ports;
  }

  /** Shows the newest text, at most every `KIT.liveEveryMs`. */
  show(text: LiveText): void {
    const entry = this.#texts.get(text.deliveryId) ?? { shownAt: 0, busy: false };
    this.#texts.set(text.deliveryId, { ...entry, next: text });
    for (const oldest of [...this.#texts.keys()].slice(0, -KIT.liveTexts)) this.#texts.delete(oldest);
    void this.#showNext(text.deliveryId);
  }
  /** Nothing of this conversation is queued any more: shows the text that waited for that. */
  freed(peer: string): void {
    for (const [id, { next }] of this.#texts) if (next && peerName(next.peer) === peer) void this.#showNext(id);
  }
  /** Resolves when no platform call for this delivery is under way. */
  async settled(delivery: string): Promise<void> {
    await this.#showing.get(delivery);
  }
  /** The answer has ended; in the same transaction as its delivery. */
  end(delivery: string): void {
    this.#ports.db.query("DELETE FROM live WHERE delivery = ?", delivery);
    this.#texts.delete(delivery);
  }

  /**
   * The platform's id of the message that shows this answer. When the object died before it learned the id, the platform is asked
   * with the same nonce, which finds the message instead of sending a second one. Throws when the platform does not answer that.
   */
  async messageId(
    delivery: string,
    { peer, text, replyToId }: { readonly peer: Peer; readonly text: string; readonly replyToId?: string },
  ): Promise<string | undefined> {
    const { db, now, after } = this.#ports;
    const platform = this.#ports.platform();
    const [row] = db.query<{ message: string; at: number }>("SELECT message, at FROM live WHERE delivery = ?", delivery);
    if (row?.message !== "") return row?.message;
    if (platform.showLive === undefined || now() - row.at > platform.recognisesNonceMs / 2) return undefined;
    const finding = platform.showLive(peer, text, undefined, replyToId, liveNonce(delivery));
    const found = await withinOrThrow(KIT.sendMs, "finding an answer", after, finding);
    if (found !== undefined) db.query("UPDATE live SET message = ? WHERE delivery = ?", found, delivery);
    return found;
  }

  async #showNext(id: string): Promise<void> {
    const { db, now, after } = this.#ports;
    const entry = this.#texts.get(id);
    if (!entry?.next || entry.busy) return;
    // The answer is queued already: a live text must not overtake it.
    if (this.#ports.platform().showLive === undefined || db.query("SELECT 1 FROM deliveries WHERE id = ?", id).length > 0)
      return void this.#texts.delete(id);
    // `freed` or a newer text tries again.
    if (this.#isBehind(id, peerName(entry.next.peer))) return;
    const wait = entry.shownAt + KIT.liveEveryMs - now();
    if (wait > 0) {
      this.#texts.set(id, { ...entry, busy: true });
      after(wait, () => this.#goOn(id));
      return;
    }
    this.#texts.set(id, { shownAt: now(), busy: true });
    const showing = this.#showNow(entry.next).catch((error: unknown) => this.#ports.log("live_failed", { error: errorText(error) }));
    this.#showing.set(id, showing);
    await showing;
    this.#showing.delete(id);
    this.#goOn(id);
  }
  /** A first text would appear before an earlier message that is still queued, and stay there. */
  #isBehind(id: string, peer: string): boolean {
    const { db } = this.#ports;
    if (db.query("SELECT 1 FROM live WHERE delivery = ? AND message <> ''", id).length > 0) return false;
    return db.query("SELECT 1 FROM outbox WHERE peer = ? AND delivery <> ? LIMIT 1", peer, id).length > 0;
  }
  #goOn(id: string): void {
    const entry = this.#texts.get(id);
    if (!entry) return;
    this.#texts.set(id, { ...entry, busy: false });
    void this.#showNext(id);
  }
  async #showNow({ deliveryId, peer, text, replyToId, askFrom = 0 }: LiveText): Promise<void> {
    const { db, now, after, permission } = this.#ports;
    const platform = this.#ports.platform();
    const [first = "", ...more] = splitText(platform.mark(text), platform.capabilities.maxTextChars);
    if (first === "" || platform.showLive === undefined || !this.#ports.isOpen()) return;
    // While everything is stopped no text is shown, and none waits for the end of that.
    if (!permission.covers(askFrom) && !(await permission.ask())) return;
    const [row] = db.query<{ message: string }>("SELECT message FROM live WHERE delivery = ?", deliveryId);
    const shown = row?.message || undefined;
    const visible = more.length > 0 ? `${first.slice(0, -1)}…` : first;
    // The row comes before the platform call: after a crash in between, `messageId` looks for the message.
    if (shown === undefined) db.query("INSERT INTO live VALUES(?, '', ?) ON CONFLICT(delivery) DO NOTHING", deliveryId, now());
    const showing = platform.showLive(peer, visible, shown, replyToId, liveNonce(deliveryId));
    const messageId = await withinOrThrow(KIT.sendMs, "showing an answer", after, showing);
    if (messageId === undefined || shown !== undefined) return;
    db.query(
      "INSERT INTO live VALUES(?, ?, ?) ON CONFLICT(delivery) DO UPDATE SET message = excluded.message",
      deliveryId,
      messageId,
      now(),
    );
  }

  /** One bounded step of pruning. */
  prune(): void {
    const { db, now } = this.#ports;
    db.query("DELETE FROM live WHERE delivery IN (SELECT delivery FROM live WHERE at < ? LIMIT ?)", now() - KIT.liveMaxMs, KIT.pruneRows);
  }
}
