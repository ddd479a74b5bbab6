/** What holds of the rows of a log after each commit, and of every request to the model. */
import type { LogRow } from "../../src/session/machine/log.ts";

/** Each call has exactly one result before the next assistant message. The newest answer's calls may still be open. */
export function historyProblem(rows: readonly LogRow[]): string | undefined {
  const open = new Set<string>();
  const answered = new Set<string>();
  for (const row of rows) {
    if (row.kind === "user" && open.size > 0) return `the user row ${row.seq} stands between a call and its result`;
    if (row.kind === "assistant") {
      if (open.size > 0) return `the answer ${row.seq} came before the results of ${[...open].join(", ")}`;
      for (const call of row.calls) open.add(call.callId);
    }
    if (row.kind === "toolResult") {
      if (answered.has(row.callId)) return `the call ${row.callId} has two results`;
      if (!open.delete(row.callId)) return `the row ${row.seq} is a result for ${row.callId}, which is not open`;
      answered.add(row.callId);
    }
  }
  return undefined;
}
