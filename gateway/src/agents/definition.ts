/** What an agent's definition gives and takes (rules AD6, AD7, EV13). PURE. How an agent.yaml is read: read-definition.lazy.ts. */
import type { AgentDefinition, EscalationCause } from "../../../protocol/gen/types.ts";
import { RECALL, REMEMBER } from "../tools/memory-tools.ts";
import { delegationTool } from "./delegation.ts";

export const EMIT = "emit_event";
export const REPORT_LOW_CONFIDENCE = "report_low_confidence";

/** The topic of the event that this cause emits. */
export const escalationOf = (definition: Pick<AgentDefinition, "escalation"> | undefined, cause: EscalationCause): string | undefined =>
  definition?.escalation?.find(({ when }) => when === cause)?.to;
/** Whether an entry of `tools.allowed` names the tool. */
export const allows = (entry: string, tool: string): boolean =>
  entry.endsWith("*") ? tool.startsWith(entry.slice(0, -1)) : tool === entry;
export const isListed = (list: readonly string[] | undefined, tool: string): boolean => list?.some((entry) => allows(entry, tool)) === true;
/** Without a definition, and without `tools` in it, every tool but those that a field of the definition gives. */
export function isAllowed(
  definition: Pick<AgentDefinition, "tools" | "sub_agents" | "memory_config" | "events" | "escalation"> | undefined,
  tool: string,
): boolean {
  const hasLongTerm = definition?.memory_config?.long_term_enabled === true;
  // The agent without a definition has MEMORY.md and its daily files instead (rule LM5).
  if (tool === REMEMBER) return hasLongTerm;
  // Without a topic there is nothing to emit (rule EV1).
  if (tool === EMIT) return (definition?.events?.emit ?? []).length > 0;
  // Without an escalation there is no one to report it to (rule EV13).
  if (tool === REPORT_LOW_CONFIDENCE) return escalationOf(definition, "low_confidence") !== undefined;
  if (tool === RECALL && hasLongTerm) return true;
  if (definition?.sub_agents?.some((name) => tool === delegationTool(name)) === true) return true;
  return definition?.tools === undefined || isListed(definition.tools.allowed, tool);
}
