/**
 * Times in words: `in 2 hours`, `tomorrow 9am`, `friday 17:30`, `2026-11-23 09:00`. PURE. A small grammar, so that a time is never
 * guessed: what it does not know is refused.
 */
import { readDuration } from "./duration.ts";
import { type LocalTime, localTimeOf, momentOf } from "./zone.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const NUMBERS: Readonly<Record<string, string>> = { a: "1", an: "1", one: "1", two: "2", three: "3", half: "0.5" };

const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const dayNumber = (word: string): number => (word.length < 3 ? -1 : DAYS.findIndex((day) => day.startsWith(word)));

interface Clock {
  readonly hour: number;
  readonly minute: number;
}
/** `9`, `9am`, `09:30`, `9:30 pm`, `noon`, `midnight`. */
function readClock(text: string): Clock | undefined {
  if (text === "noon") return { hour: 12, minute: 0 };
  if (text === "midnight") return { hour: 0, minute: 0 };
  const match = /^(\d{1,2})(?::(\d{2}))?\s*(am|pm)?$/.exec(text);
  if (match === null) return undefined;
  const [, hours = "", minutes, half] = match;
  const [given, minute] = [Number(hours), Number(minutes ?? "0")];
  if (half !== undefined && (given < 1 || given > 12)) return undefined;
  const hour = half === undefined ? given : (given % 12) + (half === "pm" ? 12 : 0);
  return hour > 23 || minute > 59 ? undefined : { hour, minute };
}

/** Undefined: the words are no time. The time may be over; the caller decides what that means. */
export function readTime(text: string, now: number, tz: string): number | undefined {
  const said = text.trim().replaceAll(/\s+/g, " ");
  const words = said.toLowerCase();
  return exactTime(said, tz) ?? relativeTime(words, now) ?? dayAndClock(words, now, tz);
}
function exactTime(said: string, tz: string): number | undefined {
  const match = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,3})?)?\s*(Z|[+-](?:0\d|1[0-4]):?[0-5]\d)?$/i.exec(said);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = match.slice(1, 6).map(Number);
  const [second, zone] = [Number(match[6] ?? "0"), match[7]];
  if (second > 59) return undefined;
  const moment = momentOf({ year, month, day, hour, minute }, zone === undefined ? tz : "UTC");
  return moment === undefined ? undefined : moment + second * 1000 - (zone === undefined ? 0 : offsetMs(zone));
}
function offsetMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d{2}):?(\d{2})$/.exec(zone) ?? [];
  return sign === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS);
}
function relativeTime(words: string, now: number): number | undefined {
  // `20m` alone can only mean "in 20 minutes".
  const rest = words.replace(/^in /, "").replace(/^half an hour$/, "30 minutes");
  const ms = readDuration(rest.replace(/^[a-z]+(?= )/, (word) => NUMBERS[word] ?? word));
  return ms === undefined ? undefined : now + ms;
}
/** `tomorrow 9am`, `next monday at noon`, `2026-11-23 9am`, `17:30` (the next one). A day alone means nine in the morning. */
function dayAndClock(words: string, now: number, tz: string): number | undefined {
  const today = localTimeOf(now, tz);
  const [, first = "", rest = ""] = /^(?:on |next |this )?(\S+)(?: (.*))?$/.exec(words) ?? [];
  const isNext = words.startsWith("next ");
  const date = /^(\d{4})-(\d{2})-(\d{2})$/.exec(first);
  const ahead = first === "today" ? 0 : first === "tomorrow" ? 1 : daysUntil(first, today, isNext);
  const named = date !== null || ahead !== undefined;
  const clockText = (named ? rest : words).replace(/^at /, "");
  const clock = named && clockText === "" ? { hour: 9, minute: 0 } : readClock(clockText);
  if (clock === undefined) return undefined;
  if (date !== null) {
    const [year = 0, month = 0, day = 0] = date.slice(1).map(Number);
    return momentOf({ year, month, day, ...clock }, tz);
  }
  if (named) {
    const at = momentOf(onDay(today, ahead ?? 0, clock), tz);
    // "friday 9am", said on a Friday at ten, is the next one.
    return at !== undefined && at <= now && dayNumber(first) >= 0 ? momentOf(onDay(today, (ahead ?? 0) + 7, clock), tz) : at;
  }
  const here = momentOf(onDay(today, 0, clock), tz);
  return here !== undefined && here > now ? here : momentOf(onDay(today, 1, clock), tz);
}
/** "next friday", said on a Friday, is in a week. */
function daysUntil(word: string, today: LocalTime, isNext: boolean): number | undefined {
  const wanted = dayNumber(word);
  if (wanted < 0) return undefined;
  const ahead = (wanted - new Date(Date.UTC(today.year, today.month - 1, today.day)).getUTCDay() + 7) % 7;
  return ahead === 0 && isNext ? 7 : ahead;
}
function onDay({ year, month, day }: LocalTime, ahead: number, clock: Clock): LocalTime {
  const date = new Date(Date.UTC(year, month - 1, day + ahead));
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate(), ...clock };
}
