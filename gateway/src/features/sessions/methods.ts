/** `sessions.list` and `session.*`. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asSessionKey, type SessionPatchParams } from "../../../../protocol/gen/types.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { existingSession, namedSession, unknownAgent, writableSession } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SessionPort } from "../../ports/session.ts";
import type { AskSession, NamedSession, Repeat } from "../../ports/sessions.ts";
import type { SessionDeletion } from "./deletion.ts";
import { followFrom } from "./follow.ts";
import type { Sessions } from "./store.ts";

/** After this time the deletion goes on in the background. */
const DELETION_WAIT_MS = 10_000;

export interface MethodPorts extends Pick<KernelPorts, "background" | "config" | "connections" | "followers" | "now"> {
  readonly deletion: SessionDeletion;
  readonly sessions: Sessions;
  readonly ask: AskSession;
}

/** Fields that the contract knows. A caller's other fields must not become part of the session's state (wire rule F2). */
const pick = <T extends object, K extends keyof T>(from: T, names: readonly K[]): Pick<T, K> =>
  Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]])) as Pick<T, K>;
function knownChanges({
  settings,
  resetPolicy,
  ...changes
}: Omit<SessionPatchParams, "sessionKey">): Omit<SessionPatchParams, "sessionKey"> {
  const model = settings?.model;
  return {
    ...pick(changes, ["label", "clear"]),
    ...(settings === undefined
      ? {}
      : {
          settings: {
            ...pick(settings, ["thinkingLevel", "systemPrompt", "maxTokens", "mode", "modeMs"]),
            ...(model === undefined ? {} : { model: pick(model, ["provider", "id"]) }),
          },
        }),
    ...(resetPolicy === undefined ? {} : { resetPolicy: pick(resetPolicy, ["mode", "atHour", "idleMinutes"]) }),
  };
}

export function sessionMethods({ background, config, connections, deletion, followers, now, sessions, ask }: MethodPorts): Handlers {
  const existing = (raw: string): Result<NamedSession> => existingSession(config, sessions, raw);
  const askExisting = async <T>(
    raw: string,
    question: (session: SessionPort) => Promise<Result<T>>,
    repeat?: Repeat,
  ): Promise<Result<T>> => {
    const found = existing(raw);
    return found.ok ? ask(found.value.key, question, repeat) : found;
  };

  return {
    "sessions.list": (_caller, params) => {
      const { agentId, offset = 0, limit = LIMITS.pageItems } = params;
      const count = sessions.count(agentId);
      // Sessions of an agent that was removed stay readable.
      if (agentId !== undefined && count === 0 && !config.hasAgent(agentId)) return unknownAgent(config, agentId);
      return succeed({ sessions: [...sessions.list(now(), offset, limit, agentId)], count });
    },
    "session.get": (_caller, params) => askExisting(params.sessionKey, (session) => session.get()),
    "session.stats": (_caller, params) => askExisting(params.sessionKey, (session) => session.stats()),
    "session.history": (_caller, params) => askExisting(params.sessionKey, (session) => session.history()),
    "session.preview": (_caller, { sessionKey, ...look }) => askExisting(sessionKey, (session) => session.preview(look)),
    "session.result": (_caller, { sessionKey, callId }) => askExisting(sessionKey, (session) => session.result(callId)),
    "session.messages": (_caller, { sessionKey, ...look }) => askExisting(sessionKey, (session) => session.messages(look)),
    "session.patch": async (_caller, { sessionKey, ...changes }) => {
      const found = existing(sessionKey);
      if (!found.ok) return found;
      const { key } = found.value;
      const result = await ask(key, (session) => session.patch(knownChanges(changes)));
      if (result.ok && changes.label !== undefined) sessions.setLabel(key, changes.label);
      return result;
    },
    // `once`: after a lost answer, a second reset would archive the new conversation.
    "session.reset": (_caller, params) => askExisting(params.sessionKey, (session) => session.reset(), "once"),
    "session.delete": async (_caller, { sessionKey, stop }) => {
      const found = existing(sessionKey);
      if (!found.ok) return found;
      const { key, address } = found.value;
      if (!deletion.isUnderWay(key)) {
        const look = await ask(key, (session) => session.stats());
        const state = look.ok ? look.value.state : undefined;
        if (state === "archiving") return fail("session.busy");
        const isBusy = (stats: typeof look): boolean => stats.ok && (stats.value.isProcessing || stats.value.queueSize > 0);
        const running = () =>
          fail(
            "session.running",
            "The conversation has a run or waiting messages, so it was not deleted.",
            `Wait for its end, or stop it with the deletion: \`gsv session delete ${key} --stop\`.`,
          );
        if (stop !== true && isBusy(look)) return running();
        const ref = sessions.find(key)?.ref;
        if (ref !== undefined) deletion.begin([{ key, ref, agentId: address.agentId }]);
        // A message may have been accepted after the look. Calls arrive in order, so whatever came before the deletion is seen now.
        if (stop !== true && isBusy(await ask(key, (session) => session.stats())) && deletion.cancel(key)) return running();
      }
      const running = deletion.run(key);
      background("session_deletion", running);
      const done = await within(
        afterTimeout,
        DELETION_WAIT_MS,
        running.catch(() => undefined),
        () => undefined,
      );
      return succeed({ ok: true, sessionKey: asSessionKey(key), done: done !== undefined, ...done } as const);
    },
    "session.compact": (_caller, params) => askExisting(params.sessionKey, (session) => session.compact(params.keepMessages), "once"),
    /** For a session that does not exist yet, the prompt of its first message. */
    "session.prompt": async (_caller, params) => {
      const found = writableSession(config, params.sessionKey);
      if (!found.ok) return found;
      const identity = sessions.lookUp(found.value, "none");
      return ask(identity.key, (session) => session.prompt(identity));
    },
    "session.subscribe": ({ connection, requestId }, params) => {
      const known = existing(params.sessionKey);
      const found = known.ok ? known : writableSession(config, params.sessionKey);
      if (!found.ok) return found;
      return followFrom({ connections, followers, sessions, ask }, connection, found.value.key, params, requestId);
    },
    "session.unsubscribe": ({ connection }, params) => {
      const found = namedSession(config, params.sessionKey);
      // An invalid key is not followed either.
      if (found.ok) followers.unfollow(connection, found.value.key);
      return succeed({ ok: true });
    },
  };
}
