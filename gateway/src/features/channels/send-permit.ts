/** The send permit that a message of an agent takes to its channel (rule ST9). PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";

/** The end of the permit (`askFrom`) of a message that is handed over now. */
export const permitEnd = (now: number, isStopped: boolean): number => (isStopped ? now : now + LIMITS.sendPermitMs);
