/** The record of one run for the export of traces: its story, and its texts when the owner exports them (rule OT6). Reads the log only. */
import { asRunId } from "../../../protocol/gen/types.ts";
import { textOf } from "../ports/messages.ts";
import type { Result } from "../ports/result.ts";
import type { RecordWanted, RunRecord, RunTexts } from "../ports/session.ts";
import type { LogRow } from "./machine/log.ts";
import type { State } from "./machine/state.ts";
import { head } from "./machine/text.ts";
import { rowsOf, storyOf } from "./story-view.ts";
import type { SessionStore } from "./store/session-store.ts";

const TEXT_CHARS = 8_000;
/** Of all texts of a run. What is beyond is left out. */
const ALL_CHARS = 1_000_000;

export function recordOf(state: State, store: SessionStore, { runId, texts }: RecordWanted): Result<RunRecord> {
  const story = storyOf(state, store, { runId: asRunId(runId) });
  if (!story.ok) return story;
  const { agentId } = state.identity;
  return { ok: true, value: { story: story.value, agentId, ...(texts ? { texts: textsOf(rowsOf(state, store, runId)) } : {}) } };
}

function textsOf(rows: readonly LogRow[]): RunTexts {
  let left = ALL_CHARS;
  const taken = (text: string): string => {
    const shown = head(text, Math.min(TEXT_CHARS, left));
    left -= shown.length;
    return shown;
  };
  const input: string[] = [];
  const answers: Record<string, string> = {};
  const calls: Record<string, { args?: unknown; result?: string }> = {};
  for (const row of rows) {
    if (left <= 0) break;
    if (row.kind === "user") input.push(taken(textOf(row.message.content)));
    if (row.kind === "toolResult") calls[row.callId] = { ...calls[row.callId], result: taken(textOf(row.message.content)) };
    if (row.kind !== "assistant") continue;
    answers[String(row.step)] = taken(textOf(row.message.content));
    const blocks = row.message.content.filter((block) => block.type === "toolCall");
    for (const [index, { callId }] of row.calls.entries()) {
      const args = blocks[index]?.arguments ?? {};
      const size = JSON.stringify(args).length;
      // Cut JSON could not be redacted by the names of its fields.
      if (size > Math.min(TEXT_CHARS, left)) continue;
      left -= size;
      calls[callId] = { args };
    }
  }
  return { input: input.join("\n\n"), answers, calls };
}
