/** Search: requests and answers between the gateway, sessions and the search index. */
import type { SearchQueryResult, SearchSource } from "../../../protocol/gen/types.ts";
import type { RecallHit } from "./long-term-memory.ts";
import type { Vector } from "./embeddings.ts";
import type { Result } from "./result.ts";

/** What an index has texts of: the sources that the wire names, and rows of long-term memory. */
export type IndexKind = SearchSource | "memory";

/** A conversation that the search index can read. */
export interface SearchableSession {
  readonly key: string;
  readonly lastActiveAt: number;
  /** No message is newer than this (epoch ms). */
  readonly quietSince: number;
}
/** A page of an agent's conversations, by key. */
export interface SearchableSessions {
  readonly sessions: readonly SearchableSession[];
  readonly more: boolean;
}

/** A page of a conversation's messages. */
export interface SearchRows {
  readonly sessionId: string;
  /** The conversation begins here; what is before it was archived. */
  readonly contextFrom: number;
  readonly nextSeq: number;
  /** A run is active, so more rows may follow without a new message. */
  readonly busy: boolean;
  readonly rows: readonly { readonly seq: number; readonly role: string; readonly at: number; readonly text: string }[];
  /** The last seq that was read, also when its row has no text. */
  readonly upTo: number;
  readonly more: boolean;
}

/** A query as FTS5 expressions, which search/query.ts makes. */
export interface SearchMatch {
  /** Words of any form. Without `exact` one of them must occur; they rank in any case. */
  readonly words: readonly string[];
  /** Must match, word by word as written. */
  readonly exact?: string;
  /** Must not match, word by word as written. Only without `exact`. */
  readonly without?: string;
}

export interface MemoryNear {
  /** `modelKey` */
  readonly model: string;
  readonly vector: Vector;
  /** The rows that the vector index finds: of those that it has, only these are compared. Absent: every row is compared. */
  readonly found?: readonly string[];
}

/** A query of the gateway to an agent's index. */
export interface SearchRequest {
  readonly agentId: string;
  readonly match: SearchMatch;
  readonly sources: readonly IndexKind[];
  /** Only this conversation. */
  readonly sessionKey?: string;
  /** Only what the agent remembers: rows of long-term memory, memory files, and transcripts of conversations with these keys or this prefix. */
  readonly memoryOf?: { readonly keys: readonly string[]; readonly prefix: string };
  /** As it was asked. With it, texts that are near in meaning are found, too. */
  readonly question?: string;
  /** The question as a vector of an embedding service: rows of long-term memory with a vector of the same model are compared with it. */
  readonly nearRows?: MemoryNear;
  /** The state of the rows (`LongTermMemory.state`): an index that has followed it does not read them again. */
  readonly rowsState?: string;
  /** What GSV has written of the agents' files (`WrittenFiles`): an index that has listed them just now, with the same state, does not list them again. */
  readonly filesState?: string;
  readonly limit: number;
  readonly offset: number;
}

export interface SearchPlace {
  readonly kind: IndexKind;
  /** A path, a session key, or the id of a row of long-term memory. */
  readonly name: string;
  readonly sessionKey: string | undefined;
  readonly sessionId: string | undefined;
  readonly role: string | undefined;
  /** The label of a file, as text of its metadata. */
  readonly taint?: string;
  readonly at: number;
  readonly position: number;
  readonly score: number;
  /** The whole place, unredacted, with U+E000 and U+E001 around what matches. */
  readonly marked: string;
  /** The texts right before and after it, in order, unredacted: lines of a memory file, messages of a conversation. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface SearchFound {
  readonly hits: readonly SearchPlace[];
  readonly more: boolean;
  readonly notes: readonly string[];
}

/** Public methods of an agent's search index. Failures are thrown: the index is derived, so nothing can be lost in it. */
export interface SearchPort {
  query(request: SearchRequest): Promise<SearchFound>;
  /** Removes a deleted session and its transcripts from the index. */
  forget(sessionKey: string, sessionIds: readonly string[]): Promise<void>;
  /** Rows of long-term memory are about to be removed. From now on the index looks at the rows again, whatever happens to the caller. */
  memoriesWillChange(): Promise<void>;
  /** Rows were removed: resolves when nothing that was made of them is left. */
  memoriesChanged(): Promise<void>;
}

/** A query of a session or client to the gateway. */
export interface SearchInput {
  readonly agentId: string;
  readonly query: string;
  /** Absent: everywhere. */
  readonly sources?: readonly SearchSource[];
  /** Canonical. */
  readonly sessionKey?: string;
  readonly limit?: number;
  readonly offset?: number;
  readonly snippetChars?: number;
}

export type SearchAnswer = SearchQueryResult;

/** A search of what an agent remembers. */
export interface MemorySearchInput {
  readonly agentId: string;
  readonly query: string;
  readonly limit: number;
  readonly offset: number;
  readonly snippetChars: number;
  /** Only rows of long-term memory, without files and transcripts. */
  readonly rowsOnly: boolean;
  /** The state of the rows now (`LongTermMemory.state`). */
  readonly rowsState: () => string | undefined;
  /** Makes the question's vector; asked only where the question has one. */
  readonly near?: () => Promise<MemoryNear | undefined>;
}
export interface MemorySearchPort {
  readonly memorySearch: {
    /** Hits of rows are as the index has them, with the highest label: the caller compares them with the rows. */
    find(
      input: MemorySearchInput,
    ): Promise<Result<{ readonly hits: readonly RecallHit[]; readonly more: boolean; readonly notes: readonly string[] }>>;
  };
}
