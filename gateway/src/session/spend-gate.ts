/**
 * Stands before every model call of a session (rules SP1, SP2): the call's worst cost must fit the run's own budget and what the spend
 * ledger has granted. A grant covers several calls, so most calls ask nothing. The grant is in memory only: a session that dies loses
 * it, and the ledger's lease ends it.
 */
import type { ModelRef, Usage } from "../../../protocol/gen/types.ts";
import { amountText, limitAdvice } from "../calls/limit-question.ts";
import { cappedUsage } from "../models/capped-usage.ts";
import { tokensOfChars } from "../models/estimate.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { CallTerms, ModelOutcome, TermsAsk } from "../ports/model.ts";
import type { GsvError } from "../ports/result.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import {
  type Amount,
  enoughMore,
  guestOf,
  type MoreOffer,
  NO_REPORT,
  NOTHING,
  settingOf,
  type SpendAsk,
  type SpendGrant,
  type SpendState,
  type SpendSum,
} from "../ports/spend.ts";
import { localDay } from "../prompt/dates.ts";
import type { Budget, RunCore, Shortage, State } from "./machine/state.ts";

/** An answer may be made shorter to fit a limit, but not shorter than this, in tokens. */
const LEAST_ANSWER = 4_096;

export interface SpendGatePorts {
  readonly gateway: Pick<GatewayPort, "reserveSpend">;
  readonly terms: (model: ModelRef, config: EffectiveConfig, ask: TermsAsk) => CallTerms | undefined;
  readonly state: () => State | undefined;
  readonly wall: () => number;
  readonly failed: (what: string, error: unknown) => void;
}
export interface CallAsk extends TermsAsk {
  readonly model: ModelRef;
  readonly config: EffectiveConfig;
  /** The run that the call belongs to; absent: none. */
  readonly run: Pick<RunCore, "origin" | "spent" | "unpriced" | "extra"> | undefined;
  /** What the run may use. Absent: the call is not at its cost. */
  readonly ownBudget: Budget | undefined;
}
/** A call that may be made. */
export interface AllowedCall {
  /** For the request: smaller than the setting when a limit leaves less. */
  readonly maxTokens: number | undefined;
  /** The outcome with what counts of it (rules SP2, SP12), and what the call used, for the ledger; without `spent`: nothing. */
  readonly end: (outcome: ModelOutcome, received: Received) => Ended;
  /** The call is not made. */
  readonly cancel: () => void;
}
/** What a call got before it ended. */
export interface Received {
  /** Text, thoughts and arguments, in UTF-16 units. */
  readonly chars: number;
  /** The provider has taken the call, so it bills what it was sent. */
  readonly isAccepted: boolean;
  /** The call was stopped here: the provider may have gone on. */
  readonly isStopped: boolean;
}
export interface Ended {
  readonly outcome: ModelOutcome;
  readonly spent?: SpendSum;
}
interface Refused {
  readonly ok: false;
  readonly error: GsvError;
  readonly retryable: boolean;
  readonly offer?: MoreOffer;
}
export type Allowed = { readonly ok: true; readonly call: AllowedCall } | Refused;
/** A run that has paused at a limit, the model that it would call now, and what it may use now. */
export interface FitAsk extends Pick<CallAsk, "model" | "config" | "maxTokens" | "thinkLevel"> {
  readonly run: NonNullable<CallAsk["run"]>;
  readonly offer: MoreOffer;
  readonly ownBudget: Budget;
}

interface Purse extends SpendGrant {
  readonly guest: string | undefined;
}

export class SpendGate {
  readonly #ports: SpendGatePorts;
  #purse: Purse | undefined;
  /** What the open call may use. */
  #open: Amount = NOTHING;
  #settled = 0;

  constructor(ports: SpendGatePorts) {
    this.#ports = ports;
  }
  /** The ledger has the session's calls up to this number. */
  get settled(): number {
    return this.#settled;
  }
  /** For the ledger, which ends the grant with this. */
  spent(): SpendState {
    this.#purse = undefined;
    return { report: this.#ports.state()?.spend ?? NO_REPORT, open: this.#open };
  }

  async begin(ask: CallAsk): Promise<Allowed> {
    const { model, config, run, ownBudget } = ask;
    const state = this.#ports.state();
    const terms = this.#ports.terms(model, config, ask);
    if (terms === undefined || state === undefined)
      return { ok: true, call: { maxTokens: ask.maxTokens, end: (outcome) => ({ outcome }), cancel: () => {} } };
    const guest = guestOf(state.identity, run?.origin);
    const whole = costOf(terms, ask.inputTokens, terms.output);
    const least = leastOf(terms, ask.inputTokens);
    const withLeast = <T extends { readonly offer?: MoreOffer }>(refused: T): T => withNeed(refused, least, ask);
    const over = ownBudget && run ? overRun(run, ownBudget, least) : undefined;
    if (over !== undefined) return { ok: false, ...withLeast(over), retryable: false };
    const need = ownBudget && run ? smaller(whole, leftOf(run, ownBudget)) : whole;
    if (!this.#covers(need, guest)) {
      const of = guest === undefined ? {} : { guest };
      const raises = run?.extra?.raises;
      const refused = await this.#reserve({ identity: state.identity, ...of, need, least, ...(raises ? { raises } : {}) });
      if (refused) return withLeast(refused);
    }
    const purse = this.#purse;
    // Ended by the ledger meanwhile: what was granted for this call is still set aside there, with the next question.
    const amount = purse ? smaller(need, purse) : need;
    if (purse)
      this.#purse = { ...purse, costUsd: purse.costUsd - amount.costUsd, tokens: purse.tokens - amount.tokens, calls: purse.calls - 1 };
    this.#open = amount;
    const output = outputFor(terms, ask.inputTokens, amount);
    return {
      ok: true,
      call: {
        maxTokens: output < terms.output ? Math.max(1, output - terms.thinking) : ask.maxTokens,
        end: (given, received) => {
          const outcome = this.#counted(given, received, terms, ask);
          const spent = outcome.usage && sumOf(ask, guest, outcome.usage, this.#ports.wall());
          this.#close(amount, spent ?? NOTHING);
          return { outcome, ...(spent === undefined ? {} : { spent }) };
        },
        cancel: () => this.#close(amount, NOTHING),
      },
    };
  }

  /** Whether the call at which a run has paused fits its limits now (rule SP10). Rejects when the ledger does not say. */
  async fits({ run, offer, ownBudget, ...call }: FitAsk): Promise<boolean> {
    const state = this.#ports.state();
    if (state === undefined || offer.least === undefined) return true;
    const least = this.#leastNow(offer.least, offer, call);
    if (least === undefined) return true;
    if (overRun(run, ownBudget, least) !== undefined) return false;
    if (offer.of !== "period") return true;
    const guest = guestOf(state.identity, run.origin);
    const raises = run.extra?.raises;
    const of = { ...(guest === undefined ? {} : { guest }), ...(raises ? { raises } : {}) };
    const refused = await this.#reserve({ identity: state.identity, ...of, need: least, least });
    if (refused?.retryable) throw new Error(refused.error.message);
    return refused === undefined;
  }

  /** What the refused call needs with the current model and price. Undefined: nothing, because its model costs nothing. */
  #leastNow(
    before: Amount,
    { size }: MoreOffer,
    { model, config, ...ask }: Omit<FitAsk, "run" | "offer" | "ownBudget">,
  ): Amount | undefined {
    if (size === undefined) return before;
    const terms = this.#ports.terms(model, config, { ...ask, ...size });
    return terms && leastOf(terms, size.inputTokens);
  }
  /**
   * A provider that was cut off has counted nothing, or what it had done at the begin, and bills what it was sent and what it wrote. One
   * that refused the call has done nothing.
   */
  #counted(outcome: ModelOutcome, received: Received, terms: CallTerms, ask: CallAsk): ModelOutcome {
    const counted = countedOf(outcome);
    const capped = counted && this.#capped(counted, terms, ask);
    // The run's own budget counts what the ledger counts, also of a provider that counts nothing.
    if (outcome.kind === "replied") return withUsage(outcome, capped ?? estimated(terms, ask.inputTokens, received));
    const { usage: _usage, ...rest } = outcome;
    // It has the request, and may work on it still.
    const isLate = outcome.error.reason === "model.timeout";
    const hasBegun = capped !== undefined || received.chars > 0 || received.isAccepted || received.isStopped || isLate;
    if (!hasBegun) return rest;
    return { ...rest, usage: atLeast(capped, estimated(terms, ask.inputTokens, received), terms) };
  }
  #capped(usage: Usage, terms: CallTerms, { inputTokens, model }: CallAsk): Usage {
    const capped = cappedUsage(usage, terms, inputTokens);
    if (capped === undefined) return usage;
    const amount = ({ total, costUsd }: Usage): string => `${total} tokens${costUsd === undefined ? "" : `, $${costUsd.toFixed(2)}`}`;
    const text = `${model.provider}/${model.id} counted ${amount(usage)}, more than the call can have used; ${amount(capped)} count`;
    this.#ports.failed("believing the provider's count of a model call", new Error(text));
    return capped;
  }
  #covers(need: Amount, guest: string | undefined): boolean {
    const purse = this.#purse;
    return (
      purse !== undefined &&
      purse.guest === guest &&
      purse.calls > 0 &&
      this.#ports.wall() < purse.until &&
      purse.costUsd >= need.costUsd &&
      purse.tokens >= need.tokens
    );
  }
  async #reserve(ask: Omit<SpendAsk, "report">): Promise<Refused | undefined> {
    const { gateway, state, failed } = this.#ports;
    this.#purse = undefined;
    const answer = await gateway.reserveSpend({ ...ask, report: state()?.spend ?? NO_REPORT }).catch((error: unknown) => {
      failed("asking whether the limits allow a model call", error);
      return undefined;
    });
    if (answer === undefined)
      return {
        ok: false,
        error: { reason: "internal", message: "The gateway did not say whether the limits allow the model call. The log has the details." },
        retryable: true,
      };
    this.#settled = answer.settled;
    if (!answer.ok) {
      const { error, offer } = answer;
      return { ok: false, error, retryable: false, ...(offer ? { offer } : {}) };
    }
    this.#purse = { ...answer.grant, guest: ask.guest };
    return undefined;
  }
  /** Gives back what the call did not use. */
  #close(reserved: Amount, used: Amount): void {
    this.#open = NOTHING;
    const purse = this.#purse;
    if (!purse) return;
    this.#purse = {
      ...purse,
      costUsd: Math.max(0, purse.costUsd + reserved.costUsd - used.costUsd),
      tokens: Math.max(0, purse.tokens + reserved.tokens - used.tokens),
    };
  }
}

const costOf = ({ rates, inputUsd }: CallTerms, input: number, output: number): Amount =>
  rates ? { costUsd: inputUsd + output * rates.output, tokens: 0 } : { costUsd: 0, tokens: input + output };
const leastOf = (terms: CallTerms, input: number): Amount => costOf(terms, input, Math.min(terms.output, LEAST_ANSWER + terms.thinking));
const withNeed = <T extends { readonly offer?: MoreOffer }>(refused: T, least: Amount, { inputTokens, cachedTokens }: CallAsk): T =>
  refused.offer === undefined ? refused : { ...refused, offer: { ...refused.offer, least, size: { inputTokens, cachedTokens } } };
/** Undefined: the provider counted nothing. */
const countedOf = ({ usage }: ModelOutcome): Usage | undefined => (usage !== undefined && usage.total > 0 ? usage : undefined);
const withUsage = (outcome: Extract<ModelOutcome, { kind: "replied" }>, usage: Usage): ModelOutcome => ({
  ...outcome,
  usage,
  message: { ...outcome.message, usage },
});
/** For a call whose provider counted nothing: what was sent, and what had arrived. */
function estimated({ rates, inputUsd }: CallTerms, input: number, { chars }: Received): Usage {
  const output = tokensOfChars(chars);
  const usage = { input: Math.ceil(input), output, total: Math.ceil(input) + output };
  return rates ? { ...usage, costUsd: inputUsd + output * rates.output } : usage;
}
/** What the provider counted before the call ended, and no less than what had arrived. */
function atLeast(counted: Usage | undefined, estimate: Usage, { rates }: CallTerms): Usage {
  if (counted === undefined) return estimate;
  const more = estimate.output - counted.output;
  if (more <= 0) return counted;
  const usage = { ...counted, output: estimate.output, total: counted.total + more };
  return counted.costUsd === undefined || rates === undefined ? usage : { ...usage, costUsd: counted.costUsd + more * rates.output };
}
function sumOf({ model, config }: CallAsk, guest: string | undefined, used: Usage, wall: number): SpendSum {
  return {
    day: localDay(wall, config.userTimezone).today,
    model: `${model.provider}/${model.id}`,
    ...(guest === undefined ? {} : { guest }),
    calls: 1,
    input: used.input,
    output: used.output,
    cacheRead: used.cacheRead ?? 0,
    cacheWrite: used.cacheWrite ?? 0,
    costUsd: used.costUsd ?? 0,
    tokens: used.costUsd === undefined ? used.total : 0,
  };
}
const smaller = (left: Amount, right: Amount): Amount => ({
  costUsd: Math.min(left.costUsd, right.costUsd),
  tokens: Math.min(left.tokens, right.tokens),
});
function outputFor({ rates, inputUsd, output }: CallTerms, input: number, { costUsd, tokens }: Amount): number {
  if (!rates) return Math.min(output, Math.floor(tokens - input));
  return rates.output === 0 ? output : Math.min(output, Math.floor((costUsd - inputUsd) / rates.output + 1e-6));
}
/** What a run may use in all: its limits, and what the owner has allowed beyond them. */
function mostOf({ extra = {} }: NonNullable<CallAsk["run"]>, { costUsd, tokens = Number.POSITIVE_INFINITY }: Budget): Amount {
  return { costUsd: costUsd + (extra.costUsd ?? 0), tokens: tokens + (extra.tokens ?? 0) };
}
function leftOf(run: NonNullable<CallAsk["run"]>, budget: Budget): Amount {
  const { costUsd, tokens } = mostOf(run, budget);
  return { costUsd: Math.max(0, costUsd - (run.spent.costUsd ?? 0)), tokens: Math.max(0, tokens - (run.unpriced ?? 0)) };
}
/** The run's own budget leaves less than the least that the next call may cost (rule R1). */
function overRun(run: NonNullable<CallAsk["run"]>, budget: Budget, least: Amount): Shortage | undefined {
  const left = leftOf(run, budget);
  const most = mostOf(run, budget);
  const used: Amount = { costUsd: run.spent.costUsd ?? 0, tokens: run.unpriced ?? 0 };
  for (const unit of ["costUsd", "tokens"] as const) {
    if (least[unit] <= left[unit]) continue;
    const why = `The run has used ${amountText(unit, used[unit])} of its ${amountText(unit, most[unit])}, and its next model call may need ${amountText(unit, Math.ceil(least[unit] * 100) / 100)} or more.`;
    const limit = budget[unit] ?? 0;
    const setting = settingOf(unit, budget.defined);
    const isFirst = used[unit] === 0;
    return {
      error: { reason: "budget.cost", message: why, hint: limitAdvice(run.origin, { of: unit, limit, setting, isFirst }) },
      offer: { of: unit, amount: enoughMore(limit, least[unit] - left[unit]), why, setting },
    };
  }
  return undefined;
}
