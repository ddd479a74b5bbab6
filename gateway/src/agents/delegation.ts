/** The tools by which an agent hands tasks to others (rules DG1, DG2). PURE. */
import type { DefinedAgent } from "../ports/agents.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";

/** The native tool that runs a delegation. No model is offered it: each agent has tools of its own that stand for it. */
export const DELEGATE = "delegate";
const PREFIX = `${DELEGATE}_to_`;
export const delegationTool = (name: string): string => `${PREFIX}${name}`;
/** The name of the agent. Undefined: the tool hands on no task. */
export const delegatedTo = (tool: string): string | undefined => (tool.startsWith(PREFIX) ? tool.slice(PREFIX.length) : undefined);
/** How many agents may stand below a run, without a word of its definition. */
export const DEFAULT_DEPTH = 2;
/** A task of another agent may take as long as its run may. */
const WAITS_MS = 86_400_000;

/** One tool for each agent that the definition names and that exists. */
export function delegationTools(defined: DefinedAgent | undefined): readonly ToolEntry[] {
  return (defined?.subAgents ?? []).map(({ name, description }) => ({
    definition: {
      name: delegationTool(name),
      description: `Hands a task to the agent ${name} and returns its report.${description === undefined ? "" : ` ${description}`}`,
      inputSchema: {
        type: "object",
        properties: {
          instructions: { type: "string", description: "The task, complete in itself: the agent knows nothing else." },
          payload: { type: "object", description: "Data for the task." },
        },
        required: ["instructions"],
      },
      idempotent: true,
      timeoutMs: WAITS_MS,
    },
    target: { kind: "native" },
    tool: DELEGATE,
    feature: "runs",
    policyClass: "write_workspace",
    guests: "none",
    ledger: true,
    isWait: true,
  }));
}
