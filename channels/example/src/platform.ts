/**
 * The example's platform: whatever speaks signed HTTP. A message comes in as a webhook; what goes out is posted to a callback, or kept
 * until it is fetched. Everything durable is the kit's; this file only translates.
 */
import type { ChannelCapabilities } from "../../../protocol/gen/types.ts";
import { toPlain } from "../../kit/src/marks.ts";
import type { OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { sign } from "./signature.ts";

export interface Settings {
  /** Signs both ways. */
  readonly secret: string;
  /** Where messages are posted; absent: they are fetched. */
  readonly callbackUrl?: string;
}
/** A message as the webhook brings it. */
export interface Incoming {
  readonly id: string;
  readonly from: string;
  readonly text: string;
  readonly name?: string;
  /** Absent: it is a direct message. */
  readonly group?: string;
  readonly mentioned?: boolean;
}
export type Kept = Readonly<{ n: number; id: string; to: string; text: string }>;
const KEPT = 1000;
const FETCHED_AT_ONCE = 100;
const none = { media: false, reactions: false, typing: false, replies: false, edits: false, buttons: false, login: false };
const CAPABILITIES: ChannelCapabilities = { ...none, webhooks: true, peerKinds: ["dm", "group"], maxTextChars: 4000 };
