/** The id of an outbound message, derived from its nonce: a retry has the same id, and the receiver shows it once. */
import { createHash } from "node:crypto";

export const messageIdOf = (nonce: string): string => `3EB0${createHash("sha256").update(nonce).digest("hex").slice(0, 36).toUpperCase()}`;
