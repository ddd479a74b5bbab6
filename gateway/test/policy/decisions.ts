/** Calls, rules and decisions for tests of the policy. */
import type { ApprovalConfig, ApprovalRule, PolicyClass } from "../../../protocol/gen/types.ts";
import { decide, policyOf } from "../../src/policy/decide.ts";
import { loadPolicyParts } from "../../src/policy/load.ts";
import type { Decision, PolicyCall, PolicyMode } from "../../src/ports/policy.ts";

export const engine = await loadPolicyParts();
export const onNode = (tool: string, policyClass: PolicyClass, args: Record<string, unknown>): PolicyCall => ({
  name: `lap__${tool}`,
  tool,
  target: { kind: "node", nodeId: "lap" },
  policyClass,
  args,
});
export const native = (tool: string, policyClass: PolicyClass, args: Record<string, unknown> = {}): PolicyCall => ({
  name: tool,
  tool,
  target: { kind: "native" },
  policyClass,
  args,
});
export const bash = (command: unknown): PolicyCall => onNode("Bash", "exec", { command });
interface Who {
  readonly mode?: PolicyMode;
  readonly isOwners?: boolean;
}
export const decided = (call: PolicyCall, config?: ApprovalConfig, { mode, isOwners = true }: Who = {}): Decision =>
  decide(call, { policy: policyOf(config, engine), mode, isOwners });
export const verdict = (call: PolicyCall, config?: ApprovalConfig, who?: Who): string => decided(call, config, who).verdict;
let rules = 0;
export const rule = (decision: ApprovalRule["decision"], tool: string, ...when: NonNullable<ApprovalRule["when"]>): ApprovalRule => ({
  id: `r${++rules}`,
  tool,
  decision,
  ...(when.length === 0 ? {} : { when }),
});
export const command = (op: "equals" | "contains" | "startsWith" | "regex", value: unknown) => ({ path: "command", op, value });
