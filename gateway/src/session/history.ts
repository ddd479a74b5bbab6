/**
 * The conversation in memory, ready for the model: read from the log once in a life of the object, then only appended to, so
 * that a message costs the same after ten as after two thousand. Memory only: the log is the truth.
 */
import { isMediaBlock, type Message } from "../ports.ts";
import { isMessageRow, type LogRow, type MessageRow, seqSpan, type UserRow } from "./machine/log.ts";

export interface Cut {
  /** Where the conversation goes on. */
  readonly contextFrom: number;
  readonly trimmed: number;
  readonly kept: number;
}

export class History {
  #rows: LogRow[] = [];
  #messages: Message[] = [];
  /** For the next user message: what happened outside of the conversation. */
  #notes: string[] = [];

  /** Messages with recordings that nobody has turned into text yet. */
  #unheard = new Set<number>();

  /** Rows of the conversation in order. */
  constructor(rows: Iterable<LogRow> = []) {
    for (const row of rows) this.append(row);
  }
  append(row: LogRow): void {
    if (row.kind === "notice") {
      if (row.forModel === undefined) return;
      this.#rows.push(row);
      this.#notes.push(row.forModel);
      return;
    }
    this.#rows.push(row);
    if (row.kind === "user" && isUnheard(row)) this.#unheard.add(row.seq);
    this.#messages.push(row.kind === "user" && this.#notes.length > 0 ? withNotes(row.message, this.#notes.splice(0)) : row.message);
  }
  /** What the model gets. The list grows in place; nobody else may change it. */
  get messages(): readonly Message[] {
    return this.#messages;
  }
  /** The log's own rows, as archives and previews want them. */
  *messageRows(): IterableIterator<MessageRow> {
    for (const row of this.#rows) if (isMessageRow(row)) yield row;
  }
  find(seq: number): LogRow | undefined {
    return this.#rows.findLast((row) => row.seq === seq);
  }
  /** In order; usually none. */
  unheard(): readonly UserRow[] {
    if (this.#unheard.size === 0) return [];
    return this.#rows.filter((row): row is UserRow => row.kind === "user" && this.#unheard.has(row.seq));
  }
  /** A row has got another body. */
  amend(row: UserRow): void {
    this.#rebuild(this.#rows.map((old) => (old.seq === row.seq ? row : old)));
  }
  /** After a reset or compaction. */
  trimTo(contextFrom: number): void {
    this.#rebuild(this.#rows.filter((row) => row.seq >= contextFrom));
  }
  #rebuild(rows: readonly LogRow[]): void {
    this.#rows = [];
    this.#messages = [];
    this.#notes = [];
    this.#unheard = new Set();
    for (const row of rows) this.append(row);
  }
}
const isUnheard = ({ message: { content } }: UserRow): boolean =>
  typeof content !== "string" && content.some((block) => isMediaBlock(block) && block.type === "audio" && block.transcript === undefined);

function withNotes(message: Extract<Message, { role: "user" }>, notes: readonly string[]): Message {
  const text = notes.map((note) => `[Note from the system, not from the user: ${note}]`).join("\n");
  const content =
    typeof message.content === "string" ? `${text}\n\n${message.content}` : [{ type: "text" as const, text }, ...message.content];
  return { ...message, content };
}

/**
 * Where to cut so that at least `keep` of these messages stay: always before a user message, so that no call is ever parted from
 * its result. `from` and `upto` are the archive's borders.
 */
export function cutFor(rows: readonly MessageRow[], keep: number, from: number, upto: number): Cut {
  if (keep === 0) return { contextFrom: upto + 1, trimmed: rows.length, kept: 0 };
  const latest = Math.max(0, rows.length - keep);
  for (let index = latest; index > 0; index--) {
    const before = rows[index - 1];
    // Notices just before the user message belong to it, so the cut is right after the last message that goes.
    if (rows[index]?.kind === "user" && before)
      return { contextFrom: before.seq + seqSpan(before), trimmed: index, kept: rows.length - index };
  }
  return { contextFrom: from, trimmed: 0, kept: rows.length };
}
