/**
 * Memories of a conversation that others have written into (rule TA12): the tools that write memory keep them for the owner's review
 * instead. What the owner has allowed with its change before their eyes is written.
 */
import type { NativeToolContext } from "../ports/native-tools.ts";
import type { Result } from "../ports/result.ts";
import { isForeign, taintText } from "../ports/taint.ts";
import { parsePath } from "../storage/keys.ts";
import { isMemory } from "../storage/workspace/protection.ts";
import type { Outcome } from "./tool.ts";

export function goesToQuarantine(given: string, { taint, expect }: Pick<NativeToolContext, "taint" | "expect">): boolean {
  const path = parsePath(given);
  return path.ok && isForeign(taint) && expect === undefined && isMemory(path.value);
}
/** Tells the model and the people who follow the conversation where the memory is. */
export function quarantined({ taint }: Pick<NativeToolContext, "taint">, path: string, kept: Result<{ readonly id: string }>): Outcome {
  if (!kept.ok) return kept;
  const { id } = kept.value;
  const why = taint === undefined ? "" : ` (${taintText(taint)})`;
  const because = `because others may have written what this conversation has read${why}`;
  return {
    ok: true,
    result: {
      quarantined: id,
      path,
      note: `Nothing was written to ${path}: the memory waits in quarantine, ${because}. Tell your human in one sentence that \`gsv memory review\` shows it and keeps or drops it.`,
    },
    note: `A memory for ${path} waits in quarantine as ${id}, ${because}. See it, and keep or drop it: \`gsv memory review\`.`,
  };
}
