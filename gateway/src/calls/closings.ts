/** PURE. The results that the gateway itself gives tool calls, in words for a model and for a person. When to give which is in ./rules.ts. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { type Closing, nodeOf, type OpenCall } from "./open-call.ts";
import { durationText } from "./wait.ts";

const machine = (call: OpenCall): string => nodeOf(call) ?? "GSV";
const seconds = (call: OpenCall, now: number): string => `${Math.round((now - call.startedAt) / 1000)} s`;

/** Nothing was handed over. */
export const notConnected = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The machine ${machine(call)} is not connected, so ${call.name} was not run. Start \`gsv node\` on ${machine(call)}, or use another machine.`,
  mayReportLate: false,
});
/** The call has waited for its machine, as long as it may (OM2). */
export const notBack = (call: OpenCall, now: number): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The machine ${machine(call)} did not connect within ${durationText(now - call.startedAt)}, so ${call.name} was not run. Tell the user to start \`gsv node\` on ${machine(call)}.`,
  mayReportLate: false,
});
/** The limit of conversations that wait for machines is reached (OM5). */
export const tooManyWait = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The machine ${machine(call)} is not connected, and too many conversations wait for machines already, so ${call.name} was not run.`,
  mayReportLate: false,
});
/** The run ended while the call waited for its machine. */
export const waitEnded = (call: OpenCall, why: string): Closing => ({
  outcome: "cancelled",
  reason: "tool.cancelled",
  text: `Not run: the run ended before ${machine(call)} was connected. ${why}`,
  mayReportLate: false,
});
/** The node is connected, and its ledger shows that it never saw the call. */
export const neverStarted = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The call did not reach ${machine(call)}, so ${call.name} was not run. Call it again.`,
  mayReportLate: false,
});
/** Only for calls that change nothing. */
export const linkBroke = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The connection to ${machine(call)} broke before ${call.name} ended. ${call.name} changes nothing: call it again when ${machine(call)} is connected.`,
  mayReportLate: true,
});
/** For calls that may run again. On a machine those change nothing; a native tool may have had its effect. */
export const timedOut = (call: OpenCall, now: number): Closing => ({
  outcome: "timeout",
  reason: "tool.timeout",
  text: `${call.name} did not finish within ${seconds(call, now)}. ${
    call.target.kind === "node"
      ? "It changed nothing and can be called again."
      : "It may have taken effect: check before you call it again."
  }`,
  mayReportLate: true,
});
export const unknownAtDeadline = (call: OpenCall, now: number): Closing => ({
  outcome: "unknown",
  reason: "tool.outcome_unknown",
  text: `${call.name} gave no result within ${seconds(call, now)} and was told to stop. It is not known whether it took effect: check before you repeat it.`,
  mayReportLate: true,
});
export const unknownOutcome = (call: OpenCall): Closing => ({
  outcome: "unknown",
  reason: "tool.outcome_unknown",
  text: `The connection to ${machine(call)} broke while ${call.name} was running. It is not known whether ${call.name} took effect: check the state of ${machine(call)} before you repeat it.`,
  mayReportLate: true,
});
export const interruptedTooOften = (call: OpenCall, times: number): Closing => ({
  outcome: "error",
  reason: "tool.failed",
  text: `${call.name} was interrupted ${times} times and is not tried again. Call it again later.`,
  mayReportLate: false,
});
/** No one answered the question about the call in time. */
export const notAnswered = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "approval.expired",
  text: `Not run: ${call.name} needed the owner's approval, and no one answered within ${Math.round(LIMITS.approvalMs / 60_000)} minutes, which counts as a denial. Tell the user, and make the call again only when they ask for it.`,
  mayReportLate: false,
});
/** `word`: what the owner wrote with the denial. */
export const denied = (call: OpenCall, word: string | undefined): Closing => ({
  outcome: "error",
  reason: "approval.denied",
  text: `Not run: the owner denied ${call.name}.${word === undefined ? "" : ` The owner wrote: "${word}".`} Do not make the same call again: choose another way, or ask the user what to do.`,
  mayReportLate: false,
});
/** The run ended, and the question about the call with it. */
export const withdrawn = (why: string): Closing => ({
  outcome: "cancelled",
  reason: "tool.cancelled",
  text: `Not run: the run ended before the owner answered. ${why}`,
  mayReportLate: false,
});
/** The policy, or what is connected, changed while the question waited. */
export const noLongerPossible = (reason: Closing["reason"], text: string): Closing => ({
  outcome: "error",
  reason,
  text,
  mayReportLate: false,
});
export const cancelled = (why: string): Closing => ({
  outcome: "cancelled",
  reason: "tool.cancelled",
  text: `Cancelled: ${why}`,
  mayReportLate: true,
});
/** The object that ran the call was restarted, and the call is not run again. */
export const interrupted = (call: OpenCall): Closing => ({
  outcome: "unknown",
  reason: "tool.outcome_unknown",
  text: `GSV was restarted while ${call.name} was running. It is not known whether ${call.name} took effect: check before you repeat it.`,
  mayReportLate: false,
});
