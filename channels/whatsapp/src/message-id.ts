/** The id of an outgoing message, made from its nonce: a second try has the same one, and the receiver shows it once. */
import { createHash } from "node:crypto";

export const messageIdOf = (nonce: string): string => `3EB0${createHash("sha256").update(nonce).digest("hex").slice(0, 36).toUpperCase()}`;
