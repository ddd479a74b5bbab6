/** Which questions of the session wait for the owner, and how the last ones ended; the gateway is told of each change. PURE. */
import { type Approval, type Ask, approvalCode, type Binding } from "../../../calls/approval.ts";
import { questionText } from "../../../calls/shown-call.ts";
import type { AwaitingCall, OpenCall } from "../../../calls/open-call.ts";
import { type Draft, appendNotice, open, settle } from "../draft.ts";
import { ENDED_QUESTIONS, LIMITS } from "../limits.ts";
import { approvalsEffectId } from "../ids.ts";
import type { EndedQuestion, Paused, Run, RunCore } from "../state.ts";
import { openReply } from "./replies.ts";

/** The codes of the questions that wait. */
export function openCodes(run: Run): readonly string[] {
  if (run.phase === "paused") return [run.question.code];
  return run.phase === "acting" ? run.calls.filter(isAwaiting).map(({ approval }) => approval.code) : [];
}
export const isAwaiting = (call: OpenCall): call is AwaitingCall => call.status === "awaiting_approval";

/** A question with a code that no open or remembered one of the session has. `others`: calls that are open, or about to be. */
export function newQuestion(d: Draft, callId: string, ask: Ask, binding: Binding, others: readonly OpenCall[]): Approval {
  const taken = new Set([
    ...others.filter(isAwaiting).map((call) => call.approval.code),
    ...(d.state.questions ?? []).map(({ code }) => code),
  ]);
  const { rule, why, taint, change, offer } = ask;
  const { hash, argsHash, policy } = binding;
  const code = approvalCode(`${d.at.freshId} ${callId}`, taken);
  const about = { rule, why, ...(taint ? { taint } : {}), ...(change ? { change } : {}), ...(offer ? { offer } : {}) };
  return { code, ...about, hash, argsHash, policy, createdAt: d.at.wall, expiresAt: d.at.wall + LIMITS.approvalMs };
}

/**
 * Clients see the question as an event of the log, so that it is shown again to a client that connects later. When the run came from the
 * owner's own direct chat, it is sent there too; to no group and to no guest.
 */
export function announce(d: Draft, run: Asking, call: AwaitingCall, args: Readonly<Record<string, unknown>>): void {
  ask(d, run, call, questionText(call, args), {});
}
/** A question that waits, in the words that people see. */
export function ask(d: Draft, run: Asking, { callId, approval }: Question, text: string, about: { readonly limit?: true }): void {
  const { seq } = appendNotice(d, {
    notice: "paused",
    runId: run.runId,
    text,
    question: { code: approval.code, callId, step: run.step, ...about },
  });
  report(d);
  const { reply, origin } = run;
  if (reply?.peer.kind === "dm" && origin.kind === "channel" && origin.role === "owner")
    openReply(d, reply, `reply/a${seq}`, `${d.state.identity.ref}/a${seq}`, seq);
}
type Asking = Pick<RunCore, "runId" | "step" | "origin" | "reply">;

/** The question of a paused run, as that of a call. */
export const asked = ({ callId, question }: Paused): Question => ({ callId, approval: question });
type Question = Pick<AwaitingCall, "callId" | "approval">;

export function endQuestion(
  d: Draft,
  { callId, approval }: Question,
  end: Pick<EndedQuestion, "ended" | "by" | "again" | "choice">,
): EndedQuestion {
  const ended: EndedQuestion = { code: approval.code, callId, ...end, at: d.at.wall };
  d.state.questions = [...(d.state.questions ?? []), ended].slice(-ENDED_QUESTIONS);
  report(d);
  return ended;
}

/** One report is open at most: it tells the state at the time at which it is made. */
export function report(d: Draft): void {
  const last = d.state.approvalRevision ?? 0;
  const earlier = d.state.outbox.find((effect) => effect.type === "ReportApprovals");
  // This step has opened one.
  if (earlier && d.before.outbox.every((effect) => effect.id !== earlier.id)) return;
  if (earlier) settle(d, earlier.id);
  const revision = last + 1;
  d.state.approvalRevision = revision;
  open(d, { type: "ReportApprovals", id: approvalsEffectId(revision), revision });
}
