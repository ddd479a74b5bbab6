/** The record of one run for the export of traces: its story, and its texts when the owner exports them (rule OT6). Reads the log only. */
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { textOf } from "../ports/messages.ts";
import type { Result } from "../ports/result.ts";
import type { RecordWanted, RunRecord, RunTexts } from "../ports/session.ts";
import type { LogRow } from "./machine/log.ts";
import type { State } from "./machine/state.ts";
import { rowsOf, storyIn } from "./story-view.ts";
import type { SessionStore } from "./store/session-store.ts";

/** A longer text is left out whole: a part of it could have a part of a secret, or JSON without the names of its fields. */
const TEXT_BYTES = 65_536;
/** Bytes of all texts of a run. */
const ALL_BYTES = 4_194_304;

export function recordOf(state: State, store: SessionStore, { runId, texts }: RecordWanted): Result<RunRecord> {
  const rows = rowsOf(state, store, runId);
  const story = storyIn(state, runId, rows);
  if (!story.ok) return story;
  const { agentId } = state.identity;
  return { ok: true, value: { story: story.value, agentId, ...(texts ? { texts: textsOf(rows) } : {}) } };
}

/** Each text is whole, or a mark that tells how long it is. The exporter hides secrets and cuts. */
export function textsOf(rows: readonly LogRow[]): RunTexts {
  let left = ALL_BYTES;
  const taken = <T>(given: T, text: string): T | string => {
    const bytes = utf8Bytes(text);
    if (bytes > Math.min(TEXT_BYTES, left)) return `[${text.length} characters]`;
    left -= bytes;
    return given;
  };
  const input: string[] = [];
  const answers: Record<string, string> = {};
  const calls: Record<string, { args?: unknown; result?: string }> = {};
  for (const row of rows) {
    if (row.kind !== "user" && row.kind !== "toolResult" && row.kind !== "assistant") continue;
    const text = textOf(row.message.content);
    if (row.kind === "user") input.push(taken(text, text));
    if (row.kind === "toolResult") calls[row.callId] = { ...calls[row.callId], result: taken(text, text) };
    if (row.kind !== "assistant") continue;
    answers[String(row.step)] = taken(text, text);
    const blocks = row.message.content.filter((block) => block.type === "toolCall");
    for (const [index, { callId }] of row.calls.entries()) {
      const args = blocks[index]?.arguments ?? {};
      calls[callId] = { args: taken(args, JSON.stringify(args)) };
    }
  }
  return { input: input.join("\n\n"), answers, calls };
}
