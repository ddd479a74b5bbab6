/** `gsv__Transfer`: the agent copies a file between machines and its workspace. Only for the owner's sessions. The gateway decides and runs it. */
import { flag, optional, text } from "../../tools/arguments.ts";
import { type Tool, tool } from "../../tools/tool.ts";
import { copyRefusal } from "./endpoint.ts";

/** The longest `NODE:PATH` of the contract. */
const MAX_ENDPOINT_CHARS = 4_160;
/** The call waits for the end of the copy this long. */
const WAIT_MS = 60_000;
/** With time to ask for it: a machine that connects again, a bucket that is slow. */
const TIMEOUT_MS = WAIT_MS + 60_000;
const ENDPOINT = "`NODE:PATH`, or `gsv:PATH` in your workspace";

export const TRANSFER_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__Transfer",
      description: "Copies one file of any size or kind between machines and your workspace. You are told when a long copy has ended.",
      policyClass: "egress",
      needsMachine: true,
      properties: {
        source: { type: "string", description: ENDPOINT },
        destination: { type: "string", description: "The same, with the file's name" },
        force: { type: "boolean", description: "Replace the file" },
      },
      timeoutMs: TIMEOUT_MS,
    },
    { source: text(MAX_ENDPOINT_CHARS), destination: text(MAX_ENDPOINT_CHARS), force: optional(flag) },
    async ({ source, destination, force }, { identity, callId, origin, taint, gateway }) => {
      const told = await gateway.transfer({
        from: identity,
        callId,
        origin,
        taint,
        source,
        destination,
        force: force === true,
        waitMs: WAIT_MS,
      });
      if (!told.ok) return told;
      if (told.value.status === "done") return { ok: true, result: { ...told.value, source, destination } };
      return { ok: true, result: { ...told.value, source, destination, note: "The copy goes on. You are told when it has ended." } };
    },
    { refused: ({ source, destination }, agentId) => copyRefusal(agentId, source, destination) },
  ),
];
