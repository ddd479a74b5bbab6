/**
 * Other conversations, as tools: which there are, and a message to one of them. For the owner's own conversations only. The gateway
 * does the rest: it marks the message, takes it once for a call, and cuts chains of conversations that write to each other.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { bad, integer, optional, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

const MAX_KEY_CHARS = 512;
/** Leaves room for the mark around it, whatever the alphabet. */
const MAX_MESSAGE_CHARS = Math.floor(LIMITS.messageBytes / 4);
const MAX_WAIT_S = 120;
/** Over the longest wait: the call must not be given up before it is answered. */
const SEND_TIMEOUT_MS = (MAX_WAIT_S + 30) * 1_000;

export const SESSION_TOOLS: readonly Tool[] = [
  tool(
    "gsv__SessionsList",
    "Lists conversations, the last active first.",
    { limit: { type: "integer", description: "At most this many; 20 when absent." } },
    [],
    { limit: optional(integer(1, LIMITS.pageItems)) },
    async ({ limit }, { gateway }) => ({ ok: true, result: { sessions: await gateway.sessionsList(limit ?? 20) } }),
  ),
  tool(
    "gsv__SessionSend",
    "Sends a message to another conversation of yours, where it is answered as a message from you and not from the user. With `waitSeconds` you get the answer to it; without, it is only handed over.",
    {
      sessionKey: { type: "string", description: "As gsv__SessionsList shows it." },
      message: { type: "string" },
      waitSeconds: { type: "integer", description: `Wait up to this long for the answer, at most ${MAX_WAIT_S}; absent: don't wait.` },
    },
    ["sessionKey", "message"],
    { sessionKey: text(MAX_KEY_CHARS), message: text(MAX_MESSAGE_CHARS), waitSeconds: optional(integer(0, MAX_WAIT_S)) },
    async ({ sessionKey, message, waitSeconds }, { identity, callId, origin, gateway }) => {
      if (message.trim() === "") return bad("`message` is empty.");
      return outcome(
        await gateway.sendToSession({ from: identity, callId, origin, to: sessionKey, message, waitMs: (waitSeconds ?? 0) * 1_000 }),
        (sent) =>
          sent.status === "running"
            ? { ...sent, note: "It has not been answered yet. The answer will stand in that conversation; gsv__Search finds it." }
            : sent,
      );
    },
    { timeoutMs: SEND_TIMEOUT_MS },
  ),
];
