/** PURE. The results that the gateway itself gives tool calls, in words for a model and for a person. When to give which is in ./rules.ts. */
import { type Closing, nodeOf, type OpenCall } from "./open-call.ts";

const machine = (call: OpenCall): string => nodeOf(call) ?? "GSV";
const seconds = (call: OpenCall, now: number): string => `${Math.round((now - call.startedAt) / 1000)} s`;

/** Nothing was handed over. */
export const notConnected = (call: OpenCall): Closing => ({
  outcome: "error",
  reason: "node.offline",
  text: `The machine ${machine(call)} is not connected, so ${call.name} was not run. Start \`gsv node\` on ${machine(call)}, or use another machine.`,
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
  text: `${call.name} was interrupted ${times} times and given up. Try again later.`,
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
