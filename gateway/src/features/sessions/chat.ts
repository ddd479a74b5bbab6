/** `chat.send` and `chat.abort`: handed to the session, which alone decides and stores (gateway rule D1). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { namedSession, writableSession } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

export type ChatPorts = Pick<KernelPorts, "config" | "contextVersion" | "followers" | "ids"> & SessionsPort;

const tooLong = (text: string): boolean =>
  text.length > LIMITS.messageBytes || (text.length * 3 > LIMITS.messageBytes && utf8Bytes(text) > LIMITS.messageBytes);

export const chatMethods = ({ config, followers, contextVersion, ids, sessions, ask }: ChatPorts): Handlers => ({
  // No `await` before the session is asked: messages of one sender arrive in the order in which they were sent (promise P3).
  "chat.send": ({ connection, now }, params) => {
    const { message, attachments, whileBusy = "queue", mode, thinking = false } = params;
    if (tooLong(message)) return fail("chat.too_long");
    if (message.trim() === "" && (attachments?.length ?? 0) === 0) return fail("chat.empty");
    const found = writableSession(config, params.sessionKey);
    if (!found.ok) return found;
    const { key } = found.value;
    const identity = sessions.takeUp(found.value, now);
    const settle = followers.tryFollow(connection, key);
    if (settle === undefined) return followsTooMany();
    followers.wantThoughts(connection, key, thinking);
    // Chosen once: a second try must be the same message.
    const runId = params.runId ?? `run-${ids.name(20)}`;
    const messageId = params.messageId ?? params.runId ?? `msg-${ids.name(20)}`;
    const answer = ask(key, (session) =>
      session.send({
        identity,
        messageId,
        runId,
        text: message,
        ...(attachments === undefined ? {} : { attachments }),
        ...(whileBusy === "queue" ? {} : { whileBusy }),
        ...(mode === undefined ? {} : { mode }),
        ...(thinking ? { thinking } : {}),
        origin: { kind: "client", clientId: connection.principal.id, tokenId: connection.principal.tokenId },
        contextVersion: contextVersion(),
      }),
    );
    return answer.then((result) => {
      settle(result.ok);
      return result;
    });
  },
  "chat.abort": async (_caller, params) => {
    const found = namedSession(config, params.sessionKey);
    if (!found.ok) return found;
    const { key } = found.value;
    if (sessions.find(key) === undefined) return noSession(key, sessions.keyEndingWith(params.sessionKey.trim()));
    return ask(key, (session) => session.abort(params.runId));
  },
});

/** A stop that stops nothing must not look like one that did (rule ST10). `meant`: the one session whose key ends with the name. */
const noSession = (key: string, meant: string | undefined) =>
  fail(
    "session.not_found",
    `There is no conversation ${key}, so nothing was stopped.`,
    meant === undefined ? "List the conversations: `gsv session list`." : `Did you mean ${meant}?`,
  );

/** The connection follows as many sessions as a connection may. */
export const followsTooMany = () =>
  fail("limit.rate", "This connection follows the maximum number of conversations.", "Unsubscribe from some of them.");
