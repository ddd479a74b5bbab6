/** What is recorded in place of the owner when an event was decided without them: the owner did not answer in time, or its agent was deleted. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/** In the place of the owner, who has not decided in time. */
export const NO_ONE = `no one, in ${LIMITS.eventWaitDays} days`;
/** The agent was deleted before the owner decided. */
export const AGENT_GONE = "the deletion of its agent";
/** It was not the owner's word. */
export const isNoWord = (by: string | undefined): boolean => by === NO_ONE || by === AGENT_GONE;
