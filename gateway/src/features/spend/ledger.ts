/**
 * Grants money and tokens to sessions, settles what they used, and says when a limit is used up (rules SP1-SP7). A grant is a row with
 * an end: when it ends, the session is asked what it used, so nothing has to be sent after a call and nothing is lost with a crash.
 */
import type { LimitsConfig, UsageBy, UsageCap } from "../../../../protocol/gen/types.ts";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { localTime, nextDay } from "../../prompt/dates.ts";
import {
  type Amount,
  enoughMore,
  type MoreOffer,
  OWN_WORK,
  type OwnCall,
  type OwnCallAnswer,
  type OwnUse,
  type SpendAnswer,
  type SpendAsk,
  type SpendState,
  type SpendSum,
} from "../../ports/spend.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import { failure } from "../../ports/result.ts";
import type { DeletedSession, SessionsPort, StopPort } from "../../ports/sessions.ts";
import {
  allowedOf,
  type Counted,
  type Full,
  limitOf,
  rule,
  type Scope,
  SCOPES,
  settingOf,
  shareOf,
  type Unit,
  UNITS,
  WARNED_SHARE,
} from "./caps.ts";
import { dayOf, daysBefore } from "./days.ts";
import { type Grant, LedgerStore, periodOf, type Spender } from "./ledger-store.ts";
import { fullError, warning, whyFull } from "./texts.ts";

/** How long a session may begin calls under one grant. */
const LEASE_MS = 120_000;
/** Calls under one grant: it bounds what a session has to report at once. */
const GRANT_CALLS = 64;
/** Sessions that are asked at once what they have used, and how long they have for the answer. */
const ASKED_AT_ONCE = 64;
const ASK_MS = 2_000;
/** A session that does not answer this often loses its grant; what it used is counted with its next report. */
const MOST_TRIES = 5;
const RETRY_MS = 60_000;
const KEPT_DAYS = 400;
const TOLD_AT_ONCE = 20;
const ROWS = 400;
const LISTED = 50;

export interface LedgerPorts
  extends Pick<KernelPorts, "arm" | "background" | "config" | "database" | "log" | "now">,
    NotifyPort,
    Pick<SessionsPort, "ask" | "sessions">,
    StopPort {}

export class Ledger {
  readonly #ports: LedgerPorts;
  readonly #store: LedgerStore;
  #serial = 0;

  constructor(ports: LedgerPorts) {
    this.#ports = ports;
    this.#store = new LedgerStore(ports.database);
  }
  get #limits(): LimitsConfig {
    return this.#ports.config.effective().limits;
  }
  get #zone(): string {
    return this.#ports.config.effective().userTimezone;
  }

  /** Records the session's report and gives it a grant, or says which limit is used up. */
  async reserve(ask: SpendAsk): Promise<SpendAnswer> {
    const first = this.#try(ask);
    if (first.answer.ok || !first.reserved) return this.#told(ask, first);
    // Others have set aside more than they will use, perhaps: ask them.
    await this.#settle(this.#store.grants(ASKED_AT_ONCE).filter(({ session }) => session !== ask.identity.key));
    return this.#told(ask, this.#try(ask));
  }
  #try(ask: SpendAsk): { readonly answer: SpendAnswer; readonly full?: Full; readonly reserved: boolean } {
    const { now } = this.#ports;
    const [limits, at, zone] = [this.#limits, now(), this.#zone];
    const spender = spenderOf(ask);
    const settled = ask.report.count;
    const result = this.#store.transaction(() => {
      const today = dayOf(at, zone);
      if (this.#store.record(spender, ask.report)) this.#warn(spender, today);
      this.#store.dropGrant(spender.session);
      for (const raise of ask.raises ?? []) this.#store.raise(raise, spender);
      const scopes = SCOPES.filter((scope) => (scope !== "guest" && scope !== "guests") || spender.guest !== "");
      const counted = this.#counted(scopes, spender, today);
      const ruling = rule(limits, counted, ask);
      if (ruling.kind === "full") return { full: ruling.full, reserved: (counted[ruling.full.scope]?.reserved[ruling.full.unit] ?? 0) > 0 };
      const until = Math.min(at + LEASE_MS, nextDay(at, zone));
      this.#serial = Math.max(at, this.#serial + 1);
      this.#store.putGrant({ ...spender, ...ruling.amount, serial: this.#serial, until, tries: 0 });
      return { grant: { ...ruling.amount, calls: GRANT_CALLS, until } };
    });
    this.#ports.arm();
    if ("grant" in result) return { answer: { ok: true, settled, grant: result.grant }, reserved: false };
    const { full, reserved } = result;
    const forGuest = ask.guest !== undefined || !ask.identity.isOwnersSession;
    const error = fullError(full, forGuest, this.#resumes(full.scope, at));
    const offer = forGuest ? undefined : this.#offer(full, dayOf(at, zone));
    return { answer: { ok: false, settled, error, ...(offer ? { offer } : {}) }, full, reserved };
  }
  #counted(scopes: readonly Scope[], spender: Spender, today: string): Partial<Record<Scope, Counted>> {
    const counted: Partial<Record<Scope, Counted>> = {};
    for (const scope of scopes) {
      if (UNITS.every((unit) => limitOf(this.#limits, scope, unit) === undefined)) continue;
      counted[scope] = {
        used: this.#store.used(scope, spender, today),
        reserved: this.#store.reserved(scope, spender),
        raised: this.#store.raised(scope, spender, today),
      };
    }
    return counted;
  }

  /**
   * A call that no session makes. What it may use at most is recorded before it begins, and corrected afterwards: a gateway that is
   * killed in between has counted too much and never too little.
   */
  ownCall({ agentId, model, need }: OwnCall): OwnCallAnswer {
    if (this.#ports.stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so no service was called.");
    const at = this.#ports.now();
    const today = dayOf(at, this.#zone);
    const spender: Spender = { session: OWN_WORK, agent: agentId, guest: "" };
    const record = (change: Partial<Omit<SpendSum, "day" | "model">>): void =>
      this.#store.addOwn(spender, { ...NO_CALLS, ...change, day: today, model });
    const refused = this.#store.transaction(() => {
      const ruling = rule(this.#limits, this.#counted(["agent", "day", "month"], spender, today), { need, least: need });
      if (ruling.kind === "full") return fullError(ruling.full, false, this.#resumes(ruling.full.scope, at));
      record({ ...need, calls: 1 });
      this.#warn(spender, today);
      return undefined;
    });
    this.#ports.arm();
    if (refused !== undefined) return { ok: false, error: refused };
    const settle = ({ costUsd, tokens, input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }: OwnUse): void =>
      record({ costUsd: costUsd - need.costUsd, tokens: tokens - need.tokens, input, output, cacheRead, cacheWrite });
    return { ok: true, settle };
  }

  /** As much as a run may use, and no more than the limit itself, or as often that as the refused call needs. */
  #offer(full: Full, today: string): MoreOffer | undefined {
    const { scope, unit, missing } = full;
    if (scope === "guest" || scope === "guests") return undefined;
    const { runCostUsd, runTokens } = this.#limits;
    const ofRun = unit === "costUsd" ? runCostUsd : runTokens;
    const amount = enoughMore(Math.min(ofRun ?? full.limit, full.limit), missing);
    return {
      of: "period",
      raise: { scope, unit, period: periodOf(scope, today), amount },
      why: whyFull(full),
      setting: settingOf(scope, unit),
    };
  }
  #resumes(scope: Scope, at: number): string {
    if (scope === "month") return "the next month";
    const zone = this.#zone;
    return `${localTime(nextDay(at, zone), zone)} (${zone})`;
  }

  // ---------------------------------------------------------------- the owner

  /** 80 % of a limit of the day or the month: once. */
  #warn(spender: Spender, today: string): void {
    const limits = this.#limits;
    for (const scope of ["day", "month"] as const)
      for (const unit of UNITS) {
        const configured = limitOf(limits, scope, unit);
        if (configured === undefined || configured === 0) continue;
        const raised = this.#store.raised(scope, spender, today)[unit];
        const limit = configured + raised;
        const used = this.#store.used(scope, spender, today)[unit];
        if (shareOf(used, limit) < WARNED_SHARE) continue;
        const period = scope === "month" ? today.slice(0, 7) : today;
        this.#tell(
          `${scope}:${unit}:${period}:80:${limit}`,
          warning({ scope, unit, used, limit, ...allowedOf(raised) }, used >= limit),
          spender,
        );
      }
  }
  /** A limit that stopped a guest's conversation: the owner is told once. In the owner's own, the run's end says it. */
  #told(ask: SpendAsk, { answer, full }: { readonly answer: SpendAnswer; readonly full?: Full }): SpendAnswer {
    if (full !== undefined && (ask.guest !== undefined || !ask.identity.isOwnersSession)) {
      const { scope, unit, limit } = full;
      const period = dayOf(this.#ports.now(), this.#zone).slice(0, scope === "month" ? 7 : 10);
      const of = scope === "guest" ? ask.guest : undefined;
      this.#tell(`${scope}:${unit}:${period}:full:${limit}${of === undefined ? "" : `:${of}`}`, warning(full, true, of), spenderOf(ask));
      this.#ports.arm();
    }
    return answer;
  }
  /** In the conversation that spent it when it is the owner's, else in the main one. */
  #tell(key: string, text: string, { session, agent, guest }: Spender): void {
    const { config, now, sessions } = this.#ports;
    const named = canonicalKey(session, config.mainKey());
    const main = canonicalKey(`agent:${config.hasAgent(agent) ? agent : config.defaultAgentId()}:main`, config.mainKey());
    const isOwners = guest === "" && named.ok && sessions.isOwners(named);
    this.#store.tell({ key, session: isOwners || !main.ok ? session : main.key, text }, now());
  }
  tellAll(): void {
    const { notify, config } = this.#ports;
    for (const { key, session, text } of this.#store.untold(TOLD_AT_ONCE)) {
      const named = canonicalKey(session, config.mainKey());
      const inSession = named.ok && named.address.form !== "cron" ? { inSession: named.key } : {};
      const about = named.ok ? { agentId: named.address.agentId, ...inSession } : {};
      this.#store.transaction(() => {
        notify.tell({ kind: "budget", key: `spend:${key}`, cause: `spend:${key}`, text, ...about });
        this.#store.told(key);
      });
    }
  }
  nextTelling(): number | undefined {
    return this.#store.untold(1)[0]?.at;
  }

  // ---------------------------------------------------------------- the end of grants

  nextEnd(): number | undefined {
    return this.#store.grants(1)[0]?.until;
  }
  async endGrants(now: number): Promise<void> {
    await this.#settle(this.#store.grants(ASKED_AT_ONCE, now));
    this.#store.prune(daysBefore(dayOf(now, this.#zone), KEPT_DAYS), now - KEPT_DAYS * 86_400_000);
    this.#ports.arm();
  }
  async #settle(grants: readonly Grant[]): Promise<void> {
    await Promise.all(grants.map((grant) => this.#settleOne(grant)));
  }
  async #settleOne(grant: Grant): Promise<void> {
    const { ask, log, now } = this.#ports;
    const asked = ask(grant.session, (session) => session.spent()).catch((error: unknown) => {
      log.warn("spend_not_asked", { session: grant.session, error });
      return undefined;
    });
    const state = await within(afterTimeout, ASK_MS, asked, () => undefined);
    this.#store.transaction(() => this.#settled(grant, state, now()));
  }
  #settled(grant: Grant, state: SpendState | undefined, now: number): void {
    const isSame = this.#store.grant(grant.session)?.serial === grant.serial;
    if (state === undefined) {
      if (!isSame) return;
      const tries = grant.tries + 1;
      if (tries >= MOST_TRIES) this.#store.dropGrant(grant.session);
      else this.#store.putGrant({ ...grant, tries, until: now + RETRY_MS });
      return;
    }
    if (this.#store.record(grant, state.report)) this.#warn(grant, dayOf(now, this.#zone));
    // The session has got another grant meanwhile, which this answer knows nothing of.
    if (!isSame) return;
    const { costUsd, tokens } = state.open;
    if (costUsd === 0 && tokens === 0) this.#store.dropGrant(grant.session);
    else this.#store.putGrant({ ...grant, costUsd, tokens, tries: 0, until: now + LEASE_MS });
  }

  /** A session is being deleted: its last report. */
  sessionSpent({ key, agentId }: DeletedSession, { report }: SpendState): void {
    this.#store.transaction(() => this.#store.record({ session: key, agent: agentId }, report));
  }
  /** The session's usage stays. The next session of this name counts its calls from the beginning. */
  sessionGone(key: string): void {
    this.#store.forgetSession(key);
  }

  // ---------------------------------------------------------------- looking

  /** The setting of a limit that is used up for an agent's work. */
  full(agentId: string): string | undefined {
    const today = dayOf(this.#ports.now(), this.#zone);
    const spender = { ...EVERYONE, agent: agentId };
    for (const scope of ["day", "month", "agent"] as const)
      for (const unit of UNITS) {
        const configured = limitOf(this.#limits, scope, unit);
        if (configured === undefined) continue;
        const limit = configured + this.#store.raised(scope, spender, today)[unit];
        if (this.#store.used(scope, spender, today)[unit] >= limit) return settingOf(scope, unit);
      }
    return undefined;
  }

  async usage(by: UsageBy, days: number): Promise<ResultOf<"usage.get">> {
    await this.#settle(this.#store.grants(ASKED_AT_ONCE));
    const zone = this.#zone;
    const today = dayOf(this.#ports.now(), zone);
    const from = daysBefore(today, days - 1);
    const rows = this.#store.usage(by, from, ROWS + 1);
    const caps = this.#caps(today);
    return {
      from,
      today,
      timeZone: zone,
      rows: rows.slice(0, ROWS),
      more: rows.length > ROWS,
      total: this.#store.total(from),
      caps: caps.map(({ cap }) => cap),
      attention: caps.flatMap(({ cap, scope, unit }) =>
        shareOf(cap.used, cap.limit) < WARNED_SHARE || cap.used === 0
          ? []
          : [warning({ scope, unit, used: cap.used, limit: cap.limit, ...allowedOf(cap.allowed ?? 0) }, cap.used >= cap.limit, cap.of)],
      ),
    };
  }
  #caps(today: string): readonly { readonly cap: UsageCap; readonly scope: Scope; readonly unit: Unit }[] {
    const limits = this.#limits;
    return SCOPES.flatMap((scope) =>
      UNITS.flatMap((unit) => {
        const limit = limitOf(limits, scope, unit);
        if (limit === undefined) return [];
        const cap = (used: Amount, spender: Spender, of?: string) => {
          const raised = this.#store.raised(scope, spender, today)[unit];
          return {
            scope,
            unit,
            cap: {
              setting: settingOf(scope, unit),
              used: used[unit],
              reserved: this.#store.reserved(scope, spender)[unit],
              limit: limit + raised,
              ...allowedOf(raised),
              ...(of === undefined ? {} : { of }),
            },
          };
        };
        if (scope === "session" || scope === "agent" || scope === "guest")
          return this.#store
            .largest(scope, today, LISTED)
            .flatMap(({ key, used }) => (used[unit] === 0 ? [] : [cap(used, { ...EVERYONE, [scope]: key }, key)]));
        return [cap(this.#store.used(scope, EVERYONE, today), EVERYONE)];
      }),
    ).slice(0, 200);
  }
}
const NO_CALLS = { calls: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, costUsd: 0, tokens: 0 } as const;
const EVERYONE: Spender = { session: "", agent: "", guest: "" };
const spenderOf = ({ identity, guest }: SpendAsk): Spender => ({ session: identity.key, agent: identity.agentId, guest: guest ?? "" });
