/** Calls for tests of grants: of a shell, of a file tool and of a tool of the gateway. */
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { type GrantContext, scopeOf } from "./grants.ts";
import { loadPolicyParts } from "./load.ts";

const { deletions } = await loadPolicyParts();
export const bash = (command: unknown, more: Record<string, unknown> = {}, nodeId = "lap"): PolicyCall => ({
  name: `${nodeId}__Bash`,
  tool: "Bash",
  target: { kind: "node", nodeId },
  policyClass: "exec",
  args: { command, ...more },
});
export const write = (path: unknown, tool = "Write"): PolicyCall => ({
  name: `lap__${tool}`,
  tool,
  target: { kind: "node", nodeId: "lap" },
  policyClass: "write_files",
  args: { path, content: "x" },
});
export const native = (tool: string, args: Record<string, unknown>): PolicyCall => ({
  name: tool,
  tool,
  target: { kind: "native" },
  policyClass: "egress",
  args,
});
export const at = (sandbox: SandboxProfile = "off", more: Partial<GrantContext> = {}): GrantContext => ({
  isOwners: true,
  agentId: "main",
  sandbox,
  deletions,
  ...more,
});
/** What the commands of a line are granted as. Undefined: once only. */
export const commands = (command: unknown, sandbox: SandboxProfile = "off", more: Record<string, unknown> = {}): unknown => {
  const what = scopeOf(bash(command, more), at(sandbox))?.what;
  if (what?.kind === "line") return what.line;
  return what?.kind === "commands"
    ? what.commands.map(({ program, subcommand, words }) => (words ? [...words] : [program, subcommand]))
    : undefined;
};
