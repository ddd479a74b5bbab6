/** Small helpers of the fake for stanzas, the XML-like nodes of WhatsApp's wire: how they are read, and the two values that most answers have. */
import type { BinaryNode } from "@whiskeysockets/baileys";

export const SERVER = "s.whatsapp.net";
export const seconds = (): number => Math.floor(Date.now() / 1000);
export const children = (node: BinaryNode): readonly BinaryNode[] => (Array.isArray(node.content) ? node.content : []);
export const bytesOf = (node: BinaryNode | undefined): Buffer => Buffer.from((node?.content as Uint8Array | undefined) ?? []);
