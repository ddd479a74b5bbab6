/** The label of the conversation: it rises with what enters the context, and falls only by a reset and by the owner's word (TA2). PURE. */
import { unknownResult } from "../../../policy/taint.ts";
import { higher, OWNER, type Taint, type TaintLabel } from "../../../ports/taint.ts";
import { appendNotice, type Draft, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import type { Archiving } from "../state.ts";

/** Notes the label of a text that enters the context. Returns it for the row; absent for the owner's own words, which need none. */
export function heard(d: Draft, taint: Taint): { readonly taint?: TaintLabel } {
  const before = d.state.taint ?? OWNER;
  const now = higher(before, taint);
  if (now !== before) d.state.taint = now;
  const { run } = d.state;
  // Texts that come after the beginning of a reset stay in the fresh conversation.
  if (run.phase === "archiving" && run.kind === "reset") d.state.run = { ...run, heardSince: higher(run.heardSince ?? OWNER, taint) };
  return taint.label === "owner" ? {} : { taint: taint.label };
}
/** `stated`: a native tool said it with its result. `planned`: what the call's tool gives at most. */
export const heardResult = (d: Draft, name: string, stated: Taint | undefined, planned: Taint | undefined): ReturnType<typeof heard> =>
  heard(d, stated ?? planned ?? unknownResult(name));

/** A fresh conversation knows nothing of the old one. */
export function forget(d: Draft, { heardSince }: Archiving): void {
  if (heardSince === undefined || heardSince.label === "owner") delete d.state.taint;
  else d.state.taint = heardSince;
}

/** The owner has looked at what the conversation has read, and vouches for it. */
export function trusted(d: Draft, { text }: EventOf<"Trusted">): void {
  take(d, "trusted");
  delete d.state.taint;
  const { run } = d.state;
  if (run.phase === "archiving" && run.heardSince !== undefined) {
    const { heardSince: _trusted, ...rest } = run;
    d.state.run = rest;
  }
  appendNotice(d, { notice: "settings", runId: "", text });
  d.answer = { type: "patched" };
}
