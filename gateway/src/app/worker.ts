/**
 * The Worker: answers HTTP. Authenticates each request first, then passes it on; everything but /health, /join, hooks and the channels' webhooks
 * needs a token. What it keeps in memory (instance.ts) only saves calls to the Gateway object.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { allowedHosts, type Env, isEmbedded, versionOf, webhookChannel } from "../platform/env.ts";
import { askingLog } from "./asking-log.ts";
import { healthResponse } from "./http/health.ts";
import { HookDoor } from "./http/hook.ts";
import { jobsResponse } from "./http/jobs.ts";
import { joinResponse } from "./http/join.ts";
import { mediaResponse } from "./http/media.ts";
import { failureResponse, methodRefused, problemResponse } from "./http/problem.ts";
import type { route as Route } from "./http/routes.lazy.ts";
import { runResponse } from "./http/run.ts";
import { Slots } from "./http/slots.ts";
import { uploadResponse } from "./http/upload.ts";
import { addressOf, hostAllowed } from "./http/hosts.ts";
import { Webhooks } from "./http/webhook.ts";
import { instance } from "./instance.ts";
import { bearerToken } from "../kernel/bearer.ts";
import { systemClock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { gatewayStub } from "../platform/stubs.ts";
import type { HttpCaller, UploadAsked } from "../ports/http.ts";
import { databaseFault, storageFault } from "../ports/storage-fault.ts";

export { AgentJob } from "./agent-job-do.ts";
export { Gateway } from "./gateway-do.ts";
export { GatewayEntrypoint } from "./gateway-service.ts";
export { ReaderService } from "./reader-service.ts";
export { SearchIndex } from "./search-index-do.ts";
export { Session } from "./session-do.ts";

/** How the name of the dead-letter queue ends. */
const DEAD_LETTERS = "-dead-letter";
const EVENT_RETRY_SECONDS = 30;
/** Any key: a `head` of it makes the bucket open its table. */
const ANY_KEY = "agents";
/** How long an answer about newer state waits for the databases and the bucket to open. */
const OPENED_MS = 5000;
const hooks = new HookDoor();
const webhooks = new Webhooks(() => systemClock.now());

async function answer(request: Request, env: Env, ctx: ExecutionContext, isKnownServer: boolean): Promise<Response> {
  const log = askingLog("worker", env, ctx);
  try {
    return await respond(request, env, ctx, log, isKnownServer);
  } catch (error) {
    log.error("request_failed", { error });
    const { reason, message } = storageFault(error);
    return problemResponse(reason, message);
  }
}

/**
 * Requests of other machines, over TLS with the gateway's own certificate (gateway rule RM6). A page under a foreign name does not come
 * here: its browser expects a certificate of that name.
 */
export const Remote = {
  fetch: (request, env, ctx): Promise<Response> => answer(request, env, ctx, true),
} satisfies ExportedHandler<Env>;

export default {
  fetch: (request, env, ctx): Promise<Response> => answer(request, env, ctx, false),
  /** Domain events (gateway rule EV3). The gateway keeps the log; a message that it does not settle comes again. */
  async queue(batch, env, ctx): Promise<void> {
    const log = askingLog("worker", env, ctx);
    const isDead = batch.queue.endsWith(DEAD_LETTERS);
    const settle = async (message: Message): Promise<void> => {
      try {
        const settled = await gatewayStub(env).consumeEvent(JSON.stringify(message.body) ?? "", isDead);
        if (settled.kind === "ack") message.ack();
        else message.retry({ delaySeconds: settled.delaySeconds });
      } catch (error) {
        log.error("event_not_consumed", { error });
        message.retry({ delaySeconds: EVENT_RETRY_SECONDS });
      }
    };
    await Promise.all(batch.messages.map(settle));
  },
} satisfies ExportedHandler<Env>;

/** The routes of the HTTP contract, with the library that reads them: a part of its own, because sockets and webhooks need none of it. */
const route: (...given: Parameters<typeof Route>) => Promise<Response> = async (...given) =>
  (await import("./http/routes.lazy.ts")).route(...given);

async function respond(request: Request, env: Env, ctx: ExecutionContext, log: Logger, isKnownServer: boolean): Promise<Response> {
  const url = addressOf(request);
  if (url === undefined) return problemResponse("auth.host", "The request's Host header is not valid.", { status: 400 });
  // A page under a foreign name (DNS rebinding) cannot sign a delivery, so hooks answer behind a tunnel of any name.
  if (url.pathname.startsWith("/hooks/")) return hook(request, env, url.pathname);
  if (isEmbedded(env) && !isKnownServer && !hostAllowed(request.headers.get("Host") ?? url.host, allowedHosts(env)))
    return problemResponse("auth.host");
  const onError = (error: unknown): void => log.error("route_failed", { path: url.pathname, error });
  if (url.pathname === "/health") {
    if (request.method !== "GET") return methodRefused("GET", "Send a GET request.");
    if (isEmbedded(env) && url.searchParams.has("state")) return await stateHealth(env, log);
    const refused = isEmbedded(env) && url.searchParams.has("start") ? await newerState(env, log) : undefined;
    if (refused !== undefined) return refused;
    resumeOnce(env, ctx, log);
    return healthResponse(versionOf(env));
  }
  if (url.pathname === "/ws") {
    if (request.method !== "GET")
      return methodRefused("GET", "This address speaks WebSocket: send a GET request with `Upgrade: websocket`.");
    return gatewayStub(env).fetch(request);
  }
  if (url.pathname === "/media") return receive(request, env, url);
  if (url.pathname === "/join") return join(request, env);
  if (url.pathname === "/run") return run(request, env);
  if (url.pathname === "/jobs" || url.pathname.startsWith("/jobs/")) return jobs(request, env, url);
  if (url.pathname.startsWith("/channels/")) return webhook(request, env);
  const refused = await refuse(request, env);
  if (refused !== undefined) return refused;
  if (url.pathname.startsWith("/media/")) return media(request, env, url.pathname);
  return route(request, onError);
}

/** The refusal; undefined when the request has a token that may read. */
async function refuse(request: Request, env: Env): Promise<Response | undefined> {
  const asker = askerOf(request, env);
  // Strangers without a token don't wake the gateway.
  if (asker.token === undefined && instance.hasToken) return problemResponse("auth.required");
  return refusalOf(asker, env, "read");
}
/** The refusal of a caller; undefined when its token has the scope. */
async function refusalOf(asker: HttpCaller, env: Env, scope: "read" | "chat"): Promise<Response | undefined> {
  const outcome = await gatewayStub(env).authenticate(asker);
  instance.hasToken ||= outcome.ok || outcome.error.reason !== "auth.not_configured";
  if (!outcome.ok) return failureResponse(outcome.error);
  return outcome.value.scopes.includes(scope) ? undefined : problemResponse("auth.forbidden", "This needs a client or admin token.");
}

/** A platform's request to a channel, which checks the platform's signature. */
async function webhook(request: Request, env: Env): Promise<Response> {
  return (await closed(env)) ?? webhooks.respond(request, (name) => webhookChannel(env, name));
}

/** Undefined: there is a token. Before the first one exists, everything is closed. */
async function closed(env: Env): Promise<Response | undefined> {
  if (instance.hasToken) return undefined;
  const outcome = await gatewayStub(env).authenticate({ address: "" });
  if (!outcome.ok && outcome.error.reason === "auth.not_configured") return problemResponse("auth.not_configured");
  instance.hasToken = true;
  return undefined;
}
async function hook(request: Request, env: Env, path: string): Promise<Response> {
  return (await closed(env)) ?? hooks.respond(request, path, () => gatewayStub(env));
}

/** `POST /join`: the secret of an invitation is the proof. */
async function join(request: Request, env: Env): Promise<Response> {
  return (await closed(env)) ?? joinResponse(request, askerOf(request, env).address, () => gatewayStub(env));
}

/** `POST /run`. Tasks need other rights than reads, so they have an admission of their own. */
async function run(request: Request, env: Env): Promise<Response> {
  const asker = askerOf(request, env);
  if (asker.token === undefined) return (await closed(env)) ?? problemResponse("auth.required");
  return asTaskCaller(asker, env, () => runResponse(request, asker, () => gatewayStub(env)));
}
/** Answers a caller who may chat. No body of a stranger is read. */
async function asTaskCaller(asker: HttpCaller, env: Env, work: () => Promise<Response>): Promise<Response> {
  const callers = instance.admitted;
  const isKnown = callers.has(asker);
  // Callers that have lost the right meanwhile must not take every slot.
  const release = isKnown ? admittedSlots.take("tasks") : undefined;
  if (release === undefined) {
    const refused = await refusalOf(asker, env, "chat");
    if (refused !== undefined) callers.remove(asker);
    else callers.add(asker);
    return refused ?? work();
  }
  const answer = await work().finally(release);
  if (answer.ok) return answer;
  // The gateway has refused the caller itself. Any other refusal says why, which a caller that has lost the right must not learn.
  const refused = REFUSED_CALLER.has(answer.status) ? answer : await refusalOf(asker, env, "chat");
  if (refused !== undefined) callers.remove(asker);
  return refused ?? answer;
}
/** For the bodies of callers whose token is not checked again first. */
const admittedSlots = new Slots(LIMITS.taskBodiesAtOnce / 2);
const REFUSED_CALLER: ReadonlySet<number> = new Set([401, 403]);

/** `/jobs`. A token that may only read may look at jobs. */
async function jobs(request: Request, env: Env, url: URL): Promise<Response> {
  const asker = askerOf(request, env);
  if (asker.token === undefined) return (await closed(env)) ?? problemResponse("auth.required");
  const respondTo = (): Promise<Response> => jobsResponse(request, url, asker, () => gatewayStub(env));
  if (request.method === "POST" && url.pathname === "/jobs") return asTaskCaller(asker, env, respondTo);
  return (await refusalOf(asker, env, request.method === "GET" ? "read" : "chat")) ?? respondTo();
}

function askerOf(request: Request, env: Env): HttpCaller {
  const token = bearerToken(request.headers.get("Authorization"));
  const origin = request.headers.get("Origin");
  return {
    ...(token === undefined ? {} : { token }),
    ...(origin === null ? {} : { origin }),
    address: isEmbedded(env) ? "" : (request.headers.get("CF-Connecting-IP") ?? ""),
  };
}

/** `POST /media`. Uploads need other rights than reads, so they have an admission of their own. */
async function receive(request: Request, env: Env, url: URL): Promise<Response> {
  const asker = askerOf(request, env);
  if (asker.token === undefined && instance.hasToken) return problemResponse("auth.required");
  const asked: UploadAsked = Object.fromEntries(
    (["sessionKey", "callId", "id"] as const).flatMap((name) => {
      const value = url.searchParams.get(name);
      return value === null || value.length > 1024 ? [] : [[name, value]];
    }),
  );
  const permit = await gatewayStub(env).admitUpload(asker, asked);
  instance.hasToken ||= permit.ok || permit.error.reason !== "auth.not_configured";
  if (!permit.ok && permit.error.reason.startsWith("auth.")) return failureResponse(permit.error);
  if (request.method !== "POST") return methodRefused("POST", "Files are uploaded here: send a POST request.");
  if (!permit.ok) return failureResponse(permit.error);
  return uploadResponse(env.STORAGE, request, permit.value, systemClock.now());
}

function media(request: Request, env: Env, path: string): Promise<Response> | Response {
  if (request.method !== "GET") return methodRefused("GET", "Media can only be read here.");
  try {
    return mediaResponse(env.STORAGE, decodeURIComponent(path.slice("/media/".length)));
  } catch {
    return problemResponse("path.not_found", "There is no such media file.");
  }
}

/** What the supervisor asks at the first start of another version (gateway rule UP2). Costs work once, because it needs no token. */
async function stateHealth(env: Env, log: Logger): Promise<Response> {
  instance.stateChecked ??= gatewayStub(env).checkState();
  try {
    await instance.stateChecked;
    return healthResponse(versionOf(env));
  } catch (error) {
    log.error("state_refused", { error });
    const { reason, message = databaseFault(error) } = storageFault(error);
    return problemResponse(reason, message);
  }
}

/**
 * The refusal when a newer version has written the state, for which the supervisor asks at each start (gateway rule UP2). Other faults are
 * reported by the requests that meet them, and a slow disk does not delay the start further. Does its work once, because the request needs no token.
 */
async function newerState(env: Env, log: Logger): Promise<Response | undefined> {
  instance.opened ??= Promise.allSettled([gatewayStub(env).opened(), env.STORAGE.head(ANY_KEY)]);
  const outcomes = await Promise.race([instance.opened, scheduler.wait(OPENED_MS)]);
  for (const outcome of outcomes ?? []) {
    if (outcome.status === "fulfilled") continue;
    log.error("state_not_opened", { error: outcome.reason });
    const { reason, message } = storageFault(outcome.reason);
    if (reason === "storage.newer_version") return problemResponse(reason, message);
  }
  return undefined;
}

/** On the edge, alarms resume sessions. An embedded runtime does it at its first /health (gateway rule D6). */
function resumeOnce(env: Env, ctx: ExecutionContext, log: Logger): void {
  if (instance.hasResumed || !isEmbedded(env)) return;
  instance.hasResumed = true;
  const resuming = gatewayStub(env)
    .restarted()
    .catch((error: unknown) => {
      instance.hasResumed = false;
      log.error("resume_failed", { error });
    });
  ctx.waitUntil(resuming);
}
