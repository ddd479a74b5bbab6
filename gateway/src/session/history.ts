/**
 * The conversation in memory, in the form for the model. Each incarnation reads it from the log once and then only appends, so that the
 * cost of a message does not grow with the conversation. The summary of archived messages comes first. A cache: the log and the state
 * are authoritative.
 */
import { tokensOfMessage } from "../models/estimate.ts";
import { isMediaBlock, type Message } from "../ports/messages.ts";
import { isMessageRow, type LogRow, type MessageRow, type UserRow } from "./machine/log.ts";
import type { Summary } from "./machine/state.ts";
import type { Weighed } from "./pressure.ts";
import { summaryMessage } from "./view.ts";

/** A message as the model gets it, the row that it is from, and what it costs. */
export interface Item extends Weighed {
  readonly message: Message;
  /** Tokens of this one and of all before it. */
  readonly upto: number;
  /** The message belongs to a run that the model's history leaves out. */
  readonly hidden?: true;
}

export class History {
  #rows: LogRow[] = [];
  #items: Item[] = [];
  /** The messages for the model, with the summary, which is not among the items. */
  #messages: Message[] = [];
  #summary: Message | undefined;
  /** For the next user message: what happened outside of the conversation. */
  #notes: string[] = [];

  /** Notes that a run's message took with it: they come again when the run is left out. */
  #taken: { readonly runId: string; readonly notes: readonly string[] } | undefined;
  /** Messages with recordings that are not transcribed yet. */
  #untranscribed = new Set<number>();
  #hasMedia = false;

  /** Rows of the conversation in order. */
  constructor(rows: Iterable<LogRow> = [], summary?: Summary) {
    this.#begin(rows, summary && summaryMessage(summary));
  }
  #begin(rows: Iterable<LogRow>, summary: Message | undefined): void {
    this.#rows = [];
    this.#items = [];
    this.#notes = [];
    this.#taken = undefined;
    this.#untranscribed = new Set();
    this.#hasMedia = false;
    this.#summary = summary;
    this.#messages = summary ? [summary] : [];
    for (const row of rows) this.append(row);
  }
  append(row: LogRow): void {
    if (row.kind === "notice") {
      if (row.forModel === undefined) return;
      this.#rows.push(row);
      // The same words say no more when they come again before the next message.
      if (!this.#notes.includes(row.forModel)) this.#notes.push(row.forModel);
      return;
    }
    this.#rows.push(row);
    if (row.kind === "user" && isUntranscribed(row)) this.#untranscribed.add(row.seq);
    this.#hasMedia ||= row.kind !== "assistant" && typeof row.message.content !== "string" && row.message.content.some(isMediaBlock);
    const notes = row.kind === "user" ? this.#notes.splice(0) : [];
    if (row.kind === "user") this.#taken = { runId: row.runId, notes };
    const message = row.kind === "user" && notes.length > 0 ? withNotes(row.message, notes) : row.message;
    const tokens = tokensOfMessage(message);
    this.#items.push({ row, message, tokens, upto: (this.#items.at(-1)?.upto ?? 0) + tokens });
    this.#messages.push(message);
    if (row.kind === "assistant" && row.swallowed === true) this.#leaveOut(row.runId);
  }
  /** The rows stay, for archives; the model reads none of them. */
  #leaveOut(runId: string): void {
    let upto = 0;
    this.#items = this.#items.map((item) => {
      const isLeft = item.row.runId === runId || item.hidden === true;
      const tokens = isLeft ? 0 : item.tokens;
      upto += tokens;
      return { ...item, tokens, upto, ...(isLeft ? { hidden: true } : {}) };
    });
    const summary = this.#summary ? [this.#summary] : [];
    this.#messages = [...summary, ...this.#items.flatMap(({ hidden, message }) => (hidden === true ? [] : [message]))];
    if (this.#taken?.runId === runId) this.#notes.unshift(...this.#taken.notes);
    this.#taken = undefined;
  }
  /** The messages for the model. The list grows in place; callers must not change it. */
  get messages(): readonly Message[] {
    return this.#messages;
  }
  /** A message refers to a stored file. */
  get hasMedia(): boolean {
    return this.#hasMedia;
  }
  /** The messages of the conversation without the summary, in order. */
  get items(): readonly Item[] {
    return this.#items;
  }
  /** Estimated tokens of the messages and the summary. */
  get tokens(): number {
    return (this.#items.at(-1)?.upto ?? 0) + (this.#summary ? tokensOfMessage(this.#summary) : 0);
  }
  /** Estimated tokens of the messages after this row. */
  tokensAfter(seq: number): number {
    let low = 0;
    for (let high = this.#items.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((this.#items[middle]?.row.seq ?? 0) > seq) high = middle;
      else low = middle + 1;
    }
    return (this.#items.at(-1)?.upto ?? 0) - (this.#items[low - 1]?.upto ?? 0);
  }
  /** The log's own rows, as archives and previews want them. */
  *messageRows(): IterableIterator<MessageRow> {
    for (const row of this.#rows) if (isMessageRow(row)) yield row;
  }
  find(seq: number): LogRow | undefined {
    return this.#rows.findLast((row) => row.seq === seq);
  }
  /** In order; usually none. */
  untranscribed(): readonly UserRow[] {
    if (this.#untranscribed.size === 0) return [];
    return this.#rows.filter((row): row is UserRow => row.kind === "user" && this.#untranscribed.has(row.seq));
  }
  /** Replaces the body of a row. */
  amend(row: UserRow): void {
    const rows = this.#rows.map((old) => (old.seq === row.seq ? row : old));
    this.#begin(rows, this.#summary);
  }
  /** After a reset or compaction. */
  trimTo(contextFrom: number, summary?: Summary): void {
    this.#begin(
      this.#rows.filter((row) => row.seq >= contextFrom),
      summary && summaryMessage(summary),
    );
  }
}
const isUntranscribed = ({ message: { content } }: UserRow): boolean =>
  typeof content !== "string" && content.some((block) => isMediaBlock(block) && block.type === "audio" && block.transcript === undefined);

function withNotes(message: Extract<Message, { role: "user" }>, notes: readonly string[]): Message {
  const text = notes.map((note) => `[Note from the system, not from the user: ${note}]`).join("\n");
  const content =
    typeof message.content === "string" ? `${text}\n\n${message.content}` : [{ type: "text" as const, text }, ...message.content];
  return { ...message, content };
}
