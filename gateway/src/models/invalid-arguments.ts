/** What a call's arguments are when the model did not write a JSON object. PURE: constants that the model client, tools and sessions share. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/**
 * The only field of such arguments: the text that the model wrote, cut. The tool must not run; the model is told that its arguments were
 * invalid.
 */
export const INVALID_ARGUMENTS = "$invalidArguments";
/** A deeper value would fit no frame, so the conversation could not be read. */
export const MAX_DEPTH = LIMITS.valueDepth + 2;
