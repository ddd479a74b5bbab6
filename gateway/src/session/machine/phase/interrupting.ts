/** What a message does to the run that is under way: steer it, or stop it and be answered next (gateway/spec/steering.md). PURE. */
import { isPlainlyOwner, sameAuthority } from "../../../ports/origin.ts";
import { type Draft, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { activeRun, type IncomingMessage, type RunCore } from "../state.ts";
import { stopCompaction } from "./archiving.ts";
import { endByAbort } from "./ending.ts";

const INTERRUPTED = "Stopped by the user, who sent another message.";

type Sent = Pick<EventOf<"UserMessage">, "incoming" | "whileBusy">;

/** The run that the message may steer or interrupt. Not a paused run: any message ends it (rule SP10). */
function runOf({ state }: Draft, { incoming }: Sent): RunCore | undefined {
  return state.run.phase === "paused" || incoming.quiet === true ? undefined : activeRun(state.run);
}
/** The run that is to be shown the message. */
export function steers(d: Draft, sent: Sent): RunCore | undefined {
  const run = sent.whileBusy === "steer" ? runOf(d, sent) : undefined;
  return run && sameAuthority(run.origin, sent.incoming.origin) ? run : undefined;
}
/** The owner may stop any run. */
const mayStop = (run: RunCore, { origin }: IncomingMessage): boolean => isPlainlyOwner(origin) || sameAuthority(run.origin, origin);

/** Ends the run in whose place the message is answered. Returns its id. */
export function interrupts(d: Draft, sent: Sent): string | undefined {
  const found = sent.whileBusy === "interrupt" ? runOf(d, sent) : undefined;
  const { run } = d.state;
  if (found === undefined || !mayStop(found, sent.incoming)) return undefined;
  if (run.phase === "archiving") stopCompaction(d, run, INTERRUPTED);
  else if (run.phase === "thinking" || run.phase === "acting") {
    take(d, "runInterrupted");
    endByAbort(d, run, INTERRUPTED);
  }
  return found.runId;
}
