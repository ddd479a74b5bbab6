/** The text of a notification, alone or with others that had to wait (rules NT3, NT4). PURE. */
import { localTime } from "../prompt/dates.ts";

export interface Said {
  readonly cause: string;
  readonly text: string;
  readonly createdAt: number;
  /** Others with the same cause that have no row. */
  readonly more: number;
}
const LISTED = 10;
const LINE_CHARS = 300;
const MAX_CHARS = 4_000;

/** `said`: the oldest first, at least one. */
export function digestText(said: readonly Said[], timeZone: string): string {
  const [first] = said;
  if (first === undefined) return "";
  const causes = [...Map.groupBy(said, ({ cause }) => cause).values()].map((same) => ({
    text: same.at(-1)?.text ?? "",
    count: same.reduce((sum, { more }) => sum + 1 + more, 0),
  }));
  const count = causes.reduce((sum, cause) => sum + cause.count, 0);
  const [only] = causes;
  if (count === 1 || only === undefined) return first.text.slice(0, MAX_CHARS);
  const since = `${localTime(first.createdAt, timeZone)} (${timeZone})`;
  const list = "`gsv notifications` lists them.";
  if (causes.length === 1)
    return `${only.text.slice(0, MAX_CHARS - 200)}\n(The latest of ${count} such notifications since ${since}; ${list})`;
  const lines = causes
    .slice(0, LISTED)
    .map((cause) => `- ${firstLine(cause.text, LINE_CHARS)}${cause.count > 1 ? ` (${cause.count} times)` : ""}`);
  const left = causes.length - LISTED;
  return [`${count} notifications since ${since}:`, ...lines, ...(left > 0 ? [`- and ${left} more causes`] : []), list].join("\n");
}
/** One line, for a desktop or a list. */
export function firstLine(text: string, most: number): string {
  const line =
    text
      .split("\n")
      .find((each) => each.trim() !== "")
      ?.trim() ?? "";
  return line.length <= most ? line : `${line.slice(0, most - 3)}...`;
}
