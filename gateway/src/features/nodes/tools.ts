/** `gsv__LogsGet`: the agent reads the log of a node. The call to the node is the gateway's (logs.ts). */
import { integer, optional, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

export const NODE_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__LogsGet",
      description: "Shows the last lines of the node log of a machine.",
      policyClass: "read_private",
      properties: {
        nodeId: { type: "string", description: "Needed with several machines." },
        lines: { type: "integer", description: "Default 100." },
      },
    },
    { nodeId: optional(text(64)), lines: optional(integer(1, 5000)) },
    async ({ nodeId, lines }, { gateway }) => outcome(await gateway.nodeLogs(nodeId, lines)),
  ),
];
