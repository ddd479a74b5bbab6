/** Between channels' Workers, the gateway and sessions: messages from platforms, and messages to them. */
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  Media,
  OutboundMessage,
  Peer,
  PeerKind,
} from "../../../protocol/gen/types.ts";
import type { Result } from "./result.ts";
import type { ReplyRoute, SessionIdentity } from "./session.ts";
import type { Taint } from "./taint.ts";

export interface ChannelPlaces {
  readonly channels: readonly string[];
  readonly places: readonly {
    /** The target's name, for `message`. */
    readonly to: string;
    readonly kind: PeerKind;
    readonly name?: string;
    readonly whose: "yours" | "guest" | "group";
    readonly lastWroteAt: number;
  }[];
  readonly more: boolean;
}

export interface ChannelMessage {
  readonly from: SessionIdentity;
  /** The id of the tool call. The message is sent once per call, also when the call runs again. */
  readonly callId: string;
  readonly target: { readonly channel: string; readonly accountId?: string; readonly peer: Peer };
  readonly text: string;
  /** In the bucket already. */
  readonly media: readonly Media[];
  readonly replyToId?: string;
  /** What the text was made from. Absent: not known. */
  readonly taint?: Taint;
  /** The text is a question with this code: it has the buttons of an answer, and is no part of the recipient's conversation. */
  readonly question?: string;
}

/** `byAgent`: an agent wrote the text. */
export type ChannelNotification = Pick<ChannelMessage, "callId" | "target" | "text" | "question"> & { readonly byAgent?: boolean };

export interface ChannelMessageSent {
  /** Durable in the channel. The conversation is told if the delivery fails later. */
  readonly status: "queued";
  readonly deliveryId: string;
  readonly to: string;
  readonly duplicate?: boolean;
}

/** For features that write to a place on the owner's behalf: once per `callId`. */
export interface ChannelsOutPort {
  readonly channelsOut: {
    message(input: ChannelMessage): Promise<Result<ChannelMessageSent>>;
    /** The owner's own direct conversation that was active last, as gsv__Message names it. */
    lastOwn(): string | undefined;
    /**
     * When someone wrote last to this agent on a channel, outside the owner's own conversations; `since` when no one has after it.
     * Undefined: there is no such channel.
     */
    lastFromOthers(channel: string, agentId: string, since: number): number | undefined;
    /** Whether an account of the channel was ever started. */
    wasStarted(channel: string): boolean;
    /**
     * A notification to a direct chat of the owner; refused for every other place. It is no part of a conversation, and once per
     * `callId`.
     */
    notify(input: ChannelNotification): Promise<Result<ChannelMessageSent>>;
    /** Why a message of the agent to this place would not arrive now, for the owner; undefined: nothing is known against it. */
    refusalOf(target: ChannelMessage["target"]): string | undefined;
    /** Why a notification to this place would not arrive now; undefined: nothing is known against it. */
    problemOf(target: ChannelMessage["target"]): string | undefined;
  };
}

export type ReplyCall =
  | { readonly kind: "send"; readonly route: ReplyRoute; readonly message: OutboundMessage; readonly cause?: FailureCause }
  | { readonly kind: "live"; readonly route: ReplyRoute; readonly deliveryId: string; readonly text: string }
  | { readonly kind: "typing"; readonly route: ReplyRoute; readonly active: boolean };

/** Why a run failed for someone who is not told it (rule NT10). */
export interface FailureCause {
  /** The id of the run's end. */
  readonly id: string;
  readonly sessionKey: string;
  readonly agentId: string;
  readonly runId: string;
  readonly reason: string;
  readonly text: string;
}
/** One account of a channel. */
export interface ChannelRef {
  readonly channel: string;
  readonly accountId: string;
}
/** Where a channel's file is stored. */
export type FilePlace =
  | { readonly kind: "place"; readonly r2Key: string }
  /** The channel has stored enough files whose messages have not come. */
  | { readonly kind: "full" }
  | { readonly kind: "unwanted" };
/** What channels' Workers may call, through GatewayService. */
export interface ChannelPort {
  channelInbound(account: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome>;
  /** Where a file of a message is stored; undefined: it is not wanted. */
  channelMediaKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined>;
  /** Where a file of a message is stored now; the gateway counts it until its message comes. */
  channelFileKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number; readonly sizeBytes: number },
  ): Promise<FilePlace>;
  /** The file belongs to a delivery that was given to this account. */
  channelMayRead(account: ChannelRef, deliveryId: string, r2Key: string): Promise<boolean>;
  /** A Worker claimed to be a channel that its binding does not name. */
  channelRefused(channel: string | undefined, claimed: string): Promise<void>;
  channelStatus(account: ChannelRef, state: ChannelAccount): Promise<void>;
  channelDelivered(account: ChannelRef, report: DeliveryReport): Promise<void>;
  /** False while everything is stopped: messages of agents must not leave. */
  channelMayDeliver(): Promise<boolean>;
}
/** A channel's Worker as the receiver of its platform's webhooks. */
export interface WebhookChannel {
  describe(params: object): Promise<{ readonly webhooks?: boolean; readonly signatureHeader?: string }>;
  fetch(request: Request): Promise<Response>;
}
