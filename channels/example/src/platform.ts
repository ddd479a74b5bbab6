/**
 * The example's platform: any program that speaks signed HTTP. Messages arrive as webhooks; answers are posted to a callback or stored
 * until they are fetched. The queues are the kit's; this file only maps messages.
 */
import type { ChannelCapabilities } from "../../../protocol/gen/types.ts";
import { toPlain } from "../../kit/src/marks.ts";
import type { OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { sign } from "./signature.ts";

export interface Settings {
  /** Signs requests in both directions. */
  readonly secret: string;
  /** URL for answers; absent: answers are fetched. */
  readonly callbackUrl?: string;
}
/** The body of a webhook. */
export interface Incoming {
  readonly id: string;
  readonly from: string;
  readonly text: string;
  readonly name?: string;
  /** Absent for a direct message. */
  readonly group?: string;
  readonly mentioned?: boolean;
}
export type Kept = Readonly<{ n: number; id: string; to: string; text: string }>;
const KEPT = 1000;
const FETCHED_AT_ONCE = 100;
const none = { media: false, reactions: false, typing: false, replies: false, edits: false, buttons: false, login: false };
const CAPABILITIES: ChannelCapabilities = {
  ...none,
  webhooks: true,
  signatureHeader: "X-Signature",
  peerKinds: ["dm", "group"],
  maxTextChars: 4000,
};

/** The settings, or a text that says what is wrong. */
export function readSettings({ secret, callbackUrl }: Readonly<Record<string, unknown>>): Settings | string {
  if (typeof secret !== "string" || secret.length < 16) return "Give the channel a `secret` of at least 16 characters when you start it.";
  if (callbackUrl === undefined) return { secret };
  const url = typeof callbackUrl === "string" ? URL.parse(callbackUrl) : null;
  if (url?.protocol !== "https:" && url?.hostname !== "127.0.0.1") return "`callbackUrl` must begin with https://, or be on 127.0.0.1.";
  return { secret, callbackUrl: url.href };
}

export class ExamplePlatform implements Platform {
  readonly capabilities = CAPABILITIES;
  /** Callbacks must remember ids for this long; answers to fetch are stored by their nonce. */
  readonly recognisesNonceMs = 600_000;
  readonly settings: Settings | string;
  readonly #host: PlatformHost;

  constructor(host: PlatformHost, settings: Settings | string) {
    this.#host = host;
    this.settings = settings;
  }
  mark = toPlain;
  async ensureConnected(): Promise<void> {}
  async disconnect(): Promise<void> {}
  isConnected = (): boolean => typeof this.settings !== "string";
  /** There is no connection to keep. */
  isAtRest = (): boolean => true;
  status() {
    const state = { connected: this.isConnected(), authenticated: this.isConnected() };
    if (typeof this.settings === "string") return { ...state, error: this.settings };
    return { ...state, mode: this.settings.callbackUrl === undefined ? "poll" : "callback" };
  }

  async send({ nonce, peer, text, file }: OutboundPart): Promise<SendOutcome> {
    if (typeof this.settings === "string") return { kind: "retry", error: this.settings };
    if (file) return { kind: "failed", error: "this channel has no files" };
    const { secret, callbackUrl } = this.settings;
    if (callbackUrl === undefined) return this.#keep(nonce, peer.id, text);
    const body = JSON.stringify({ id: nonce, to: peer.id, text });
    const timestamp = String(this.#host.now());
    const signature = await sign(secret, timestamp, body);
    const headers = { "Content-Type": "application/json", "X-Timestamp": timestamp, "X-Signature": signature };
    const call = { method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000) } as const;
    const response = await fetch(callbackUrl, call).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) return { kind: "sent", messageId: nonce };
    const error = response ? `the callback answered ${response.status}` : "the callback did not answer";
    // 3xx and 4xx: not accepted. Everything else: unknown outcome.
    if (response?.status === 429) return { kind: "retry", error };
    return { kind: response && response.status < 500 ? "failed" : "unsure", error };
  }
  #keep(id: string, to: string, text: string): SendOutcome {
    const { kv, transaction } = this.#host;
    transaction(() => {
      if (kv.get(`nonce.${id}`) !== undefined) return;
      const n = (kv.get<number>("last") ?? 0) + 1;
      kv.put("last", n);
      kv.put(`nonce.${id}`, n);
      kv.put(nameOf(n), { n, id, to, text } satisfies Kept);
      for (const old of kv.keys("out.").slice(0, -KEPT)) {
        kv.delete(`nonce.${kv.get<Kept>(old)?.id}`);
        kv.delete(old);
      }
    });
    return { kind: "sent", messageId: id };
  }
  /** Stored answers after number `n`. */
  keptAfter(n: number): Kept[] {
    const { kv } = this.#host;
    const names = kv.keys("out.").filter((name) => name > nameOf(n));
    return names.slice(0, FETCHED_AT_ONCE).flatMap((name) => kv.get<Kept>(name) ?? []);
  }
  /** False for a duplicate. */
  receive({ id, from, text, name, group, mentioned = false }: Incoming): boolean {
    const now = this.#host.now();
    const sender = { id: from, ...(name === undefined ? {} : { name }) };
    const peer = group === undefined ? ({ kind: "dm", id: from } as const) : ({ kind: "group", id: group } as const);
    const message = { id, text, timestamp: now };
    return this.#host.take({ key: id, inbound: { peer, sender, message, wasMentioned: mentioned, receivedAt: now }, files: [] });
  }
}
const nameOf = (n: number): string => `out.${String(n).padStart(12, "0")}`;
