/** How long a call that a client makes itself may take (gateway rule G5). Pure. */
import type { ToolDefinition } from "../../../../protocol/gen/types.ts";

export interface CallTimes {
  readonly timeoutMs: number;
}
const MAX_MS = 86_400_000;
/** For the way to the node and back, over what a command may take itself. */
const WAY_MS = 5000;

/** `asked` is the client's own wish; else the tool's time, else the configured one, and for a command at least its own timeout. */
export function callTimes(
  tool: ToolDefinition,
  args: Readonly<Record<string, unknown>>,
  asked: number | undefined,
  configuredMs: number,
): CallTimes {
  const own = tool.timeoutMs === undefined || tool.timeoutMs === 0 ? configuredMs : tool.timeoutMs;
  const wanted = asked !== undefined && asked > 0 ? asked : own;
  const command =
    tool.name === "Bash" && typeof args["timeout"] === "number" && Number.isFinite(args["timeout"]) ? args["timeout"] + WAY_MS : 0;
  return { timeoutMs: Math.min(MAX_MS, Math.max(1, Math.round(Math.max(wanted, command)))) };
}
