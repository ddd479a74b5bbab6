/** Who decides on an event when the owner does not. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/** In the place of the owner, who has not decided in time. */
export const NO_ONE = `no one, in ${LIMITS.eventWaitDays} days`;
