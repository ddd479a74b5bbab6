/** The log of a component beside the gateway: it gets the secrets that it must mask from the gateway. */
import { createAskingLog } from "../platform/asking-log.ts";
import { systemClock } from "../platform/clock.ts";
import type { Env } from "../platform/env.ts";
import { consoleSink, type Logger } from "../platform/log.ts";
import { gatewayPort } from "../platform/stubs.ts";

export const askingLog = (component: string, env: Env, ctx: Pick<ExecutionContext, "waitUntil">): Logger =>
  createAskingLog({
    component,
    clock: systemClock,
    secrets: () => gatewayPort(env).secretValues(),
    keep: (work) => ctx.waitUntil(work),
    sink: consoleSink,
  });
