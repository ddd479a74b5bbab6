/** `search.query`: finding text in files, conversations and transcripts of an agent. For clients that may operate. */
import { findText } from "./find-text.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";
import { conversation, unknownAgent } from "../sessions/session-key.ts";

const query: Handler<"search.query"> = (services, _caller, params) => {
  const { sources, limit, offset } = params;
  const found = params.sessionKey === undefined ? undefined : conversation(services, params.sessionKey);
  if (found !== undefined && !found.ok) return found;
  const agentId = params.agentId ?? found?.value.address.agentId ?? services.config.defaultAgentId();
  if (found !== undefined && found.value.address.agentId !== agentId)
    return fail("session.bad_key", `The session ${found.value.key} is not one of the agent ${agentId}.`);
  // What an agent that was taken away has said can still be found.
  if (!services.config.hasAgent(agentId) && services.sessions.ofAgent(agentId, "", 1).length === 0) return unknownAgent(services, agentId);
  return findText(services, {
    agentId,
    query: params.query,
    ...(sources === undefined ? {} : { sources }),
    ...(found === undefined ? {} : { sessionKey: found.value.key }),
    ...(limit === undefined ? {} : { limit }),
    ...(offset === undefined ? {} : { offset }),
  });
};

export const searchMethods = { "search.query": query } as const satisfies Handlers;
