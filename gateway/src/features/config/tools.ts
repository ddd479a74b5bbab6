/** `gsv__ConfigGet`: the agent reads GSV's configuration. Secrets are masked by the gateway. */
import { optional, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

export const CONFIG_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__ConfigGet",
      description: "Shows GSV's configuration, or one path of it. Secrets are masked.",
      policyClass: "read_private",
      properties: { path: { type: "string", description: "For example `model.provider`." } },
    },
    { path: optional(text(512)) },
    async ({ path }, { gateway }) => outcome(await gateway.configGet(path)),
  ),
];
