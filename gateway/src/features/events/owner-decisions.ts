/** The owner's decision of an event, however it was given, and its record (rules EV7 and EV8). */
import { isNoWord } from "../../events/expiry.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ApprovalTaken } from "../../ports/approvals.ts";
import type { Result } from "../../ports/result.ts";
import type { Decided, EventLog, EventRow } from "./d1-store.ts";
import type { EventKeeper } from "./keeper.ts";

/** What is loaded with the first call. */
export interface EventParts {
  readonly events: EventLog;
  readonly keeper: EventKeeper;
}
type Audited = Pick<KernelPorts, "audit">;
export type Load = () => Promise<Result<EventParts>>;
export type Decide = (id: string, decided: Decided) => Promise<Result<EventRow>>;
/** The owner's word, however it was given. */
export const ownerDecision =
  ({ audit }: Audited, load: Load): Decide =>
  async (id, decided) => {
    const parts = await load();
    if (!parts.ok) return parts;
    const done = await parts.value.keeper.resolve(id, decided);
    recordDecision({ audit }, id, decided, done.ok);
    return done;
  };
export function recordDecision({ audit }: Audited, id: string, { by, decision }: Decided, isDone: boolean): void {
  const entry = { actor: by, action: "events.resolve", target: id, detail: decision } as const;
  audit.append({ ...entry, decision: isDone ? "allowed" : "failed" });
}
export function takenOf({ decision, decidedBy }: EventRow): ApprovalTaken & { readonly outcome: "allowed" | "denied" | "expired" } {
  const outcome = decision === "approve" ? "allowed" : isNoWord(decidedBy) ? "expired" : "denied";
  return { outcome, ...(decidedBy === undefined ? {} : { by: decidedBy }) };
}
