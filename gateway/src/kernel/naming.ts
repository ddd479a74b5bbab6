/** Checks session keys and agent ids of callers against the configuration. Every method that takes one of them uses this file. */
import { type Result, succeed } from "../ports/result.ts";
import type { NamedSession, SessionDirectory } from "../ports/sessions.ts";
import { nearest } from "../../../protocol/runtime/nearest.ts";
import type { Config } from "./config/store.ts";
import { fail } from "./outcome.ts";
import { buildKey, canonicalKey, type KeyOutcome } from "./routing/session-keys.ts";

type Names = Pick<Config, "mainKey" | "defaultAgentId">;
type Agents = Pick<Config, "agents">;

/** A name that a person gives a conversation of the command line. Nothing in it has to be encoded. */
const FREE_NAME = /^[A-Za-z0-9][A-Za-z0-9+\-_@.]{0,127}$/;
/** An id that is safe to paste into a shell, and no option of a command. */
const AGENT_ID = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** A session by its key. A key without an agent belongs to the default agent. */
export function keyedSession(config: Names, raw: string): Result<NamedSession> {
  return named(canonicalKey(raw, config.mainKey(), config.defaultAgentId()));
}
/**
 * A session as a client names it: by its key; by its key without `agent:{agent}:`, which is the default agent's; or by a free name, which is
 * a conversation of the command line with the default agent.
 */
export function namedSession(config: Names, raw: string): Result<NamedSession> {
  const keyed = keyedSession(config, raw);
  const name = raw.trim();
  if (keyed.ok) return keyed;
  const agentId = config.defaultAgentId();
  if (name.includes(":") && !/^agent:/iu.test(name)) {
    const completed = keyedSession(config, `agent:${agentId}:${name}`);
    return completed.ok ? completed : keyed;
  }
  if (!FREE_NAME.test(name)) return keyed;
  return named(buildKey({ form: "channel", agentId, channel: "cli", kind: "dm", peer: name }, config.mainKey()));
}
const named = (outcome: KeyOutcome): Result<NamedSession> =>
  outcome.ok
    ? succeed({ key: outcome.key, address: outcome.address })
    : fail("session.bad_key", `This is not the key of a conversation: ${outcome.problem}.`);

/** A session that may be written to: its agent exists. Sessions of an agent that was removed can only be read. */
export function writableSession(config: Names & Agents & Pick<Config, "hasAgent">, raw: string): Result<NamedSession> {
  const found = namedSession(config, raw);
  if (!found.ok || config.hasAgent(found.value.address.agentId)) return found;
  return unknownAgent(config, found.value.address.agentId);
}

/** A session that exists, that is, one that has had a message. */
export function existingSession(config: Names, sessions: Pick<SessionDirectory, "find">, raw: string): Result<NamedSession> {
  const found = namedSession(config, raw);
  if (!found.ok || sessions.find(found.value.key) !== undefined) return found;
  const meant = atCommandLine(config, found.value, raw);
  return fail(
    "session.not_found",
    `There is no conversation ${found.value.key}.`,
    meant !== undefined && sessions.find(meant.key) !== undefined
      ? `Did you mean \`${meant.shown}\`?`
      : "A conversation begins with its first message. List the conversations: `gsv session list`.",
  );
}
/** The conversation of the command line with the name of a main conversation: `main` is a name of both. */
function atCommandLine(
  config: Names,
  { address }: NamedSession,
  raw: string,
): { readonly key: string; readonly shown: string } | undefined {
  const peer = raw.trim().split(":").at(-1) ?? "";
  if (address.form !== "main" || !FREE_NAME.test(peer)) return undefined;
  const { agentId } = address;
  const built = buildKey({ form: "channel", agentId, channel: "cli", kind: "dm", peer }, config.mainKey());
  if (!built.ok) return undefined;
  return { key: built.key, shown: agentId === config.defaultAgentId() ? `cli:dm:${peer}` : built.key };
}

/** `offPack`: a sentence about the pack that has this agent and is off. */
export function unknownAgent(config: Agents, agentId: string, offPack?: string): Result<never> {
  if (offPack !== undefined) return fail("agent.unknown", `There is no agent ${agentId} now.`, offPack);
  const ids = config.agents().map((agent) => agent.id);
  // The name in a definition, with which tasks are given to it.
  const named = ids.find((id) => id === `agent-${agentId}`);
  if (named !== undefined) return fail("agent.unknown", `${agentId} is the name of an agent, and not its id.`, `Use its id: ${named}.`);
  const meant = nearest(agentId, ids);
  const known = ids.length <= 8 ? ids.join(", ") : `${ids.slice(0, 8).join(", ")} and ${ids.length - 8} more`;
  // The text comes from the caller, and the command is pasted into a shell.
  const create = AGENT_ID.test(agentId) ? ` Create it with \`gsv agent new ${agentId}\`.` : "";
  return fail(
    "agent.unknown",
    `There is no agent ${agentId}.`,
    `${meant === undefined ? `Agents: ${known}.` : `Did you mean ${meant}?`}${create}`,
  );
}
