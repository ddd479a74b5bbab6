/** What people are told about limits of money and tokens (rules SP5-SP7). PURE. */
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { amountText } from "../../calls/limit-question.ts";
import type { GsvError } from "../../ports/result.ts";
import { type Full, type Scope, settingOf } from "./caps.ts";

const REASONS: Readonly<Record<Scope, ErrorReason>> = {
  session: "budget.session",
  agent: "budget.agent",
  guest: "budget.guest",
  guests: "budget.guest",
  day: "budget.day",
  month: "budget.month",
};
const NAMES: Readonly<Record<Scope, string>> = {
  session: "This conversation's limit for today",
  agent: "This agent's limit for today",
  guest: "The guest's limit for today",
  guests: "The limit of all guests for today",
  day: "Today's limit",
  month: "This month's limit",
};
/** A limit that leaves room for more: twice as much, of what was used where that is more. */
function raised({ unit, limit, used, least }: Omit<Full, "missing">): string {
  const wanted = Math.max(2 * limit, 2 * used, used + 2 * least);
  return unit === "tokens" ? String(Math.ceil(wanted / 1_000) * 1_000) : String(Math.ceil(wanted));
}
const raise = (full: Omit<Full, "missing">): string => `\`gsv config set ${settingOf(full.scope, full.unit)} ${raised(full)}\``;

/** `forGuest`: they are told neither money nor settings. `resumes`: when the limit counts from zero again. */
export function fullError(full: Full, forGuest: boolean, resumes: string): GsvError {
  const reason = REASONS[full.scope];
  if (forGuest)
    return {
      reason,
      message: `I can't answer any more ${full.scope === "month" ? "this month" : "today"}.`,
      hint: `Please write again ${full.scope === "month" ? "next month" : "tomorrow"}.`,
    };
  return { reason, message: whyFull(full), hint: `Raise it with ${raise(full)}, or wait until ${resumes}.` };
}
/** What was used of which limit. The setting and what the owner has allowed beyond it are both named: a lowered setting does not take that back. */
const usedOf = ({ scope, unit, used, limit, allowed = 0 }: Omit<Full, "least" | "missing">, verb: string): string => {
  const [spent, most] = [amountText(unit, used), amountText(unit, limit)];
  if (allowed === 0) return `${spent} of ${most}${verb}`;
  const set = amountText(unit, Math.max(0, limit - allowed));
  const period = scope === "month" ? "this month" : "today";
  return `${spent}${verb === "" ? " used" : verb}; the limit is ${most} (${set} set + ${amountText(unit, allowed)} that you allowed ${period})`;
};
/** A limit of which something is left is not reached: the next call may need more than that. */
export function whyFull(full: Full): string {
  const { scope, unit, used, limit, least } = full;
  const most = amountText(unit, least);
  if (used >= limit) return `${NAMES[scope]} is reached: ${usedOf(full, " were used")}, and the next model call needs ${most} or more.`;
  const others = used + least <= limit ? ", and other runs have set aside a part of the rest" : "";
  const may = unit === "tokens" ? "use" : "cost";
  return `${NAMES[scope]} leaves too little for the next model call: it may ${may} up to ${most}, and ${usedOf(full, " are used")}${others}.`;
}
/** A word to the owner when most of a limit is used up, or all of it by others. `of`: the guest. */
export function warning(full: Omit<Full, "least" | "missing">, isFull: boolean, of?: string): string {
  const { scope, used, limit } = full;
  const name = scope === "guest" && of !== undefined ? `The limit of the guest ${JSON.stringify(of)} for today` : NAMES[scope];
  const share = limit > 0 ? `, ${Math.floor((100 * used) / limit)} %` : "";
  const state = !isFull ? "is nearly used up" : used >= limit ? "is reached" : "leaves too little for the next model call";
  return `${name} ${state}: ${usedOf(full, "")}${share}. \`gsv usage\` shows what used it; ${raise({ ...full, least: 0 })} raises it.`;
}
