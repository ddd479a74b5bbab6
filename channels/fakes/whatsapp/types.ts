/** Types that the files of the fake WhatsApp share: what it notes for a test, what a test lets a person send, and the connection of a device. */
import type { MediaType, proto } from "@whiskeysockets/baileys";
import type { WebSocket } from "ws";
import type { NoiseServer } from "./noise-server.ts";

export interface Note {
  readonly kind: string;
  readonly at: number;
  readonly [more: string]: unknown;
}
export interface Connection {
  readonly ws: WebSocket;
  readonly noise: NoiseServer;
  state: "hello" | "finish" | "open";
  registration: proto.ClientPayload.IDevicePairingRegistrationData | undefined;
  flushed: boolean;
}
export interface Say {
  readonly group?: string;
  /** Addressed by LID, like new chats. */
  readonly byLid?: boolean;
  /** Also sends the other id. Default: true. */
  readonly tellOther?: boolean;
  readonly id?: string;
  readonly sentAt?: number;
  /** Arrives damaged; intact when the device requests it again. */
  readonly damaged?: boolean;
}
export interface SayMedia extends Say {
  readonly kind: Extract<MediaType, "image" | "video" | "audio" | "document">;
  readonly mimetype: string;
  readonly more?: Readonly<Record<string, unknown>>;
}
