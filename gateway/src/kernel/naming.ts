/** Checks session keys and agent ids of callers against the configuration. Every method that takes one of them uses this file. */
import type { Result } from "../ports/result.ts";
import type { NamedSession } from "../ports/sessions.ts";
import { nearest } from "./config/paths.ts";
import type { Config } from "./config/store.ts";
import { fail, succeed } from "./outcome.ts";
import { canonicalKey } from "./routing/session-keys.ts";

type Names = Pick<Config, "mainKey" | "defaultAgentId">;
type Agents = Pick<Config, "agents">;

/** A key without an agent belongs to the default agent. */
export function namedSession(config: Names, raw: string): Result<NamedSession> {
  const outcome = canonicalKey(raw, config.mainKey(), config.defaultAgentId());
  return outcome.ok
    ? succeed({ key: outcome.key, address: outcome.address })
    : fail("session.bad_key", `This is not a session key: ${outcome.problem}.`);
}

/** A session that may be written to: its agent exists. Sessions of an agent that was removed can only be read. */
export function writableSession(config: Names & Agents & Pick<Config, "hasAgent">, raw: string): Result<NamedSession> {
  const found = namedSession(config, raw);
  if (!found.ok || config.hasAgent(found.value.address.agentId)) return found;
  return unknownAgent(config, found.value.address.agentId);
}

export function unknownAgent(config: Agents, agentId: string): Result<never> {
  const ids = config.agents().map((agent) => agent.id);
  const meant = nearest(agentId, ids);
  const known = ids.length <= 8 ? ids.join(", ") : `${ids.slice(0, 8).join(", ")} and ${ids.length - 8} more`;
  return fail(
    "agent.unknown",
    `There is no agent ${agentId}.`,
    `${meant === undefined ? `Agents: ${known}.` : `Did you mean ${meant}?`} Create it with \`gsv agent new ${agentId}\`.`,
  );
}
