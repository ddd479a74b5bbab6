/**
 * PURE. Maps one part of an answer to Baileys' form. The caller gives the file's bytes and the quoted message. The kit has split the
 * text, converted its marks and replaced buttons.
 */
import type { OutboundPart } from "../../kit/src/platform.ts";
import { parseJid } from "./jid.ts";

export const MAX_FILE_BYTES = 24 * 1024 * 1024;

/** The variants of Baileys' AnyMessageContent in use here. */
export type OutboundContent =
  | { readonly text: string; readonly linkPreview: null; readonly edit?: MessageKey }
  | ({ readonly caption?: string; readonly mimetype: string; readonly jpegThumbnail?: string } & (
      | { readonly image: Uint8Array }
      | { readonly video: Uint8Array }
      | { readonly document: Uint8Array; readonly fileName: string }
      | { readonly audio: Uint8Array; readonly ptt: boolean; readonly seconds: number; readonly waveform?: Uint8Array }
    ));
export interface MessageKey {
  readonly remoteJid: string;
  readonly id: string;
  readonly fromMe: boolean;
  readonly participant?: string;
}
/** A stored message that the answer quotes. */
export interface Quotable {
  readonly text: string;
  readonly fromMe: boolean;
  readonly participant?: string;
}
export type MappedOutbound =
  | {
      readonly kind: "send";
      readonly jid: string;
      readonly content: OutboundContent;
      /** The text beside a file that cannot have a caption. */
      readonly before?: string;
      readonly quoted?: { readonly key: MessageKey; readonly message: { readonly conversation: string } };
    }
  | { readonly kind: "refused"; readonly error: string };

/** The peer's JID; undefined for a peer that is not WhatsApp's. */
export function peerJid(peer: OutboundPart["peer"]): string | undefined {
  const jid = parseJid(peer.id);
  if (peer.kind === "group") return jid?.kind === "group" ? jid.id : undefined;
  return peer.kind === "dm" && (jid?.kind === "phone" || jid?.kind === "lid") ? jid.id : undefined;
}

export function mapOutbound(
  part: OutboundPart,
  { bytes, quotable }: { readonly bytes?: Uint8Array; readonly quotable?: Quotable },
): MappedOutbound {
  const jid = peerJid(part.peer);
  if (jid === undefined) return { kind: "refused", error: `${JSON.stringify(part.peer.id)} is no ${part.peer.kind} on WhatsApp` };
  const quoted =
    part.replyToId === undefined || !quotable
      ? {}
      : {
          quoted: {
            key: {
              remoteJid: jid,
              id: part.replyToId,
              fromMe: quotable.fromMe,
              ...(quotable.participant === undefined ? {} : { participant: quotable.participant }),
            },
            message: { conversation: quotable.text },
          },
        };
  if (!part.file) {
    if (part.text === "") return { kind: "refused", error: "there is nothing to send" };
    const edit = part.replaces === undefined ? {} : { edit: { remoteJid: jid, id: part.replaces, fromMe: true } };
    return { kind: "send", jid, content: { text: part.text, linkPreview: null, ...edit }, ...quoted };
  }
  if (!bytes) return { kind: "refused", error: "the file is no longer stored" };
  if (bytes.length > MAX_FILE_BYTES)
    return { kind: "refused", error: `a file may have ${MAX_FILE_BYTES / 1024 / 1024} MiB on WhatsApp, this one has more` };
  const { kind, mimeType, filename, voice } = part.file;
  const caption = part.text === "" ? {} : { caption: part.text };
  const base = { mimetype: mimeType, ...caption };
  switch (kind) {
    case "image":
      // Otherwise Baileys looks for a program that makes thumbnails.
      return { kind: "send", jid, content: { ...base, image: bytes, jpegThumbnail: "" }, ...quoted };
    case "video":
      return { kind: "send", jid, content: { ...base, video: bytes, jpegThumbnail: "" }, ...quoted };
    case "audio": {
      const seconds = oggSeconds(bytes) ?? 0;
      const spoken = voice ? { ptt: true, waveform: new Uint8Array(64).fill(32) } : { ptt: false };
      // A voice note has no caption.
      const mimetype = voice && mimeType.startsWith("audio/ogg") ? "audio/ogg; codecs=opus" : mimeType;
      return {
        kind: "send",
        jid,
        content: { mimetype, audio: bytes, seconds, ...spoken },
        ...(part.text === "" ? {} : { before: part.text }),
        ...quoted,
      };
    }
    case "document":
      return { kind: "send", jid, content: { ...base, document: bytes, fileName: filename ?? "file" }, ...quoted };
  }
}

/** Duration of an Ogg Opus recording in seconds: the position of its last page, in 48 kHz samples (RFC 7845). */
export function oggSeconds(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = 0x4f676753;
  if (bytes.length < 27 || view.getUint32(0) !== magic) return undefined;
  for (let at = bytes.length - 14; at >= 0; at--) {
    if (view.getUint32(at) !== magic) continue;
    const samples = Number(view.getBigUint64(at + 6, true));
    return samples > 48_000 * 86_400 ? undefined : Math.max(1, Math.round(samples / 48_000));
  }
  return undefined;
}
