/**
 * Following a conversation from a known point (wire rule C5): what happened since then, then what happens, without gap or double. Live
 * events wait while the session is asked for the past, and go out after it.
 */
import { asSessionKey, type SessionSubscribeResult } from "../../../../protocol/gen/types.ts";
import type { EventName } from "../../../../protocol/gen/methods.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { sentence } from "../../ports/result.ts";
import type { Connection, HeldEvent } from "../../kernel/connections.ts";
import { LATER, type Outcome, type Services } from "../../app/services.ts";

type Needs = Pick<Services, "connections" | "sessions" | "ask">;

/** `session.subscribe`: the past is in the answer. */
export async function followFrom(
  services: Needs,
  connection: Connection,
  key: string,
  afterSeq: number | undefined,
  requestId: string,
): Promise<Outcome<SessionSubscribeResult>> {
  const { connections } = services;
  const before = connection.follows.has(key);
  if (!connections.follow(connection, key))
    return fail("limit.rate", "This connection follows the maximum number of sessions.", "Unsubscribe from some sessions.");
  connections.hold(connection, key);
  let answer: Result<SessionSubscribeResult> | undefined;
  try {
    answer = await past(services, key, afterSeq);
    // Before the release: the answer comes first.
    connections.answer(connection.socket, requestId, answer);
    return LATER;
  } finally {
    if (answer?.ok !== true && !before) connections.unfollow(connection, key);
    connections.release(connection, key, answer?.ok === true ? isNewerThan(answer.value) : () => true);
  }
}

/** `connect.resume`: the past comes as events, after hello-ok. */
export async function resumeFrom(services: Needs, connection: Connection, key: string, afterSeq: number): Promise<void> {
  const { connections } = services;
  if (!connections.follow(connection, key)) return;
  connections.hold(connection, key);
  let answer: Result<SessionSubscribeResult> | undefined;
  try {
    answer = await past(services, key, afterSeq);
    if (answer.ok) {
      for (const news of answer.value.events) if (isNews(news)) connections.event(connection, news.event, news.payload);
    } else {
      const text = sentence(answer.error.reason === "session.snapshot_required" ? fail("session.snapshot_required").error : answer.error);
      connections.event(connection, "session", { sessionKey: asSessionKey(key), kind: "note", text });
    }
  } finally {
    connections.release(connection, key, answer?.ok === true ? isNewerThan(answer.value) : () => true);
  }
}

/** A conversation that nobody has written in is not woken, let alone made. */
function past({ sessions, ask }: Needs, key: string, afterSeq: number | undefined): Promise<Result<SessionSubscribeResult>> {
  if (sessions.find(key) === undefined)
    return Promise.resolve(succeed({ sessionKey: asSessionKey(key), seq: 0, events: [], state: "idle" }));
  return ask(key, (session) => session.events(afterSeq));
}

/** Whether a held event says something that the answer does not. */
export function isNewerThan(answer: SessionSubscribeResult): (held: HeldEvent) => boolean {
  return ({ payload }) => {
    const { sessionSeq, state, runId, step, attempt, offset } = fieldsOf(payload);
    if (typeof sessionSeq === "number") return sessionSeq > answer.seq;
    if (state !== "delta" || runId !== answer.runId) return true;
    const there = [answer.step ?? 0, answer.attempt ?? 0] as const;
    const here = [Number(step ?? 0), Number(attempt ?? 0)] as const;
    if (here[0] !== there[0]) return here[0] > there[0];
    if (here[1] !== there[1]) return here[1] > there[1];
    return Number(offset ?? 0) >= (answer.text ?? "").length;
  };
}

const fieldsOf = (payload: unknown): Readonly<Record<string, unknown>> =>
  typeof payload === "object" && payload !== null ? { ...payload } : {};

/** Sessions hand over their past as the events that it was. */
function isNews(value: unknown): value is { readonly event: Extract<EventName, "chat" | "session">; readonly payload: never } {
  const { event, payload } = fieldsOf(value);
  return (event === "chat" || event === "session") && typeof payload === "object" && payload !== null;
}
