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
  /** The rules that the last checked change removed: a list that is set replaces every rule. */
  readonly removed: () => readonly string[];
  /** What the rules of a configuration do not do. */
  readonly warnings: (config: Readonly<GsvConfig>) => readonly string[];
}

export function policyCheck(engine: RegexEngine, native: Pick<NativeTools, "entries">, nodes: NodesPort["nodes"]): PolicyCheck {
  const problems = ({ toolApproval }: Readonly<GsvConfig>): readonly RuleProblem[] =>
    policyProblems(toolApproval, engine, {
      native: native.entries,
      machines: nodes.tools(),
      machineNames: nodes.list().flatMap(({ nodeId, tools }) => tools.map((tool) => machineToolName(nodeId, tool))),
    });
  let removed: string | undefined;
  return {
    check: (next, before) => {
      removed = removedText(before, next);
      const was = problems(before).filter(({ isFatal }) => isFatal);
      return newFatalProblem(
        was.map(({ problem }) => problem),
        problems(next),
      );
    },
    removed: () => (removed === undefined ? [] : [removed]),
    warnings: (config) => problems(config).flatMap(({ setting, problem, isFatal }) => (isFatal ? [] : [`${setting}: ${problem}`])),
  };
}
const MOST_REMOVED = 20;
/** A list that is set replaces every rule, also those that answers have saved. Undefined: each of them is still there. */
function removedText(before: Readonly<GsvConfig>, next: Readonly<GsvConfig>): string | undefined {
  const kept = new Set(next.toolApproval?.rules?.map(({ id }) => id));
  const gone = (before.toolApproval?.rules ?? []).filter(({ id }) => !kept.has(id));
  if (gone.length === 0) return undefined;
  const names = gone.slice(0, MOST_REMOVED).map(({ id, decision }) => `${JSON.stringify(id)} (${decision})`);
  const more = gone.length > names.length ? ` and ${gone.length - names.length} more` : "";
  return `toolApproval.rules: removed ${names.join(", ")}${more}. To keep a rule, include it in the new list.`.slice(0, 1024);
}
