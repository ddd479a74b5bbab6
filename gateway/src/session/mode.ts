/** The mode of one session: who may set it, for how long, and how it is told to people (rule PO8). PURE. */
import type { Directives, PolicyMode, SessionSettings } from "../../../protocol/gen/types.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import { DEFAULT_MODE } from "../policy/decide.ts";
import { failure, type Result } from "../ports/result.ts";
import { localDay, localTime } from "../prompt/dates.ts";

const HOUR_MS = 3_600_000;
/** How long `full` holds when no time is given. */
const FULL_MS = HOUR_MS;
const MAX_MODE_MS = 24 * HOUR_MS;

/** The session's own mode at a time of the wall clock. Undefined: as configured. */
export const modeAt = ({ mode, modeUntil }: Pick<SessionSettings, "mode" | "modeUntil">, wall: number): PolicyMode | undefined =>
  modeUntil !== undefined && modeUntil <= wall ? undefined : mode;

/** The mode of a run: that of its own message, else the session's. Undefined: as configured. */
export const runModeAt = (directives: Directives | undefined, settings: SessionSettings, wall: number): PolicyMode | undefined =>
  modeAt(directives ?? {}, wall) ?? modeAt(settings, wall);

export interface ModeChange {
  readonly mode: PolicyMode;
  readonly modeMs?: number | undefined;
}
interface Setter {
  /** The session is the owner's own. */
  readonly isOwners: boolean;
  /** A client of the owner sets it, not a message on a channel. */
  readonly byClient: boolean;
  readonly wall: number;
}
export function changedMode({ mode, modeMs }: ModeChange, { isOwners, byClient, wall }: Setter): Result<SessionSettings> {
  if (!isOwners) return failure("auth.forbidden", "A mode can be set in your own conversations only: in this one other people take part.");
  if (mode === "full" && !byClient)
    return failure("auth.forbidden", "Mode full can be set by your own client only. On your machine run: `gsv chat '/mode full'`.");
  const ms = modeMs ?? (mode === "full" ? FULL_MS : undefined);
  if (ms !== undefined && !(ms > 0 && ms <= MAX_MODE_MS)) return failure("protocol.invalid_params", "A mode holds for at most 24 hours.");
  return { ok: true, value: { mode, ...(ms === undefined ? {} : { modeUntil: wall + ms }) } };
}

/** The mode of one message. `full` ends after the longest time that a mode may hold, however long its message waits. */
export function messageMode(mode: PolicyMode, setter: Setter): Result<Directives> {
  const changed = changedMode({ mode, ...(mode === "full" ? { modeMs: MAX_MODE_MS } : {}) }, setter);
  return changed.ok ? { ok: true, value: changed.value } : changed;
}

/** `full until 2026-11-22 14:05 (UTC)`. */
export function modeText(mode: PolicyMode, modeUntil: number | undefined, zone: string): string {
  if (modeUntil === undefined) return mode;
  const { today, timeZone } = localDay(modeUntil, zone);
  return `${mode} until ${today} ${localTime(modeUntil, zone)} (${timeZone})`;
}
/** For `/status` and `/mode`. */
export function currentMode(
  settings: SessionSettings,
  config: EffectiveConfig | undefined,
  wall: number,
  run?: { readonly directives: Directives },
): string {
  const ofRun = run && modeAt(run.directives, wall);
  const rest = sessionMode(settings, config, wall);
  return ofRun === undefined ? rest : `${ofRun} for the message of this run; else ${rest}`;
}
function sessionMode(settings: SessionSettings, config: EffectiveConfig | undefined, wall: number): string {
  const own = modeAt(settings, wall);
  if (own !== undefined) return modeText(own, settings.modeUntil, config?.userTimezone ?? "UTC");
  const configured = config?.toolApproval?.mode;
  if (configured !== undefined) return `${configured}, as configured`;
  const rest = config?.toolApproval?.defaultDecision;
  if (rest === undefined) return `${DEFAULT_MODE}, the default`;
  return rest === "allow" ? "not set: what no rule decides runs" : `not set: what no rule decides ${rest === "ask" ? "asks" : "is denied"}`;
}

/** `90m`, `2h`, `1d`, as milliseconds; undefined: not a time of up to 24 hours. */
export function modeTime(text: string): number | undefined {
  const [, count = "", unit = ""] = /^([0-9]{1,4})(m|h|d)$/i.exec(text) ?? [];
  const ms = Number(count) * ({ m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS }[unit.toLowerCase()] ?? Number.NaN);
  return ms > 0 && ms <= MAX_MODE_MS ? ms : undefined;
}
