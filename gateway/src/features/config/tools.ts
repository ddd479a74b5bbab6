/** What the agent may know of the gateway, as tools: its configuration, secrets masked, and the logs of its machines. */
import { integer, optional, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

export const GATEWAY_TOOLS: readonly Tool[] = [
  tool(
    "gsv__ConfigGet",
    "Shows GSV's configuration, or one path of it. Secrets are masked.",
    { path: { type: "string", description: "Such as `model.provider`; absent: all." } },
    [],
    { path: optional(text(512)) },
    async ({ path }, { gateway }) => outcome(await gateway.configGet(path)),
  ),
  tool(
    "gsv__LogsGet",
    "Shows the last lines of a machine's node log. Absent `nodeId`: the only machine that is connected.",
    { nodeId: { type: "string" }, lines: { type: "integer", description: "How many lines; 100 when absent." } },
    [],
    { nodeId: optional(text(64)), lines: optional(integer(1, 5000)) },
    async ({ nodeId, lines }, { gateway }) => outcome(await gateway.nodeLogs(nodeId, lines)),
  ),
];
