/** Until when the gateway's word counts that a message of an agent may leave (rule ST9). PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";

/** `askFrom` of a message that is handed over now. */
export const channelWord = (now: number, isStopped: boolean): number => (isStopped ? now : now + LIMITS.channelWordMs);
