/** `sessions.list` and `session.*`. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { followFrom } from "./follow.ts";
import { succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";
import { lookUp } from "./ownership.ts";
import { addressable, conversation, existing } from "./session-key.ts";

const list: Handler<"sessions.list"> = (services, _caller, params) => {
  const sessions = [...services.sessions.list(params.offset ?? 0, params.limit ?? LIMITS.pageItems)];
  return succeed({ sessions, count: services.sessions.count() });
};

const get: Handler<"session.get"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.get()) : found;
};
const stats: Handler<"session.stats"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.stats()) : found;
};
const history: Handler<"session.history"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.history()) : found;
};
const preview: Handler<"session.preview"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.preview(params.limit)) : found;
};

const messages: Handler<"session.messages"> = async (services, _caller, { sessionKey, offset, limit }) => {
  const found = existing(services, sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.messages(offset, limit)) : found;
};

const patch: Handler<"session.patch"> = async (services, _caller, { sessionKey, ...changes }) => {
  const found = existing(services, sessionKey);
  if (!found.ok) return found;
  const { key } = found.value;
  const result = await services.ask(key, (session) => session.patch(changes));
  if (result.ok && changes.label !== undefined) services.sessions.setLabel(key, changes.label);
  return result;
};

// A second reset would archive what the first one left: these two are asked once.
const reset: Handler<"session.reset"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.reset(), "once") : found;
};
const compact: Handler<"session.compact"> = async (services, _caller, params) => {
  const found = existing(services, params.sessionKey);
  return found.ok ? services.ask(found.value.key, (session) => session.compact(params.keepMessages), "once") : found;
};

/** Also of a session that does not exist yet: what its first message would get. */
const prompt: Handler<"session.prompt"> = async (services, _caller, params) => {
  const found = addressable(services, params.sessionKey);
  if (!found.ok) return found;
  const identity = lookUp(services.sessions, found.value, "none");
  return services.ask(identity.key, (session) => session.prompt(identity));
};

const subscribe: Handler<"session.subscribe"> = (services, { connection, requestId }, params) => {
  const known = existing(services, params.sessionKey);
  const found = known.ok ? known : addressable(services, params.sessionKey);
  if (!found.ok) return found;
  return followFrom(services, connection, found.value.key, params.afterSeq, requestId);
};

const unsubscribe: Handler<"session.unsubscribe"> = (services, { connection }, params) => {
  const found = conversation(services, params.sessionKey);
  // A key that is none is not followed either.
  if (found.ok) services.connections.unfollow(connection, found.value.key);
  return succeed({ ok: true });
};

export const sessionMethods = {
  "sessions.list": list,
  "session.get": get,
  "session.stats": stats,
  "session.history": history,
  "session.preview": preview,
  "session.messages": messages,
  "session.prompt": prompt,
  "session.patch": patch,
  "session.reset": reset,
  "session.compact": compact,
  "session.subscribe": subscribe,
  "session.unsubscribe": unsubscribe,
} as const satisfies Handlers;
