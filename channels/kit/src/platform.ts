/**
 * What a channel brings to the kit, and what the kit gives it. Types only.
 *
 * The kit owns everything durable and everything that is the same on all platforms: inbox, outbox, order, retries, splitting, marks,
 * typing that is kept alive, the alarm. A platform owns its socket, its session and the translation of its messages.
 */
import type { ChannelAccount, ChannelCapabilities, ChannelInbound, ChannelLogin, Peer } from "../../../protocol/gen/types.ts";

/** A file that goes out. Its bytes are in the bucket. */
export interface OutboundFile {
  readonly r2Key: string;
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video" | "document";
  readonly filename?: string;
  /** Recorded speech, to be shown as such. */
  readonly voice: boolean;
}
/** One message as the platform takes it: marked up, short enough, in its place among its neighbours. */
export interface OutboundPart {
  /** Names it for ever: the delivery's id and its number. */
  readonly partId: string;
  /** At most 25 of `[A-Za-z0-9]`, derived from `partId`: the platform recognises a second try by it. */
  readonly nonce: string;
  readonly peer: Peer;
  readonly text: string;
  readonly file?: OutboundFile;
  readonly replyToId?: string;
  readonly actions?: readonly { readonly id: string; readonly label: string }[];
  /** A message that was shown while the answer was made, which this one replaces by an edit. */
  readonly replaces?: string;
  readonly attempt: number;
  /** Epoch ms. */
  readonly firstTriedAt: number;
}
export type SendOutcome =
  | { readonly kind: "sent"; readonly messageId: string }
  /** Certainly not sent. */
  | { readonly kind: "retry"; readonly afterMs?: number; readonly error: string }
  /** Will never be taken: the peer is gone, the permission is missing. */
  | { readonly kind: "failed"; readonly error: string }
  /** It may have arrived. Tried again only while the platform recognises the nonce. */
  | { readonly kind: "unsure"; readonly error: string };

/** A file of an incoming message that is still at the platform. */
export interface InboundFile {
  readonly index: number;
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video" | "document";
  readonly filename?: string;
  /** What the platform says; checked again while reading. */
  readonly sizeBytes?: number;
  readonly durationSeconds?: number;
  /** JSON-safe; what `Platform.fetchFile` needs to get it, also after a restart. Never logged. */
  readonly reference: unknown;
}
/** A message as the platform's mapper made it. */
export interface InboundItem {
  /** Unique on the platform for ever, with the peer: what a redelivery is recognised by. */
  readonly key: string;
  readonly inbound: ChannelInbound;
  readonly files: readonly InboundFile[];
  /** What the platform has to be told once the message is durable (an id to acknowledge). JSON-safe. */
  readonly receipt?: unknown;
}

/** Everything platform-specific of one account. Made anew in each life of its Durable Object. */
export interface Platform {
  readonly capabilities: ChannelCapabilities;
  /** How long after the first try a second one with the same nonce does nothing. 0: never. */
  readonly recognisesNonceMs: number;
  /** Markdown in the platform's marks. */
  mark(markdown: string): string;
  /**
   * Makes sure that there is a connection or that one is being made. Called by start and by each alarm; never twice at once. `asked`:
   * by a person, who may have mended what stopped it.
   */
  ensureConnected(asked?: boolean): Promise<void>;
  disconnect(): Promise<void>;
  /** True when `send` has a chance. */
  isConnected(): boolean;
  /** Nothing can change before a person acts, or there is no connection to look after: then nothing is kept alive for it. Absent: never. */
  isAtRest?(): boolean;
  status(): Pick<
    ChannelAccount,
    "connected" | "authenticated" | "mode" | "error" | "silentMs" | "roundTripMs" | "lastActivity" | "gap" | "extra"
  >;
  send(part: OutboundPart): Promise<SendOutcome>;
  fetchFile?(file: InboundFile): Promise<{ readonly body: ReadableStream<Uint8Array>; readonly sizeBytes?: number }>;
  typing?(peer: Peer, active: boolean): Promise<void>;
  react?(peer: Peer, messageId: string, senderId: string | undefined, emoji: string): Promise<void>;
  /** The message is durable: read receipts and the like. */
  acknowledged?(items: readonly { readonly peer: Peer; readonly receipt: unknown }[]): Promise<void>;
  /** Shows text while it is made: sends a message, or changes the one that was sent. Gives its id. */
  showLive?(
    peer: Peer,
    text: string,
    messageId: string | undefined,
    replyToId: string | undefined,
    /** Of the first time: with the same one it is the same message, as with a part. */
    nonce: string,
  ): Promise<string | undefined>;
  login?(options: { readonly force: boolean; readonly phone?: string }): Promise<ChannelLogin>;
  logout?(): Promise<void>;
}
/** What the kit gives to a platform. */
export interface PlatformHost {
  readonly accountId: string;
  readonly now: () => number;
  /** The account's own small state (session ids, sequence numbers). Synchronous, durable, in the same store as the inbox. */
  readonly kv: {
    get<T>(key: string): T | undefined;
    put(key: string, value: unknown): void;
    delete(key: string): void;
    /** Names with this beginning. */
    keys(prefix: string): readonly string[];
  };
  /** Everything inside happens or nothing does: a position in the platform's stream moves with the messages before it. */
  transaction<T>(work: () => T): T;
  /** Durable when it returns; false: it had been taken before, or too many of its conversation wait. Synchronous, so that nothing can come between. */
  take(item: InboundItem): boolean;
  /** The connection changed; the gateway is told. */
  changed(): void;
  /** Once, after `ms`. Lost with the object's life: the alarm is the backstop. */
  after(ms: number, work: () => void): () => void;
  /** One JSON line; secrets and message texts have no place in it. */
  log(event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>): void;
  readonly bucket: R2Bucket;
}
