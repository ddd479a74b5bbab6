/** What a session was doing when it accepted a message, as its store saw it. */
import type { Origin } from "../../src/ports/origin.ts";
import type { Step } from "../../src/session/machine/draft.ts";
import { activeRun, type State } from "../../src/session/machine/state.ts";

export type Owner = "owner" | "guest" | "machine";
const ownerOf: Readonly<Partial<Record<Origin["kind"], Owner>>> = { client: "owner", channel: "guest" };

export interface Acceptance {
  /** Undefined: no run that could be steered was under way. */
  readonly run: { readonly runId: string; readonly step: number; readonly of: Owner } | undefined;
  readonly held: boolean;
  /** The message entered the log in the same transaction. */
  readonly entered: boolean;
}
export function acceptanceOf(before: State | undefined, { append }: Step, messageId: string): Acceptance {
  const run = before === undefined || before.run.phase === "paused" ? undefined : activeRun(before.run);
  return {
    run: run && { runId: run.runId, step: run.step, of: ownerOf[run.origin.kind] ?? "machine" },
    held: before?.held === true,
    entered: append.some((row) => row.kind === "user" && row.messageId === messageId),
  };
}
