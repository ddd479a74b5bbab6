/** PURE. The argument `wait` of a call of a machine's tool: how long the call may wait for the machine (OM1). */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { isJsonObject, type JsonObject } from "../../../protocol/runtime/json-object.ts";
import { readDuration } from "../schedule/duration.ts";

export const WAIT = "wait";

/** Ms of a text such as "2h" or "1h30m"; "0" is 0. Undefined: it is none, or a longer one than a call may wait. */
export function readWait(text: string): number | undefined {
  const ms = text.trim() === "0" ? 0 : readDuration(text);
  return ms === undefined || ms > LIMITS.nodeWaitMs ? undefined : ms;
}
/** The two largest units of a time, as a person says it. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const [h, m, s] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60), seconds % 60];
  const parts = [
    [h, "h"],
    [m, "min"],
    [s, "s"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).slice(0, 2);
  return shown.length === 0 ? "0 s" : shown.map(([count, unit]) => `${count} ${unit}`).join(" ");
}

export type AskedWait =
  /** `waitMs` absent: the call does not wait. `isAsked`: the call has the argument, which the machine does not get. */
  | { readonly ok: true; readonly waitMs?: number; readonly isAsked: boolean; readonly args: unknown }
  | { readonly ok: false; readonly problem: string };
/** The wait that a call asks for, and its arguments without it. `byDefault`: of the run. */
export function askedWait(name: string, args: unknown, inputSchema: unknown, byDefault: number | undefined): AskedWait {
  const whole: AskedWait = { ok: true, ...(byDefault ? { waitMs: byDefault } : {}), isAsked: false, args };
  if (!isJsonObject(args) || !Object.hasOwn(args, WAIT) || hasOwnWait(inputSchema)) return whole;
  const asked = args[WAIT];
  const ms = typeof asked === "string" ? readWait(asked) : undefined;
  if (ms === undefined) return { ok: false, problem: `Not run: \`${WAIT}\` of ${name} is a time such as "2h" or "30m", at most "24h".` };
  return { ok: true, ...(ms > 0 ? { waitMs: ms } : {}), isAsked: true, args: withoutWait(args) };
}
/** The arguments that the machine gets. */
export function withoutWait({ [WAIT]: _wait, ...args }: JsonObject): JsonObject {
  return args;
}
/** A tool that has such an argument itself keeps it. */
function hasOwnWait(schema: unknown): boolean {
  const properties: unknown = isJsonObject(schema) ? schema["properties"] : undefined;
  if (!isJsonObject(properties) || !Object.hasOwn(properties, WAIT)) return false;
  return JSON.stringify(properties[WAIT]) !== JSON.stringify(WAIT_PROPERTY);
}
const WAIT_PROPERTY = { type: "string", description: 'Wait this long for the machine: "2h", at most "24h".' } as const;

/** The schema of a tool's arguments with `wait`. A schema that lists no properties, or has one of this name, is left as it is. */
export function withWait(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties } = schema;
  if (!isJsonObject(properties) || Object.hasOwn(properties, WAIT)) return schema;
  return { ...schema, properties: { ...properties, [WAIT]: WAIT_PROPERTY } };
}
