/**
 * One pass of a catch-up: what it may use, when it must stop, and what it could not do. The files beside this one pull one kind of
 * source each. Must not know any of them.
 */
import type { MemoryChanged } from "../../ports/long-term-memory.ts";
import type { Result } from "../../ports/result.ts";
import type { IndexKind, SearchableSessions, SearchRows } from "../../ports/search.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { agentFolder } from "../../storage/keys.ts";
import type { IndexStore } from "./index-store.ts";

export interface CatchUpPorts {
  readonly store: IndexStore;
  readonly bucket: Pick<Bucket, "get" | "head" | "list">;
  /** The agent's sessions after this key, ordered by key. */
  readonly sessions: (afterKey: string) => Promise<SearchableSessions>;
  readonly rows: (key: string, afterSeq: number, limit: number) => Promise<Result<SearchRows>>;
  /** Changes of the agent's long-term memories after a number. Absent: the deployment has none. */
  readonly memories?: (afterSeq: number, limit: number) => Promise<Result<readonly MemoryChanged[]>>;
  readonly now: () => number;
}
/** The part of the agent that a note is about, and the session key if it is about one session. */
export interface Note {
  readonly source: IndexKind;
  readonly sessionKey?: string;
  readonly text: string;
}
/** Limit of texts per pass: on the edge the clock does not advance without I/O, so a time limit is not enough. */
const MAX_TEXTS = 50_000;
/** The longest text of a message or a memory that is one text of the index. */
export const MESSAGE_PIECE_CHARS = 4_000;

export class Pass {
  readonly folder: string;
  readonly ports: CatchUpPorts;
  readonly #enough: () => boolean;
  readonly #notes: Note[] = [];
  #hasFailed = false;
  #taken = 0;

  constructor(agentId: string, ports: CatchUpPorts, enough: () => boolean) {
    this.folder = agentFolder(agentId);
    this.ports = ports;
    this.#enough = enough;
  }

  /** Asked between steps: whether to stop. */
  enough(): boolean {
    return this.#taken >= MAX_TEXTS || this.#enough();
  }
  took(texts: number): void {
    this.#taken += texts;
  }
  get notes(): readonly Note[] {
    return this.#notes;
  }
  get hasFailed(): boolean {
    return this.#hasFailed;
  }
  note(source: IndexKind, text: string, sessionKey?: string): void {
    this.#notes.push({ source, text, ...(sessionKey === undefined ? {} : { sessionKey }) });
  }
  leftOver(source: IndexKind, count: number, what: string): void {
    if (count === 0) return;
    const are = count === 1 ? `${what} is` : `${what}s are`;
    this.note(source, `${count.toLocaleString("en-US")} ${are} not indexed yet; search again.`);
  }
  /** An external failure: noted once per kind. */
  fail(source: IndexKind, text: string): void {
    this.#hasFailed = true;
    if (!this.#notes.some((note) => note.text === text)) this.note(source, text);
  }
}
