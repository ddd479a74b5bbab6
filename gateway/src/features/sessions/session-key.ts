/** What every method that names a conversation does first. */
import { nearest } from "../../kernel/config/paths.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { canonicalKey, type SessionAddress } from "../../kernel/routing/session-keys.ts";
import type { Services } from "../../app/services.ts";

export interface Conversation {
  readonly key: string;
  readonly address: SessionAddress;
}

/** A key without an agent is the default agent's. */
export function conversation(services: Pick<Services, "config">, raw: string): Result<Conversation> {
  const outcome = canonicalKey(raw, services.config.mainKey(), services.config.defaultAgentId());
  return outcome.ok
    ? succeed({ key: outcome.key, address: outcome.address })
    : fail("session.bad_key", `This is not a session key: ${outcome.problem}.`);
}

export function unknownAgent(services: Pick<Services, "config">, agentId: string): Result<never> {
  const ids = services.config.agents().map((agent) => agent.id);
  const meant = nearest(agentId, ids);
  const there = ids.length <= 8 ? ids.join(", ") : `${ids.slice(0, 8).join(", ")} and ${ids.length - 8} more`;
  return fail(
    "agent.unknown",
    `There is no agent ${agentId}.`,
    `${meant === undefined ? `Agents: ${there}.` : `Did you mean ${meant}?`} Create it with \`gsv agent new ${agentId}\`.`,
  );
}

/** A conversation in which something may be said: its agent exists. Those of an agent that was taken away can only be read. */
export function addressable(services: Pick<Services, "config">, raw: string): Result<Conversation> {
  const found = conversation(services, raw);
  if (!found.ok || services.config.hasAgent(found.value.address.agentId)) return found;
  return unknownAgent(services, found.value.address.agentId);
}

/** A conversation that exists: somebody has written in it. */
export function existing(services: Pick<Services, "config" | "sessions">, raw: string): Result<Conversation> {
  const found = conversation(services, raw);
  if (!found.ok || services.sessions.find(found.value.key) !== undefined) return found;
  return fail(
    "session.not_found",
    `There is no session ${found.value.key}.`,
    "A session begins with its first message. List the sessions: `gsv session list`.",
  );
}
