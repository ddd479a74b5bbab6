/** `chat.send` and `chat.abort`: on to the session, which alone decides and stores (gateway rule D1). */
import { utf8Bytes } from "../../../../protocol/runtime/codec.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import type { Handler, Handlers } from "../../app/services.ts";
import { takeUp } from "./ownership.ts";
import { addressable, conversation } from "./session-key.ts";

/** No `await` before the session is asked: messages of one sender arrive in the order in which they were sent (promises P3). */
const send: Handler<"chat.send"> = (services, { connection, now }, params) => {
  const { message, attachments } = params;
  if (message.length > LIMITS.messageBytes || (message.length * 3 > LIMITS.messageBytes && utf8Bytes(message) > LIMITS.messageBytes))
    return fail("chat.too_long");
  if (message.trim() === "" && (attachments?.length ?? 0) === 0) return fail("chat.empty");
  const found = addressable(services, params.sessionKey);
  if (!found.ok) return found;
  const { key } = found.value;
  const identity = takeUp(services.sessions, found.value, now);
  const followed = connection.follows.has(key);
  if (!services.connections.follow(connection, key))
    return fail("limit.rate", "This connection follows the maximum number of sessions.", "Unsubscribe from some sessions.");
  const runId = params.runId ?? `run-${services.ids.name(20)}`;
  const answer = services.ask(key, (session) =>
    session.send({
      identity,
      messageId: params.messageId ?? params.runId ?? `msg-${services.ids.name(20)}`,
      runId,
      text: message,
      ...(attachments === undefined ? {} : { attachments }),
      origin: `client:${connection.principal.id}`,
      contextVersion: services.contextVersion(),
    }),
  );
  return answer.then((result) => {
    if (!result.ok && !followed) services.connections.unfollow(connection, key);
    return result;
  });
};

const abort: Handler<"chat.abort"> = async (services, _caller, params) => {
  const found = conversation(services, params.sessionKey);
  if (!found.ok) return found;
  const { key } = found.value;
  if (services.sessions.find(key) === undefined) return succeed({ ok: true, wasRunning: false, pendingToolsCancelled: 0 });
  return services.ask(key, (session) => session.abort(params.runId));
};

export const chatMethods = { "chat.send": send, "chat.abort": abort } as const satisfies Handlers;
