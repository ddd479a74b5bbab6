/** Rows as they are stored, and back. PURE. */
import { STATE_ROW_BYTES } from "../machine/limits.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import type { LogRow } from "../machine/log.ts";
import type { IncomingMessage, State } from "../machine/state.ts";
import { type OriginOfRun, type StoredMessage, upgradeMessage, upgradeOrigin, upgradeState } from "./upgrade.ts";

export interface StoredRow {
  readonly seq: number;
  readonly kind: string;
  readonly run: string;
  readonly at: number;
  readonly body: string;
}
export function encodeRow(row: LogRow): StoredRow {
  const { seq, kind, runId, at, ...rest } = row;
  return { seq, kind, run: runId, at, body: bounded(JSON.stringify(rest), LIMITS.rowBytes, `the log row ${seq}`) };
}
/** Only this program writes rows, and migrations change them, so what is in the table has the shape that was put in. */
export function decodeRow({ seq, kind, run, at, body }: StoredRow): LogRow {
  const row: LogRow = { seq, kind, runId: run, at, ...JSON.parse(body) };
  return row.kind === "user" ? { ...row, origin: upgradeOrigin(row.origin) } : row;
}
export const encodeMessage = (message: IncomingMessage): string => JSON.stringify(message);
export function decodeMessage(body: string): IncomingMessage {
  const stored: StoredMessage = JSON.parse(body);
  return upgradeMessage(stored);
}

/** The state's parts: `session` changes with every message, the others seldom and can be large. Stored by position; new ones come last. */
export const STATE_PARTS = ["session", "settings", "previous", "summary", "work"] as const;
export type StatePart = (typeof STATE_PARTS)[number];
export function encodeState(before: State | undefined, state: State): readonly (readonly [StatePart, string])[] {
  const { settings, previousSessionIds, summary, work, ...core } = state;
  const large = (name: "summary" | "work", old: unknown, now: unknown): readonly (readonly [StatePart, string])[] =>
    old === now ? [] : [[name, bounded(JSON.stringify(now ?? null), LIMITS.rowBytes, `the ${name}`)]];
  return [
    ["session", bounded(JSON.stringify(core), STATE_ROW_BYTES, "the state row")],
    ...(before?.settings === settings || (!before && Object.keys(settings).length === 0)
      ? []
      : [["settings", JSON.stringify(settings)] as const]),
    ...(before?.previousSessionIds === previousSessionIds || (!before && previousSessionIds.length === 0)
      ? []
      : [["previous", bounded(JSON.stringify(previousSessionIds), LIMITS.rowBytes, "the list of earlier sessions")] as const]),
    ...large("summary", before?.summary, summary),
    ...large("work", before?.work, work),
  ];
}
/** Reads rows of earlier versions too (./upgrade.ts). Throws NewerStateError for those of a newer program. */
export function decodeState(parts: ReadonlyMap<string, string>, originOfRun: OriginOfRun): State | undefined {
  const core = parts.get("session");
  if (core === undefined) return undefined;
  const large = (name: "summary" | "work"): Partial<State> => {
    const value: unknown = JSON.parse(parts.get(name) ?? "null");
    return value === null ? {} : { [name]: value };
  };
  const stored: State = {
    ...JSON.parse(core),
    settings: JSON.parse(parts.get("settings") ?? "{}"),
    previousSessionIds: JSON.parse(parts.get("previous") ?? "[]"),
    ...large("summary"),
    ...large("work"),
  };
  return upgradeState(stored, originOfRun);
}

/** Half a million UTF-16 units are at most 768 KiB of UTF-8: a part always fits its row. */
const RESULT_PART_CHARS = 262_144;
/** Larger texts lose their middle; nodes keep no more than `LIMITS.toolResultBytes` of a call anyway. */
export function resultParts(text: string): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length && at < LIMITS.toolResultBytes; ) {
    let end = Math.min(text.length, at + RESULT_PART_CHARS);
    // Stored text is UTF-8: a surrogate pair must not be parted.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts;
}

class RowTooLargeError extends Error {
  override readonly name = "RowTooLargeError";
}
function bounded(body: string, maxBytes: number, what: string): string {
  if (body.length * 3 > maxBytes && utf8Bytes(body) > maxBytes)
    throw new RowTooLargeError(`${what} would be ${utf8Bytes(body)} bytes; at most ${maxBytes} are stored`);
  return body;
}
