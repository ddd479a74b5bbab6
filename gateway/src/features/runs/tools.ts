/** The native tool behind `delegate_to_NAME` (gateway/spec/delegation.md). It waits for the end of the task, also over restarts. */
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import { DELEGATE, delegatedTo } from "../../agents/delegation.ts";
import type { DelegationStand } from "../../ports/delegation.ts";
import type { GsvError, Result } from "../../ports/result.ts";
import { bad, type Field, optional, text } from "../../tools/arguments.ts";
import { denied, type Outcome, type Tool, tool } from "../../tools/tool.ts";

type Ended = Extract<DelegationStand, { readonly state: "ended" }>;
const MAX_INSTRUCTIONS = 65_536;
/** The gateway did not answer: it is asked again, under the same name. */
const RETRY_MS = 1_000;

/** Any JSON: its size and its keys are checked with the task. */
const data: Field<unknown> = (_name, value) => ({ ok: true, value });

export const RUN_TOOLS: readonly Tool[] = [
  tool(
    {
      name: DELEGATE,
      description: "Hands a task to another agent.",
      policyClass: "write_workspace",
      isInner: true,
      properties: { instructions: { type: "string" }, payload: { type: "object" } },
    },
    { instructions: text(MAX_INSTRUCTIONS), payload: optional(data) },
    async ({ instructions, payload }, { delegating, identity, runId, origin, callId, taint, gateway }) => {
      const to = delegating === undefined ? undefined : delegatedTo(delegating.tool);
      if (delegating === undefined || to === undefined || runId === undefined || origin === undefined)
        return denied("Only an agent's run can delegate tasks.");
      if (instructions.trim() === "") return bad("`instructions` is empty: say what the agent is to do.");
      const { budget, mode, signal } = delegating;
      const asked = {
        from: identity,
        runId,
        origin,
        callId,
        to,
        instructions,
        budget,
        ...(payload === undefined ? {} : { payload }),
        ...(taint === undefined ? {} : { taint }),
        ...(mode === undefined ? {} : { mode }),
      };
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      while (!signal.aborted) {
        const stand: Result<DelegationStand> | undefined = await gateway.delegate(asked).catch(() => undefined);
        if (stand === undefined || (!stand.ok && passes(stand.error))) {
          await within(afterTimeout, RETRY_MS, aborted, () => undefined);
          continue;
        }
        if (!stand.ok) return stand;
        if (stand.value.state === "ended") return told(stand.value.report, stand.value);
      }
      return { ok: false, error: { reason: "tool.cancelled", message: "The run ended before the task did." } };
    },
  ),
];
/** The same call may succeed later, and nothing is held up by it. */
const passes = ({ reason }: GsvError): boolean => ERRORS[reason].retryable && reason !== "limit.rate";
/** What the model reads of a report. */
function told({ status, summary, cost_usd, error, metadata }: AgentReport, { taint, used }: Pick<Ended, "taint" | "used">): Outcome {
  const { agent_id, session_key } = metadata;
  return {
    ok: true,
    result: { status, summary, cost_usd, ...(error === undefined ? {} : { error }), agent_id, session_key },
    taint: taint ?? { label: "self", source: `the report of ${agent_id}` },
    used,
    ...(status === "completed" ? {} : { note: `The task of ${agent_id} did not end well (${status}): ${summary}`.slice(0, 2_000) }),
  };
}
