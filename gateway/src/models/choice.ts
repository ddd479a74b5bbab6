/** What chose the model of a call, and the alternative when that model has no key. PURE. */
import type { GsvError } from "../ports/result.ts";

export type ModelChoice =
  /** A directive of the message. */
  | { readonly kind: "message" }
  /** The conversation's own model. */
  | { readonly kind: "session" }
  /** `setting`: the path of the agent's model. Absent: a pack has it, which no setting changes. */
  | { readonly kind: "agent"; readonly agentId: string; readonly setting?: string }
  | { readonly kind: "tier"; readonly setting: string }
  | { readonly kind: "fallback" }
  | { readonly kind: "config" };

function alternative(choice: ModelChoice): string | undefined {
  switch (choice.kind) {
    case "message":
      return "send the message again without its model";
    case "session":
      return "go back to the configured model: `/model default`";
    case "agent":
      return choice.setting && `let the agent ${choice.agentId} use the configured model: \`gsv config unset ${choice.setting}.model\``;
    case "tier":
      return `use the configured model for this tier: \`gsv config unset ${choice.setting}\``;
    case "fallback":
      return "take the model out of `model.fallbacks`: `gsv config edit`";
    case "config":
      return "use the built-in demo model: `gsv config set model.provider demo`";
  }
}

/** Ends the hint with the way back to another model. It belongs to the place whose model counts: a change of another one has no effect. */
export function withAlternative(error: GsvError, choice: ModelChoice): GsvError {
  const other = error.reason === "model.not_configured" ? alternative(choice) : undefined;
  if (other === undefined || error.hint === undefined) return error;
  return {
    ...error,
    hint: `${error.hint.replace(/\.$/, "")}, or ${other}.`,
    // A task has no conversation in which to choose.
    ...(choice.kind === "message" || choice.kind === "session" ? { taskHint: error.taskHint ?? error.hint } : {}),
  };
}

/** The agent's own model, among the settings. */
export function agentChoice(agentId: string, list: readonly { readonly id: string }[] = []): ModelChoice {
  const index = list.findIndex(({ id }) => id === agentId);
  return { kind: "agent", agentId, ...(index === -1 ? {} : { setting: `agents.list.${index}` }) };
}
