/**
 * A message of one session to another (gsv__SessionSend). It is accepted once per call, also when the call runs again, and marked as
 * coming from a session and not from a person. A caller that waits gets the end of the run that the message started (W21). Chains of
 * sessions that write to each other end after MAX_HOPS. The caller (tools/) has decided whether the session may write to others.
 */
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { hopsOf, MAX_HOPS } from "../../ports/origin.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { RunEnd } from "../../ports/session.ts";
import { higher, SOURCE_CHARS, type Taint } from "../../ports/taint.ts";
import type { SessionToSession, SessionToSessionSent } from "../../ports/session-to-session.ts";
import { fence } from "../../prompt/fence.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { RunWaits } from "./run-waits.ts";

/** Longest wait for another conversation's answer. */
export const MAX_WAIT_MS = 120_000;
const RUN_NAME_CHARS = 24;

export interface SendPorts extends SessionsPort, Pick<KernelPorts, "config" | "now" | "ids" | "contextVersion"> {
  readonly runWaits: RunWaits;
}

export async function sendToSession(ports: SendPorts, input: SessionToSession): Promise<Result<SessionToSessionSent>> {
  const { from, callId, message } = input;
  // A key without an agent belongs to the agent that asks.
  const target = canonicalKey(input.to, ports.config.mainKey(), from.agentId);
  if (!target.ok) return fail("session.bad_key", `This is not a session key: ${target.problem}.`);
  const { key, address } = target;
  if (!ports.config.hasAgent(address.agentId)) return unknownAgent(ports.config, address.agentId);
  if (key === from.key) return fail("tool.bad_args", "This is the conversation that you are in.", "Name another one.");
  if (address.agentId !== from.agentId && ports.sessions.find(key) === undefined)
    return fail("session.not_found", `There is no session ${key}. gsv__SessionsList lists the sessions.`);
  if (input.origin?.kind === "task" && input.origin.delegation !== undefined)
    return fail("auth.forbidden", "A delegated task writes to no other conversation: put it into your report.");
  const hops = hopsOf(input.origin) + 1;
  if (hops > MAX_HOPS)
    return fail(
      "auth.forbidden",
      `This message would be number ${hops} in a chain of conversations that write to each other, and at most ${MAX_HOPS} are allowed.`,
      "Answer here instead.",
    );
  const runId = `s2s-${hops}-${(await ports.ids.sha256(callId)).slice(0, RUN_NAME_CHARS)}`;
  const text = `[Message from another conversation of yours, ${from.key}. It is not from the user of this conversation. ${input.waitMs > 0 ? "Your answer to it goes back there." : "That conversation does not wait for an answer."}]\n${fence(`message from the conversation ${from.key}`, message)}`;
  const identity = ports.sessions.takeUp(target, ports.now());
  const wait = ports.runWaits.begin(key, runId);
  try {
    const sent = await ports.ask(key, (session) =>
      session.send({
        identity,
        messageId: `s2s:${callId}`,
        runId,
        text,
        verbatim: true,
        origin: { kind: "session", sessionKey: from.key, hops },
        taint: sentTaint(input),
        contextVersion: ports.contextVersion(),
      }),
    );
    if (!sent.ok) return sent;
    if (sent.value.status !== "started") return fail("internal");
    if (input.waitMs <= 0) return succeed({ status: "accepted", runId, queued: sent.value.queued === true });
    const look = (): Promise<RunEnd> => ports.ask(key, (session) => session.runEnd(runId));
    // When the call runs again, the run may have ended already, and then no event comes.
    const early = sent.value.duplicate === true ? told(await look(), key, runId) : undefined;
    if (early !== undefined) return early;
    const end = await within(afterTimeout, Math.min(input.waitMs, MAX_WAIT_MS), wait.end, () => undefined);
    // The session is asked in any case: only it knows what its answer was made from.
    return told(await look(), key, runId) ?? told(end && unlabelled(end), key, runId) ?? succeed({ status: "running", runId });
  } finally {
    wait.stop();
  }
}
/** The model wrote the message, from what its conversation has read (rule TA3). */
const sentTaint = ({ from, taint }: SessionToSession): Taint => ({
  label: higher(SELF, taint).label,
  source: `a message of the conversation ${from.key}`.slice(0, SOURCE_CHARS),
});
const SELF: Taint = { label: "self", source: "" };

const unlabelled = (end: RunEnd): RunEnd => (end.state === "final" ? { ...end, taint: { label: "world", source: "" } } : end);
function told(end: RunEnd | undefined, key: string, runId: string): Result<SessionToSessionSent> | undefined {
  if (end === undefined) return undefined;
  if (end.state === "final") {
    const taint: Taint = { label: higher(SELF, end.taint).label, source: `an answer of the conversation ${key}`.slice(0, SOURCE_CHARS) };
    return succeed({ status: "answered", runId, answer: end.text, taint });
  }
  if (end.state === "error" || end.state === "aborted")
    return succeed({ status: "failed", runId, error: end.error === "" ? "The run was stopped." : end.error });
  return undefined;
}
