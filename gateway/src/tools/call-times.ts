/** How long a tool call may take (gateway rule G5): one rule for the calls of sessions and of clients. PURE. */
import type { ToolEntry } from "../ports/tool-entry.ts";

export interface CallTimes {
  /** The limit that the target is told. After this time it ends the call and reports what is known. */
  readonly timeoutMs: number;
  /** When the caller gives up, counted from the start of the call. */
  readonly deadlineMs: number;
}
export interface AskedTime {
  /** The caller's own limit. Absent or 0: none. */
  readonly wantedMs?: number | undefined;
  /** `timeouts.toolMs`. */
  readonly configuredMs: number;
}
const MAX_MS = 86_400_000;
const ROUND_TRIP_MS = 5_000;

/**
 * The caller's limit, else the tool's own, else the configured one. A command with a time limit of its own gets at least that and a
 * round trip, so that its own limit ends it first. A machine gets one more round trip to report how the call ended.
 */
export function callTimes(
  { definition, target, timeoutArgument }: Pick<ToolEntry, "definition" | "target" | "timeoutArgument">,
  args: unknown,
  { wantedMs, configuredMs }: AskedTime,
): CallTimes {
  const limit = positive(wantedMs) ?? positive(definition.timeoutMs) ?? configuredMs;
  const command =
    timeoutArgument === undefined || typeof args !== "object" || args === null ? undefined : Reflect.get(args, timeoutArgument);
  const stated = typeof command === "number" && Number.isFinite(command) && command > 0 ? command + ROUND_TRIP_MS : 0;
  const timeoutMs = bounded(Math.max(limit, stated));
  return { timeoutMs, deadlineMs: target.kind === "native" ? timeoutMs : bounded(timeoutMs + ROUND_TRIP_MS) };
}
const positive = (ms: number | undefined): number | undefined => (ms !== undefined && ms > 0 ? ms : undefined);
const bounded = (ms: number): number => Math.min(MAX_MS, Math.max(1, Math.round(ms)));
