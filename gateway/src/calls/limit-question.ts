/** PURE. The texts about a limit that a run has used up: the question for more, and the advice when it ends. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Origin } from "../ports/origin.ts";
import type { Problem } from "../ports/result.ts";
import type { Amount, MoreOffer, RunLimit } from "../ports/spend.ts";
import type { Approval } from "./approval.ts";
import { againText } from "./task-advice.ts";

/** What can be done when a run has used up `limit`, a limit of its own, which is set by `setting`. `isFirst`: its first model call needs too much. */
export function limitAdvice(origin: Origin, { of, limit, setting, isFirst = false }: UsedLimit): string {
  if (origin.kind === "schedule")
    return of === "tokens" || limit < origin.budget[of]
      ? `This limit is your setting \`${setting}\`: raise it, or let the job do less at once.`
      : "A job may use no more in one run: let it do less at once.";
  if (origin.kind === "task")
    return isFirst
      ? `${againText(origin)} with less text, use a model that costs less, or raise \`${setting}\`.`
      : `${againText(origin)}, or raise \`${setting}\`.`;
  const act = isFirst ? "Shorten the conversation with /compact, use another model (`/model`)" : 'Say "continue" to go on';
  return `${act}, or raise \`${setting}\`.`;
}
interface UsedLimit {
  readonly of: RunLimit;
  readonly limit: number;
  readonly setting: string;
  readonly isFirst?: boolean;
}
/** What an answer allows. */
export function moreText(offer: MoreOffer): string {
  switch (offer.of) {
    case "steps":
      return `${offer.amount} more ${offer.amount === 1 ? "step" : "steps"}`;
    case "ms":
      return `${minutes(offer.amount)} more ${minutes(offer.amount) === 1 ? "minute" : "minutes"}`;
    case "period": {
      const { unit, amount, scope } = offer.raise;
      return `another ${amountText(unit, amount)} ${scope === "month" ? "this month" : "today"}`;
    }
    default:
      return `another ${amountText(offer.of, offer.amount)}`;
  }
}
const minutes = (ms: number): number => Math.ceil(ms / 60_000);
export function amountText(unit: keyof Amount, value: number): string {
  if (unit === "tokens") return `${Math.round(value).toLocaleString("en-US")} tokens`;
  return value > 0 && value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`;
}
/** Why a paused run has ended although no one answered. `cause` completes "before ... was answered". */
export const gaveWay = ({ why, setting }: Pick<MoreOffer, "why" | "setting">, code: string, cause: string): Problem => ({
  message: `${why} Before the question ${code} was answered, ${cause}, so the run ended there. What it has done stays.`,
  hint: `To allow more, raise \`${setting}\`.`,
});
/** The whole question, for a chat. */
export const limitText = ({ code, why, rule }: Pick<Approval, "code" | "why" | "rule">, offer: MoreOffer): string =>
  [
    `The run is paused. ${why} (${rule})`,
    `| Continue with ${moreText(offer)}?`,
    `Code ${code}, for ${Math.round(LIMITS.approvalMs / 60_000)} minutes. Answer in your direct chat with "allow ${code}" (the run continues) or "deny ${code}" (it ends here, and what it has done stays), or with \`gsv approval allow ${code}\`. When \`${rule}\` is raised, the run goes on by itself. Otherwise any other message ends the run and is answered next.`,
  ].join("\n");
