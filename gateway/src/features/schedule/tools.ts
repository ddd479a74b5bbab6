/**
 * `gsv__Cron`: the agent keeps jobs and reminders. Only for the owner's sessions. A job that is asked for in a conversation on a channel
 * answers there, because the tool fills in the full place; no job writes to the person who happened to write last (rule SC8).
 */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { asAgentId, asSessionKey, type CronSchedule, type CronSpec } from "../../../../protocol/gen/types.ts";
import { readWait } from "../../calls/wait.ts";
import type { NativeToolContext } from "../../ports/native-tools.ts";
import type { Origin } from "../../ports/origin.ts";
import type { Failure, Result } from "../../ports/result.ts";
import type { CronCall } from "../../ports/schedule.ts";
import { isForeign } from "../../ports/taint.ts";
import { bad, type Field, flag, optional, text } from "../../tools/arguments.ts";
import { parseTarget } from "../../tools/message-target.ts";
import { denied, type Tool, tool } from "../../tools/tool.ts";
import { slugOf } from "./job.ts";

const ACTIONS = ["list", "runs", "add", "update", "remove", "run"] as const;
const MODES = ["task", "remind", "systemEvent"] as const;
const oneOf =
  <T extends string>(values: readonly T[]): Field<T> =>
  (name, value) => {
    const found = values.find((each) => each === value);
    return found === undefined
      ? bad(`\`${name}\` must be one of ${values.map((each) => `\`${each}\``).join(", ")}.`)
      : { ok: true, value: found };
  };
/** Whole seconds that calls of a job wait for a machine. */
const wait: Field<number> = (name, value) => {
  const ms = typeof value === "string" ? readWait(value) : undefined;
  return ms === undefined
    ? bad(`\`${name}\` must be a time such as "2h" or "30m", at most "24h"; "0" does not wait.`)
    : { ok: true, value: Math.round(ms / 1_000) };
};
interface When {
  readonly at: string | undefined;
  readonly every: string | undefined;
  readonly cron: string | undefined;
  readonly tz: string | undefined;
}
/** Undefined: none is given. */
function scheduleOf({ at, every, cron, tz }: When): Result<CronSchedule | undefined> {
  if ([at, every, cron].filter((one) => one !== undefined).length > 1) return bad("Use one of `at`, `every` and `cron`.");
  const zone = tz === undefined ? {} : { tz };
  if (at !== undefined) return { ok: true, value: { kind: "at", at, ...zone } };
  if (every !== undefined) return { ok: true, value: { kind: "every", every } };
  return { ok: true, value: cron === undefined ? undefined : { kind: "cron", expr: cron, ...zone } };
}
/** The conversation on a channel in which the job is asked for. */
function placeOf(origin: Origin | undefined): string | undefined {
  if (origin?.kind !== "channel" || origin.peer === undefined) return undefined;
  return `${origin.channel}/${origin.accountId}/${origin.peer.kind}/${origin.peer.id}`;
}
const specOf = (
  message: string,
  {
    mode,
    to,
    model,
    waitSeconds,
    here,
  }: {
    readonly mode: (typeof MODES)[number];
    readonly to: string | undefined;
    readonly model: string | undefined;
    readonly waitSeconds: number | undefined;
    readonly here: string;
  },
): CronSpec => {
  const sessionKey = asSessionKey(here);
  if (mode === "systemEvent") return { mode, text: message, sessionKey };
  if (mode === "remind") return { mode, text: message, ...(to === undefined ? {} : { to }), sessionKey };
  return {
    mode,
    message,
    ...(to === undefined ? { sessionKey } : { to }),
    ...(model === undefined ? {} : { model }),
    ...(waitSeconds === undefined ? {} : { waitSeconds }),
  };
};

/** The same call again names the same job. */
async function idOf(name: string, callId: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(callId));
  const suffix = toHex(digest.slice(0, 5));
  return `${slugOf(name)}-${suffix}`;
}

export const CRON_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__Cron",
      description:
        "Jobs and reminders. A `task` (default) runs in a conversation of its own and its answer is delivered; `remind` tells your human the message as it is; a `systemEvent` is a message to you here.",
      policyClass: "control",
      properties: {
        action: { type: "string", enum: ACTIONS },
        id: { type: "string" },
        name: { type: "string" },
        at: { type: "string", description: "`in 2h`, `tomorrow 9am`, `2026-11-23 09:00`" },
        every: { type: "string", description: "`30m`" },
        cron: { type: "string", description: "`0 9 * * mon-fri`" },
        tz: { type: "string" },
        message: { type: "string", description: "What to do, complete in itself." },
        mode: { type: "string", enum: MODES },
        to: { type: "string", description: "As gsv__Channels shows it; default here." },
        wait: { type: "string", description: "`8h`, for absent machines" },
        enabled: { type: "boolean" },
      },
    },
    {
      action: oneOf(ACTIONS),
      id: optional(text(64)),
      name: optional(text(128)),
      at: optional(text(128)),
      every: optional(text(32)),
      cron: optional(text(256)),
      tz: optional(text(64)),
      message: optional(text(8192)),
      mode: optional(oneOf(MODES)),
      to: optional(text(512)),
      model: optional(text(256)),
      wait: optional(wait),
      enabled: optional(flag),
    },
    async (args, context) => {
      if (!context.identity.isOwnersSession) return denied("Only the owner's own conversations may keep jobs.");
      const call = await callOf(args, context);
      if (!call.ok) return call;
      const told = await context.gateway.cron(call.value);
      if (!told.ok) return told;
      const { value, taint } = told.value;
      return { ok: true, result: value, taint: taint ?? { label: "self", source: "the jobs" } };
    },
    { refused: (args) => refused(args) },
  ),
];
type Args = When & {
  readonly action: (typeof ACTIONS)[number];
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly message: string | undefined;
  readonly mode: (typeof MODES)[number] | undefined;
  readonly to: string | undefined;
  readonly model: string | undefined;
  readonly wait: number | undefined;
  readonly enabled: boolean | undefined;
};
const NOT_WHOLE = "A job needs `name`, `message`, and one of `at`, `every` and `cron`.";
const NO_ID = "`id` is missing. `list` shows the jobs.";
/** The failure of a call that cannot work in any state of GSV. */
function refused(args: Args): Failure | undefined {
  const { action, id, name, message, mode, to, model, wait: waitSeconds } = args;
  if (action === "list" || action === "runs") return undefined;
  const schedule = scheduleOf(args);
  if (!schedule.ok) return schedule;
  if (action === "add") {
    if (name === undefined || message === undefined || schedule.value === undefined) return bad(NOT_WHOLE);
  } else {
    if (id === undefined) return bad(NO_ID);
    if (action !== "update") return undefined;
    if (message === undefined && (mode !== undefined || to !== undefined || model !== undefined || waitSeconds !== undefined))
      return bad("To change what a job does, give `message` too: it replaces the whole.");
  }
  if (to === undefined || mode === "systemEvent" || parseTarget(to) !== undefined) return undefined;
  return bad(`\`${to.slice(0, 100)}\` is not a place. Use \`to\` as gsv__Channels shows it.`);
}
async function callOf(args: Args, { identity, callId, runId, origin, taint }: NativeToolContext): Promise<Result<CronCall>> {
  const { action, id, name, message, mode, to, model, wait: waitSeconds, enabled } = args;
  const { agentId } = identity;
  const from = { sessionKey: identity.key, ...(origin === undefined ? {} : { origin }) };
  const wrong = refused(args);
  if (wrong !== undefined) return wrong;
  if (action === "list") return { ok: true, value: { kind: "list", agentId } };
  if (action === "runs") return { ok: true, value: { kind: "runs", agentId, id } };
  const schedule = scheduleOf(args);
  if (!schedule.ok) return schedule;
  // The owner's own texts need no label.
  const label = isForeign(taint) ? taint : undefined;
  const by = runId === undefined ? undefined : { callId, runId };
  if (action === "add") {
    if (name === undefined || message === undefined || schedule.value === undefined) return bad(NOT_WHOLE);
    const spec = specOf(message, { mode: mode ?? "task", to: to ?? placeOf(origin), model, waitSeconds, here: identity.key });
    const params = { id: await idOf(name, callId), name, agentId: asAgentId(agentId), schedule: schedule.value, spec };
    return {
      ok: true,
      value: { kind: "add", agentId, params: { ...params, ...(enabled === undefined ? {} : { enabled }) }, taint: label, by, from },
    };
  }
  if (id === undefined) return bad(NO_ID);
  if (action === "remove") return { ok: true, value: { kind: action, agentId, id } };
  if (action === "run") return { ok: true, value: { kind: action, agentId, id, from } };
  const spec =
    message === undefined
      ? {}
      : { spec: specOf(message, { mode: mode ?? "task", to: to ?? placeOf(origin), model, waitSeconds, here: identity.key }) };
  const patch = {
    ...(name === undefined ? {} : { name }),
    ...(enabled === undefined ? {} : { enabled }),
    ...(schedule.value === undefined ? {} : { schedule: schedule.value }),
    ...spec,
  };
  const isMaking = schedule.value !== undefined || message !== undefined;
  return { ok: true, value: { kind: "update", agentId, params: { id, patch }, taint: label, by: isMaking ? by : undefined, from } };
}
