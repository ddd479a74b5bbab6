/**
 * The interface between a channel and the kit. Types only.
 *
 * The kit owns everything durable and everything that is the same on all platforms: inbox, outbox, order, retries, splitting, marks,
 * repeated typing, the alarm. A platform owns its socket, its session and the translation of its messages.
 */
import type { ChannelAccount, ChannelCapabilities, ChannelInbound, ChannelLogin, OutboundKind, Peer } from "../../../protocol/gen/types.ts";
import type { OutboundBytes } from "../../../protocol/runtime/channel-files.ts";

/** An outbound file. The gateway has its bytes: `PlatformHost.readFile`. */
export interface OutboundFile {
  readonly r2Key: string;
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video" | "document";
  readonly filename?: string;
  /** Recorded speech, to be sent as a voice note. */
  readonly voice: boolean;
}
/** One message as the platform takes it: in its marks, short enough, in order. */
export interface OutboundPart {
  /** The delivery's id and the part's number. Never reused. */
  readonly partId: string;
  /** At most 25 characters of `[A-Za-z0-9]`, derived from `partId`: the platform recognises a retry by it. */
  readonly nonce: string;
  readonly peer: Peer;
  readonly text: string;
  readonly file?: OutboundFile;
  readonly replyToId?: string;
  /** Absent: stored by an earlier version. */
  readonly kind?: OutboundKind;
  readonly actions?: readonly { readonly id: string; readonly label: string }[];
  /** The message that showed the answer while it was generated; this part replaces it by an edit. */
  readonly replaces?: string;
  readonly attempt: number;
  /** Epoch ms. */
  readonly firstTriedAt: number;
}
export type SendOutcome =
  | { readonly kind: "sent"; readonly messageId: string }
  /** Certainly not sent. */
  | { readonly kind: "retry"; readonly afterMs?: number; readonly error: string }
  /** Will never be accepted: the peer is gone, the permission is missing. */
  | { readonly kind: "failed"; readonly error: string }
  /** Unknown outcome. Retried only while the platform recognises the nonce. */
  | { readonly kind: "unsure"; readonly error: string };

/** A file of an inbound message that is still on the platform. */
export interface InboundFile {
  readonly index: number;
  readonly mimeType: string;
  readonly kind: "image" | "audio" | "video" | "document";
  readonly filename?: string;
  /** As the platform says; checked again while reading. */
  readonly sizeBytes?: number;
  readonly durationSeconds?: number;
  /** JSON-safe; what `Platform.fetchFile` needs to get it, also after a restart. Never logged. */
  readonly reference: unknown;
}
/** A message as the platform's mapper made it. */
export interface InboundItem {
  /** Unique for this peer on the platform: identifies redeliveries. */
  readonly key: string;
  readonly inbound: ChannelInbound;
  readonly files: readonly InboundFile[];
  /** Given to `Platform.settled` and `Platform.acknowledged` once the message is durable, for example an id. JSON-safe. */
  readonly receipt?: unknown;
}

/** `unconfirmed`: the platform refused the logout, did not answer or could not be asked, so it may still list this device. */
export type LogoutOutcome = "confirmed" | "unconfirmed";

/** Everything platform-specific of one account. Each instance of the Durable Object makes its own. */
export interface Platform {
  readonly capabilities: ChannelCapabilities;
  /** How long after the first attempt the platform ignores a second one with the same nonce. 0: it never does. */
  readonly recognisesNonceMs: number;
  /** Converts Markdown to the platform's marks. */
  mark(markdown: string): string;
  /**
   * Makes sure that a connection exists or is being made. Called by start and by each alarm, in parallel only with a call that has taken
   * longer than `KIT.connectMs`. `asked`: a person asked for it and may have fixed what stopped the connection.
   */
  ensureConnected(asked?: boolean): Promise<void>;
  /** Called by a stop, a logout and a new configuration, and once more when a call of `ensureConnected` ends after that. */
  disconnect(): Promise<void>;
  /** True when `send` can reach the platform. */
  isConnected(): boolean;
  /** True when the account needs no instance in memory: it waits for a person, or has no connection to keep. Absent: never. */
  isAtRest?(): boolean;
  status(): Pick<
    ChannelAccount,
    "connected" | "authenticated" | "mode" | "error" | "silentMs" | "roundTripMs" | "lastActivity" | "gap" | "extra"
  >;
  send(part: OutboundPart): Promise<SendOutcome>;
  fetchFile?(file: InboundFile): Promise<{ readonly body: ReadableStream<Uint8Array>; readonly sizeBytes?: number }>;
  typing?(peer: Peer, active: boolean): Promise<void>;
  react?(peer: Peer, messageId: string, senderId: string | undefined, emoji: string): Promise<void>;
  /** Runs in the transaction that takes the message out of the inbox: note a read receipt that must not be lost. Synchronous. */
  settled?(item: { readonly peer: Peer; readonly receipt: unknown }): void;
  /** The messages are with the gateway: send read receipts and the like. */
  acknowledged?(items: readonly { readonly peer: Peer; readonly receipt: unknown }[]): Promise<void>;
  /** Shows text while it is generated: sends a message or edits the one with `messageId`. Returns its id. */
  showLive?(
    peer: Peer,
    text: string,
    messageId: string | undefined,
    replyToId: string | undefined,
    /** Identifies the first message, as the nonce of a part does. */
    nonce: string,
  ): Promise<string | undefined>;
  login?(options: { readonly force: boolean; readonly phone?: string }): Promise<ChannelLogin>;
  /** Deletes the stored login, whatever the platform answers. Rejects when that failed. */
  logout?(): Promise<LogoutOutcome>;
}
/** What the kit offers to a platform. */
export interface PlatformHost {
  readonly accountId: string;
  readonly now: () => number;
  /** The account's own small state (session ids, sequence numbers). Synchronous and durable, in the inbox's database. */
  readonly kv: {
    get<T>(key: string): T | undefined;
    put(key: string, value: unknown): void;
    /** Overwrites the value before it is deleted. */
    delete(key: string): void;
    /** All names with this prefix. */
    keys(prefix: string): readonly string[];
  };
  /** Atomic: a position in the platform's stream moves together with the messages before it. */
  transaction<T>(work: () => T): T;
  /** Durable when it returns. False: a duplicate, or the conversation has too many queued messages. Synchronous, so that it can be part of a transaction. */
  take(item: InboundItem): boolean;
  /** The connection's state changed: tells the gateway. */
  changed(): void;
  /** Calls `work` once after `ms`; returns a function that cancels it. In memory only: the alarm is the backstop. */
  after(ms: number, work: () => void): () => void;
  /** Writes one JSON line. Never pass secrets or message texts. */
  log(event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>): void;
  /** The bytes of the part's file, from the gateway. Null: it is no longer stored. Without bytes: it is larger than `maxBytes`. */
  readFile(part: Pick<OutboundPart, "partId" | "file">, maxBytes: number): Promise<OutboundBytes | null>;
}
