/**
 * Follows a session from a known point (wire rule C5): first the events since then, then the live ones, without gap or duplicate. Live
 * events wait while the session is asked for the past, and go out after it.
 */
import { asSessionKey, type SessionSubscribeParams, type SessionSubscribeResult } from "../../../../protocol/gen/types.ts";
import type { EventName } from "../../../../protocol/gen/methods.ts";
import { type Result, sentence, succeed } from "../../ports/result.ts";
import type { Connection } from "../../kernel/connections.ts";
import { LATER, type Outcome } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NewEvent } from "../../kernel/subscriptions.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { followsTooMany } from "./chat.ts";

export type FollowPorts = Pick<KernelPorts, "connections" | "followers"> & SessionsPort;

/** `session.subscribe`: the past is in the answer. */
export async function followFrom(
  ports: FollowPorts,
  connection: Connection,
  key: string,
  { afterSeq, thinking = false }: Pick<SessionSubscribeParams, "afterSeq" | "thinking">,
  requestId: string,
): Promise<Outcome<SessionSubscribeResult>> {
  const { connections, followers } = ports;
  const settle = followers.tryFollow(connection, key);
  if (settle === undefined) return followsTooMany();
  followers.wantThoughts(connection, key, thinking);
  followers.hold(connection, key);
  let answer: Result<SessionSubscribeResult> | undefined;
  try {
    answer = await past(ports, key, afterSeq, thinking);
    // Before the release: the answer comes first.
    connections.answer(connection.socket, requestId, answer);
    return LATER;
  } finally {
    settle(answer?.ok === true);
    followers.release(connection, key, answer?.ok === true ? isNewerThan(answer.value) : () => true);
  }
}

/** `connect.resume`: the past comes as events, after hello-ok. */
export async function resumeFrom(ports: FollowPorts, connection: Connection, key: string, afterSeq: number): Promise<void> {
  const { connections, followers } = ports;
  if (!followers.follow(connection, key)) return;
  followers.hold(connection, key);
  let answer: Result<SessionSubscribeResult> | undefined;
  try {
    answer = await past(ports, key, afterSeq);
    if (answer.ok) {
      for (const news of answer.value.events) if (isNews(news)) connections.event(connection, news.event, news.payload);
    } else {
      const text = sentence(answer.error.reason === "session.snapshot_required" ? fail("session.snapshot_required").error : answer.error);
      connections.event(connection, "session", { sessionKey: asSessionKey(key), kind: "note", text });
    }
  } finally {
    followers.release(connection, key, answer?.ok === true ? isNewerThan(answer.value) : () => true);
  }
}

/** Does not create or wake a session that has no messages. */
function past(
  { sessions, ask }: FollowPorts,
  key: string,
  afterSeq: number | undefined,
  thinking = false,
): Promise<Result<SessionSubscribeResult>> {
  if (sessions.find(key) === undefined)
    return Promise.resolve(succeed({ sessionKey: asSessionKey(key), seq: 0, events: [], state: "idle" }));
  return ask(key, (session) => session.events(afterSeq, thinking));
}

/** Whether a held event has news that the answer does not have. */
export function isNewerThan(answer: SessionSubscribeResult): (held: NewEvent) => boolean {
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

/** Sessions hand over past events in the form in which they were sent. */
function isNews(value: unknown): value is { readonly event: Extract<EventName, "chat" | "session">; readonly payload: never } {
  const { event, payload } = fieldsOf(value);
  return (event === "chat" || event === "session") && typeof payload === "object" && payload !== null;
}
