/** The session's store for transcripts. */
import type { Message } from "./messages.ts";
import type { Result } from "./result.ts";

export interface ArchiveInput {
  readonly agentId: string;
  readonly sessionKey: string;
  readonly sessionId: string;
  /** A compaction's part, by the time (epoch ms) of its intent; absent for a whole session. */
  readonly part?: number;
  /** Epoch ms. */
  readonly archivedAt: number;
  readonly messages: Iterable<Message>;
  readonly tokens: { readonly input: number; readonly output: number; readonly total: number };
}
export interface ArchiveReceipt {
  readonly key: string;
  /** The digest of the stored bytes, in hex. */
  readonly sha256: string;
  readonly count: number;
}
export interface ArchiveStore {
  /** Put, and read back: size, checksum and count are right when it says ok. */
  put(input: ArchiveInput): Promise<Result<ArchiveReceipt>>;
}
