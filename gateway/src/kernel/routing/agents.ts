/**
 * The list of agents. `main` always exists, listed or not; exactly one agent is the default one: the first with `default`, else `main`.
 * PURE.
 */
import { type AgentConfig, asAgentId } from "../../../../protocol/gen/types.ts";

export const MAIN_AGENT = asAgentId("main");

export function defaultAgentOf(list: readonly AgentConfig[] | undefined): AgentConfig["id"] {
  return list?.find((agent) => agent.default === true)?.id ?? MAIN_AGENT;
}

/** The default one first, then as they are listed. */
export function agentsOf(list: readonly AgentConfig[] | undefined): readonly AgentConfig[] {
  const listed = list ?? [];
  const all = listed.some((agent) => agent.id === MAIN_AGENT) ? listed : [{ id: MAIN_AGENT }, ...listed];
  const first = defaultAgentOf(list);
  return [...all.filter((agent) => agent.id === first), ...all.filter((agent) => agent.id !== first)];
}

/** The list with one more agent. With `default`, it alone is the default one. */
export function withAgent(list: readonly AgentConfig[] | undefined, agent: AgentConfig): readonly AgentConfig[] {
  const others = (list ?? []).map((other) => {
    if (agent.default !== true || other.default === undefined) return other;
    const { default: _was, ...rest } = other;
    return rest;
  });
  return [...others, agent];
}
