/**
 * `gsv__SessionsList` and `gsv__SessionSend`: the agent's other sessions. Only for the owner's sessions. The gateway marks the message,
 * accepts it once for a call id, and limits chains of sessions that write to each other.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { bad, integer, optional, text } from "../../tools/arguments.ts";
import { type Outcome, type Tool, tool } from "../../tools/tool.ts";

const MAX_KEY_CHARS = 512;
/** A quarter of the limit in bytes, so that the message and its mark fit in any alphabet. */
const MAX_MESSAGE_CHARS = Math.floor(LIMITS.messageBytes / 4);
const MAX_WAIT_S = 120;
/** Longer than the longest wait, so that the call does not time out before its answer. */
const SEND_TIMEOUT_MS = (MAX_WAIT_S + 30) * 1_000;

/** A result in which nothing is from the other conversation. */
const ok = (result: unknown): Outcome => ({ ok: true, result, taint: { label: "self", source: "the output of gsv__SessionSend" } });

export const SESSION_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__SessionsList",
      description: "Lists conversations, the last active first.",
      policyClass: "read_private",
      properties: { limit: { type: "integer", description: "Default 20." } },
    },
    { limit: optional(integer(1, LIMITS.pageItems)) },
    async ({ limit }, { gateway }) => ({ ok: true, result: { sessions: await gateway.sessionsList(limit ?? 20) } }),
  ),
  tool(
    {
      name: "gsv__SessionSend",
      description: "Sends a message to another conversation of yours, which answers it there. With `waitSeconds` you get the answer.",
      policyClass: "egress",
      properties: {
        sessionKey: { type: "string", description: "As gsv__SessionsList shows it." },
        message: { type: "string" },
        waitSeconds: {
          type: "integer",
          description: `At most ${MAX_WAIT_S}.`,
        },
      },
      timeoutMs: SEND_TIMEOUT_MS,
    },
    { sessionKey: text(MAX_KEY_CHARS), message: text(MAX_MESSAGE_CHARS), waitSeconds: optional(integer(0, MAX_WAIT_S)) },
    async ({ sessionKey, message, waitSeconds }, { identity, callId, origin, taint, gateway }) => {
      if (message.trim() === "") return bad("`message` is empty.");
      const waitMs = (waitSeconds ?? 0) * 1_000;
      const sent = await gateway.sendToSession({ from: identity, callId, origin, taint, to: sessionKey, message, waitMs });
      if (!sent.ok) return sent;
      const { value } = sent;
      switch (value.status) {
        case "answered": {
          const { taint: heard, ...result } = value;
          return { ok: true, result, taint: heard };
        }
        case "running":
          return ok({ ...value, note: "There is no answer yet. It will appear in that conversation; gsv__Search finds it." });
        case "accepted":
          return ok(value);
        case "failed":
          return { ok: true, result: value };
      }
    },
  ),
];
