/**
 * ReportApprovals: tells the gateway which questions of the session wait, as they are now, how the last ones ended, and the conversation with
 * its own mode.
 */
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { moreText } from "../../calls/limit-question.ts";
import { shownOf, visible } from "../../calls/shown-call.ts";
import type { AwaitingCall, OpenCall } from "../../calls/open-call.ts";
import type { ApprovalReport, WaitingQuestion } from "../../ports/approvals.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import { isAwaiting } from "../machine/phase/questions.ts";
import { activeRun, type Paused, type State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface ReportPorts {
  readonly state: () => State | undefined;
  readonly row: (seq: number) => LogRow | undefined;
  readonly gateway: Pick<GatewayPort, "approvals">;
  readonly sha256: (text: string) => Promise<string>;
  readonly commit: (event: EventBody) => void;
}
const MAX_RETRY_MS = 60_000;

export async function reportApprovals(effect: EffectOf<"ReportApprovals">, flight: Flight, ports: ReportPorts): Promise<FlightEnd> {
  const state = ports.state();
  if (!state) return "done";
  const { identity, run, settings, questions = [] } = state;
  const acting = run.phase === "acting" ? run : undefined;
  const waiting = (acting?.calls ?? []).filter(isAwaiting);
  const row = acting && ports.row(acting.assistantSeq);
  const asking = run.phase === "paused" || waiting.length > 0 ? activeRun(run) : undefined;
  const report: ApprovalReport = {
    sessionKey: identity.key,
    agentId: identity.agentId,
    revision: effect.revision,
    ...(asking ? { origin: asking.origin } : {}),
    waiting: [
      ...(run.phase === "paused" ? [limitQuestion(run)] : []),
      ...(await Promise.all(
        waiting.map((call) => question(call, state.sessionId, acting?.runId ?? "", argumentsOf(row, call), ports.sha256)),
      )),
    ],
    ended: questions.map(({ code, ended, by, again, choice, at }) => ({
      code,
      outcome: ended,
      ...(by === undefined ? {} : { by }),
      ...(again === undefined ? {} : { again }),
      ...(choice === undefined ? {} : { choice }),
      at,
    })),
    conversation: {
      sessionId: state.sessionId,
      ...(settings.mode === undefined ? {} : { mode: settings.mode }),
      ...(settings.modeUntil === undefined ? {} : { modeUntil: settings.modeUntil }),
    },
  };
  try {
    await ports.gateway.approvals(report);
  } catch {
    return backoff(flight.tries, MAX_RETRY_MS);
  }
  ports.commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
function limitQuestion({ callId, runId, question, offer }: Paused): WaitingQuestion {
  const { code, hash, rule, why, createdAt, expiresAt } = question;
  const text = `Continue with ${moreText(offer)}?`;
  return {
    code,
    callId,
    runId,
    name: "limit",
    target: { kind: "native" },
    isAboutLimit: true,
    hash,
    rule,
    why: visible(why),
    text,
    bytes: utf8Bytes(text),
    createdAt,
    expiresAt,
  };
}
async function question(
  call: AwaitingCall,
  sessionId: string,
  runId: string,
  args: Readonly<Record<string, unknown>>,
  sha256: ReportPorts["sha256"],
): Promise<WaitingQuestion> {
  const { callId, name, target, approval } = call;
  const { code, hash, rule, why, offer, createdAt, expiresAt } = approval;
  const { text, bytes, whole, sha256: known } = shownOf(call, args);
  const digest = known ?? (whole === undefined ? undefined : await sha256(whole));
  return {
    code,
    callId,
    runId,
    name: visible(name),
    target,
    hash,
    ...(offer === undefined ? {} : { offer: { ...offer, sessionId } }),
    rule: visible(rule),
    why: visible(why),
    text,
    bytes,
    ...(digest === undefined ? {} : { sha256: digest }),
    createdAt,
    expiresAt,
  };
}
/** The arguments of one call of an answer. */
export function argumentsOf(row: LogRow | undefined, { index }: Pick<OpenCall, "index">): Readonly<Record<string, unknown>> {
  const block = row?.kind === "assistant" ? row.message.content.filter((content) => content.type === "toolCall")[index] : undefined;
  if (!block) throw new Error("the arguments of a call that waits are not in the log");
  return block.arguments;
}
