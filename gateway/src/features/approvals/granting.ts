/**
 * Turns an answer into what it grants: a grant, or a rule of the configuration. It runs in the transaction that ends the question, so
 * an answer grants exactly once or not at all (rule GR1).
 */
import type {
  ApprovalAnswerKind,
  ApprovalChoice,
  ApprovalEntry,
  ApprovalGrant,
  ApprovalGrantsResult,
} from "../../../../protocol/gen/types.ts";
import { visible } from "../../calls/shown-call.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { GrantChoice } from "../../ports/grants.ts";
import type { EffectiveConfig } from "../../ports/run-context.ts";
import { choiceText, GRANT_MS, ruleText, scopeText } from "../../policy/grant-text.ts";
import { RULE } from "../../policy/rules.ts";
import type { WaitingQuestion } from "../../ports/approvals.ts";
import { fail } from "../../kernel/outcome.ts";
import { type Result, succeed, sentence } from "../../ports/result.ts";
import type { GrantRow, GrantStore } from "./grant-store.ts";

export type AskedOffer = NonNullable<WaitingQuestion["offer"]>;
export type GrantingPorts = Pick<KernelPorts, "config" | "ids" | "now">;

/** The answers that allow, and for how long each does. */
const ALLOWS: Readonly<Record<Exclude<ApprovalAnswerKind, "allow" | "deny">, GrantChoice>> = {
  allow_session: "session",
  allow_1h: "1h",
  allow_8h: "8h",
  allow_30d: "30d",
  allow_always: "always",
};
export const choiceOf = (decision: ApprovalAnswerKind): GrantChoice | undefined =>
  decision === "allow" || decision === "deny" ? undefined : ALLOWS[decision];

const RULES = "toolApproval.rules";

/** The choices of a question, with what each of them allows. */
export function choicesOf({ scope, always }: AskedOffer): ApprovalChoice[] {
  return Object.entries(ALLOWS).flatMap(([answer, choice]) =>
    choice === "always" && always === undefined
      ? []
      : [{ answer: answer as ApprovalAnswerKind, text: choiceText(choice, scope, always, visible).slice(0, 4096) }],
  );
}

/** What an answer to a question grants. The question has ended as allowed. */
export function grantNow(
  { config, ids, now }: GrantingPorts,
  grants: GrantStore,
  { code, sessionKey }: Pick<ApprovalEntry, "code" | "sessionKey">,
  { scope, always, sessionId }: AskedOffer,
  choice: GrantChoice,
  by: string,
): { readonly ok: boolean; readonly id?: string; readonly text: string } {
  if (choice === "always") {
    if (always === undefined) return { ok: false, text: "this call can be no rule" };
    const rules = config.effective().toolApproval?.rules ?? [];
    // Who answered is in the audit. A question shows the reason where it is not sure that the rule holds.
    const rule = { id: `allowed-${code.toLowerCase()}-${ids.name(4)}`, ...always, reason: `Your answer to ${code}` };
    const change = config.set(RULES, [...rules, rule]);
    return change.ok ? { ok: true, id: rule.id, text: `rule ${rule.id}` } : { ok: false, text: sentence(change.error) };
  }
  const id = ids.name(8);
  const at = now();
  const added = grants.add({
    id,
    scope,
    sessionKey,
    ...(choice === "session" ? { sessionId } : {}),
    code,
    by,
    createdAt: at,
    expiresAt: at + GRANT_MS[choice],
  });
  return added ? { ok: true, id, text: `grant:${id} ${choice}` } : { ok: false, text: "too many grants hold at once" };
}

/** The rules that allow, with their places. */
export const allowingRules = ({ toolApproval }: Pick<EffectiveConfig, "toolApproval">): NonNullable<ApprovalGrantsResult["rules"]> =>
  (toolApproval?.rules ?? []).flatMap(({ id, tool, decision, when }, index) =>
    decision === "allow"
      ? [
          {
            id,
            setting: `${RULES}.${index}`,
            text: ruleText({ tool, ...(when === undefined ? {} : { when }) }, visible).slice(0, 4096),
          },
        ]
      : [],
  );

/** The id of a rule; undefined: that of a grant. */
export const ruleNamed = (id: string): string | undefined => (id.startsWith(RULE) ? id.slice(RULE.length) : undefined);
/** Removes the rules with this id that allow (rule GR8). The settings that were changed, in their places before. */
export function removeRule(config: Pick<KernelPorts, "config">["config"], id: string): Result<readonly string[]> {
  const rules = config.effective().toolApproval?.rules ?? [];
  const isMeant = (rule: (typeof rules)[number]): boolean => rule.id === id && rule.decision === "allow";
  const settings = rules.flatMap((rule, index) => (isMeant(rule) ? [`${RULES}.${index}`] : []));
  if (settings.length > 0) {
    // No check: that there is one rule less brings no mistake, and those that were stored before block no change.
    const left = rules.filter((rule) => !isMeant(rule));
    const change = left.length === 0 ? config.unset(RULES) : config.set(RULES, left);
    return change.ok ? succeed(settings) : change;
  }
  return rules.some((rule) => rule.id === id)
    ? fail("approval.grant_not_found", "The rule with this id does not allow calls.", "Change or remove it: `gsv config edit`.")
    : fail("approval.grant_not_found", "There is no rule with this id.");
}

export const shownGrant = ({
  id,
  scope,
  sessionKey,
  sessionId,
  code,
  by,
  createdAt,
  expiresAt,
  uses,
  lastUsedAt,
}: GrantRow): ApprovalGrant => ({
  id,
  agentId: scope.agentId as ApprovalGrant["agentId"],
  ...(sessionId === undefined ? {} : { sessionKey: sessionKey as NonNullable<ApprovalGrant["sessionKey"]> }),
  text: scopeText(scope, visible, sessionId === undefined ? "timed" : "session").slice(0, 4096),
  code,
  by: by.slice(0, 512),
  createdAt,
  expiresAt,
  uses,
  ...(lastUsedAt === undefined ? {} : { lastUsedAt }),
});
