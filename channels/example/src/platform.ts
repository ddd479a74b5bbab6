/**
 * The example's platform: whatever speaks signed HTTP. A message comes in as a webhook; what goes out is posted to a callback, or kept
 * until it is fetched. Everything durable is the kit's; this file only translates.
 */
import type { ChannelCapabilities } from "../../../protocol/gen/types.ts";
import { toPlain } from "../../kit/src/marks.ts";
import type { OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";

export interface Settings {
  /** Signs both ways. */
  readonly secret: string;
  /** Where messages are posted; absent: they are fetched. */
  readonly callbackUrl?: string;
}
export interface Fetched {
  readonly n: number;
  readonly id: string;
  readonly to: string;
  readonly text: string;
}
const KEPT = 1000;
const CAPABILITIES: ChannelCapabilities = {
  peerKinds: ["dm"],
  media: false,
  reactions: false,
  typing: false,
  replies: false,
  edits: false,
  buttons: false,
  login: false,
  maxTextChars: 4000,
  webhooks: true,
};

export function readSettings(config: Readonly<Record<string, unknown>>): Settings | undefined {
  const { secret, callbackUrl } = config;
  if (typeof secret !== "string" || secret.length < 16) return undefined;
  const url = typeof callbackUrl === "string" ? URL.parse(callbackUrl) : null;
  const callback = url && (url.protocol === "https:" || url.hostname === "127.0.0.1") ? { callbackUrl: url.href } : {};
  return { secret, ...callback };
}

export class ExamplePlatform implements Platform {
  readonly capabilities = CAPABILITIES;
  /** Callbacks are asked to know their nonces for this long; what is fetched is kept under its nonce. */
  readonly recognisesNonceMs = 600_000;
  readonly settings: Settings | undefined;
  readonly #host: PlatformHost;

  constructor(host: PlatformHost, settings: Settings | undefined) {
    this.#host = host;
    this.settings = settings;
  }
  mark(markdown: string): string {
    return toPlain(markdown);
  }
  async ensureConnected(): Promise<void> {}
  async disconnect(): Promise<void> {}
  isAtRest(): boolean {
    return true;
  }
  isConnected(): boolean {
    return this.settings !== undefined;
  }
  status() {
    const error = this.settings ? {} : { error: "Give the channel a `secret` of at least 16 characters when you start it." };
    return {
      connected: this.isConnected(),
      authenticated: this.isConnected(),
      mode: this.settings?.callbackUrl ? "callback" : "poll",
      ...error,
    };
  }
  async send({ nonce, peer, text }: OutboundPart): Promise<SendOutcome> {
    const { settings } = this;
    if (!settings) return { kind: "retry", error: "the channel has no secret" };
    if (settings.callbackUrl === undefined) return this.#keep(nonce, peer.id, text);
    const body = JSON.stringify({ id: nonce, to: peer.id, text });
    const timestamp = String(this.#host.now());
    const headers = {
      "Content-Type": "application/json",
      "X-Timestamp": timestamp,
      "X-Signature": await sign(settings.secret, timestamp, body),
    };
    const response = await fetch(settings.callbackUrl, { method: "POST", headers, body, redirect: "error" }).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok) return { kind: "sent", messageId: nonce };
    if (response && response.status >= 400 && response.status < 500 && response.status !== 429)
      return { kind: "failed", error: `the callback answered ${response.status}` };
    return { kind: "unsure", error: response ? `the callback answered ${response.status}` : "the callback did not answer" };
  }
  #keep(nonce: string, to: string, text: string): SendOutcome {
    const { kv, transaction } = this.#host;
    transaction(() => {
      if (kv.get(`nonce.${nonce}`) !== undefined) return;
      const n = (kv.get<number>("last") ?? 0) + 1;
      kv.put("last", n);
      kv.put(`nonce.${nonce}`, n);
      kv.put(`out.${String(n).padStart(12, "0")}`, { n, id: nonce, to, text } satisfies Fetched);
      for (const old of kv.keys("out.").slice(0, -KEPT)) {
        kv.delete(`nonce.${kv.get<Fetched>(old)?.id ?? ""}`);
        kv.delete(old);
      }
    });
    return { kind: "sent", messageId: nonce };
  }
  /** What was kept after the `n`-th, at most a hundred. */
  fetchAfter(n: number): Fetched[] {
    const { kv } = this.#host;
    return kv
      .keys("out.")
      .flatMap((name) => kv.get<Fetched>(name) ?? [])
      .filter((message) => message.n > n)
      .slice(0, 100);
  }
  /** False: it had come before. */
  receive({
    id,
    from,
    text,
    name,
  }: {
    readonly id: string;
    readonly from: string;
    readonly text: string;
    readonly name?: string;
  }): boolean {
    const now = this.#host.now();
    const sender = { id: from, ...(name === undefined ? {} : { name }) };
    return this.#host.take({
      key: id,
      inbound: { peer: { kind: "dm", id: from }, sender, message: { id, text, timestamp: now }, receivedAt: now },
      files: [],
    });
  }
}

const encoder = new TextEncoder();
const keyOf = (secret: string): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
/** Hex of the HMAC-SHA256 of `timestamp.body`. */
export async function sign(secret: string, timestamp: string, body: string): Promise<string> {
  const mac = await crypto.subtle.sign("HMAC", await keyOf(secret), encoder.encode(`${timestamp}.${body}`));
  return Array.from(new Uint8Array(mac), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** In a time that does not depend on where they differ. */
export async function isSigned(secret: string, timestamp: string, body: string, signature: string): Promise<boolean> {
  if (!/^[0-9a-f]{64}$/.test(signature)) return false;
  const bytes = Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return crypto.subtle.verify("HMAC", await keyOf(secret), bytes, encoder.encode(`${timestamp}.${body}`));
}
