/** What packs read the answers of services with. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { nestsDeeper } from "../../../protocol/runtime/codec.ts";

export { readBounded } from "../storage/read-bounded.ts";

/** Before a text is parsed. */
export const isTooDeep = (text: string): boolean => nestsDeeper(text, LIMITS.valueDepth);
export const TOO_DEEP = `The answer is nested more than ${LIMITS.valueDepth} levels deep.`;
