/** Identifiers. Each is opaque to every program except the one that made it. */
import { enumOf, id } from "./dsl.ts";

export const SessionKey = id(
  "SessionKey",
  "Canonical name of a conversation, `agent:{agentId}:...` (SPEC.md, session keys). Any alias is accepted from callers and canonicalised at the gateway's edge.",
  { maxLength: 512 },
);
export const RunId = id("RunId", "One run of the agent loop. Chosen by the client that started it, else made by the gateway.");
export const MessageId = id(
  "MessageId",
  "Idempotency key of one inbound message, made by its sender. The same id in the same session starts at most one turn.",
);
export const CallId = id(
  "CallId",
  "One tool call, `{sessionRef}/{run}/{step}/{index}`. Made by the session, never by the model; unique across sessions and gateways, so that a node can promise to start it at most once.",
);
export const NodeId = id("NodeId", "A machine's name, the prefix of its tools.", {
  maxLength: 64,
  pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
});
export const ClientId = id("ClientId", "One client program's name. A second connection with the same id replaces the first.");
export const AgentId = id("AgentId", "An agent's name: at most 64 of `[a-z0-9_-]`.", { maxLength: 64, pattern: "^[a-z0-9_-]+$" });
export const TokenId = id("TokenId", "The public part of a token, by which it is listed and revoked.", { maxLength: 32 });
export const ToolName = id("ToolName", "A tool as the model sees it: `{nodeId}__{Tool}` on a machine, `gsv__{Tool}` in the gateway.", {
  maxLength: 192,
});

export const Mode = enumOf("Mode", "What a connection is.", ["client", "node", "channel"]);
export const ThinkLevel = enumOf("ThinkLevel", "How much a model may think before it answers.", [
  "none",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
]);
export const Capability = id(
  "Capability",
  "A capability of a machine: `filesystem.list`, `filesystem.read`, `filesystem.write`, `filesystem.edit`, `text.search`, `shell.exec`, or a later addition.",
  { maxLength: 64 },
);
