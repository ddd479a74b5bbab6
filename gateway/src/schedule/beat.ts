/**
 * When a heartbeat comes (rules HB1, HB2). PURE. Beats are the multiples of the interval inside the active hours, and the moment at which
 * the hours begin; so no alarm is set for the night.
 */
import type { HeartbeatConfig } from "../../../protocol/gen/types.ts";
import { failure, type Result, succeed } from "../ports/result.ts";
import { parseTarget } from "../tools/message-target.ts";
import { type CronLine, MAX_EVERY_MS, MIN_EVERY_MS } from "./schedule.ts";
import { readDuration } from "./duration.ts";
import { isZone, localTimeOf, momentOf } from "./zone.ts";

/** Minutes of the local day. `end` may be before `start`: then the hours go over midnight. */
export interface Hours {
  readonly start: number;
  readonly end: number;
  readonly tz: string;
}
export interface BeatSettings {
  readonly everyMs: number;
  readonly prompt?: string;
  /** `last`, `none`, or a full place. */
  readonly target: string;
  readonly hours?: Hours;
}
export const LAST = "last";
export const NONE = "none";

const DAY_MINUTES = 24 * 60;
const MINUTE_MS = 60_000;
const bad = (message: string): Result<never> => failure("config.invalid", message);

/** The agent's own settings before those of all agents. The value undefined: there is no heartbeat. */
export function beatSettings(
  own: HeartbeatConfig | undefined,
  all: HeartbeatConfig | undefined,
  userTimezone: string,
): Result<BeatSettings | undefined> {
  const { every, prompt, target = LAST, activeHours } = { ...all, ...own };
  if (every === undefined || every.trim() === "0") return succeed(undefined);
  const everyMs = readDuration(every);
  if (everyMs === undefined || everyMs < MIN_EVERY_MS || everyMs > MAX_EVERY_MS)
    return bad(
      `\`${every}\` is not an interval of a heartbeat. Intervals are such as \`30m\` or \`2h30m\`, at least \`1m\`; \`0\` is off.`,
    );
  if (target !== LAST && target !== NONE && parseTarget(target)?.accountId === undefined)
    return bad(
      `\`${target}\` is not a target of a heartbeat. Targets are \`last\`, \`none\`, and places such as \`whatsapp/default/dm/ID\`.`,
    );
  const hours = hoursOf(activeHours, userTimezone);
  if (!hours.ok) return hours;
  return succeed({
    everyMs,
    target,
    ...(prompt === undefined ? {} : { prompt }),
    ...(hours.value === undefined ? {} : { hours: hours.value }),
  });
}
/** Hours of the day from settings. The value undefined: the whole day. */
export function hoursOf(given: HeartbeatConfig["activeHours"], userTimezone: string): Result<Hours | undefined> {
  if (given === undefined || (given.start === undefined && given.end === undefined)) return succeed(undefined);
  const { start = "00:00", end = "24:00", timezone = userTimezone } = given;
  const [from, to] = [minutesOf(start), minutesOf(end)];
  if (from === undefined || to === undefined || from === DAY_MINUTES)
    return bad(`\`${start}\` to \`${end}\` are not hours of a day. Hours are such as \`08:00\` and \`22:30\`.`);
  if (from === to) return bad(`The hours \`${start}\` to \`${end}\` are empty. Leave them out for the whole day.`);
  if (!isZone(timezone)) return bad(`There is no time zone \`${timezone}\`. Zones have names such as \`Europe/Amsterdam\`.`);
  return succeed({ start: from, end: to, tz: timezone });
}
function minutesOf(text: string): number | undefined {
  const match = /^(\d{1,2}):(\d{2})$/.exec(text.trim());
  if (match === null) return undefined;
  const [hour, minute] = [Number(match[1]), Number(match[2])];
  const minutes = hour * 60 + minute;
  return minute > 59 || minutes > DAY_MINUTES ? undefined : minutes;
}

export function isWithin({ start, end, tz }: Hours, at: number): boolean {
  const { hour, minute } = localTimeOf(at, tz);
  const now = hour * 60 + minute;
  return start < end ? now >= start && now < end : now >= start || now < end;
}

/** The moment of a minute of the local day, `ahead` days after the day of `near`. */
export function momentOnDay(near: number, ahead: number, minutes: number, tz: string): number {
  const { year, month, day } = localTimeOf(near, tz);
  const date = new Date(Date.UTC(year, month - 1, day + ahead));
  const local = { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
  return momentOf({ ...local, hour: Math.floor(minutes / 60) % 24, minute: minutes % 60 }, tz) ?? near;
}
function nextOpening({ start, tz }: Hours, after: number): number {
  for (const ahead of [0, 1, 2]) {
    const moment = momentOnDay(after, ahead, start, tz);
    if (moment > after) return moment;
  }
  return after + DAY_MINUTES * MINUTE_MS;
}
/** The last beginning of the hours up to and including a moment. */
function openingBefore({ start, tz }: Hours, at: number): number {
  for (const back of [0, -1, -2]) {
    const moment = momentOnDay(at, back, start, tz);
    if (moment <= at) return moment;
  }
  return at - DAY_MINUTES * MINUTE_MS;
}

function after({ everyMs, hours }: BeatSettings, at: number): number {
  const next = (Math.floor(at / everyMs) + 1) * everyMs;
  if (hours === undefined) return next;
  const opening = nextOpening(hours, at);
  return isWithin(hours, next) ? Math.min(next, opening) : opening;
}
/** The last beat up to and including a moment. */
function upTo({ everyMs, hours }: BeatSettings, at: number): number {
  const last = Math.floor(at / everyMs) * everyMs;
  if (hours === undefined) return last;
  const opening = openingBefore(hours, at);
  // When the hours are over, the last beat lies before their end.
  const ahead = hours.end > hours.start ? 0 : 1;
  const end = momentOnDay(opening, ahead + (hours.end === DAY_MINUTES ? 1 : 0), hours.end % DAY_MINUTES, hours.tz);
  const inside = at < end ? last : Math.floor((end - 1) / everyMs) * everyMs;
  return Math.max(inside, opening);
}
/** The beats in the form in which the scheduler asks for times. */
export const beatLine = (settings: BeatSettings): CronLine => ({
  after: (at) => after(settings, at),
  before(at, most) {
    const times: number[] = [];
    for (let time = upTo(settings, at); times.length < most; time = upTo(settings, time - 1)) times.push(time);
    return times;
  },
});
