/** Checks changes of the policy's settings: a rule that can never apply is refused, and one that does little now is warned about (rule PO6). */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import type { ChangeCheck } from "../../kernel/config/change.ts";
import { newFatalProblem, policyProblems, type RuleProblem } from "../../policy/rule-problems.ts";
import type { RegexEngine } from "../../policy/regex.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import { machineToolName } from "../../tools/registry.ts";

export interface PolicyCheck {
  readonly check: ChangeCheck;
  /** Of the settings after the change. */
  readonly warnings: (config: Readonly<GsvConfig>) => readonly string[];
}

export function policyCheck(engine: RegexEngine, native: Pick<NativeTools, "entries">, nodes: NodesPort["nodes"]): PolicyCheck {
  const problems = ({ toolApproval }: Readonly<GsvConfig>): readonly RuleProblem[] =>
    policyProblems(toolApproval, engine, {
      native: native.entries,
      machines: nodes.tools(),
      machineNames: nodes.list().flatMap(({ nodeId, tools }) => tools.map((tool) => machineToolName(nodeId, tool))),
    });
  return {
    check: (next, before) => {
      const was = problems(before).filter(({ isFatal }) => isFatal);
      return newFatalProblem(
        was.map(({ problem }) => problem),
        problems(next),
      );
    },
    warnings: (config) => problems(config).flatMap(({ setting, problem, isFatal }) => (isFatal ? [] : [`${setting}: ${problem}`])),
  };
}
