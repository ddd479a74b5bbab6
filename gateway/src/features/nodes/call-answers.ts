/** The answers to clients whose calls have ended: by the machine's report, by a native tool, or by the gateway itself. PURE. */
import { type ErrorReason, isErrorReason } from "../../../../protocol/gen/errors.ts";
import { asCallId, asNodeId, type LogsResultParams, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import type { Closing } from "../../calls/open-call.ts";
import { fail } from "../../kernel/outcome.ts";
import { type GsvError, type Result, succeed } from "../../ports/result.ts";
import type { ClientCall } from "./call-store.ts";

export const closingAnswer = ({ reason, text }: Closing): Result<never> => fail(reason, text);

export const nativeAnswer = (
  { call, ownName }: ClientCall,
  ran: { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: GsvError },
): Result<unknown> =>
  ran.ok ? succeed({ ...(ran.result === undefined ? {} : { result: ran.result }), callId: asCallId(ownName ?? call.callId) }) : ran;

export function toolAnswer({ call, ownName }: ClientCall, { result, error, outcome, reason }: ToolResultParams): Result<unknown> {
  if (error === undefined && (outcome === undefined || outcome === "ok"))
    return succeed({ ...(result === undefined ? {} : { result }), callId: asCallId(ownName ?? call.callId) });
  return fail(reasonOf(outcome, reason), error ?? "The machine gave no reason.");
}

export function logsAnswer(nodeId: string, { lines = [], error, truncated }: LogsResultParams): Result<unknown> {
  return error === undefined
    ? succeed({ nodeId: asNodeId(nodeId), lines, count: lines.length, truncated: truncated === true })
    : fail("tool.failed", error);
}

const OUTCOME_REASONS = {
  ok: "tool.failed",
  error: "tool.failed",
  cancelled: "tool.cancelled",
  timeout: "tool.timeout",
  unknown: "tool.outcome_unknown",
} as const satisfies Record<string, ErrorReason>;
/** What can go wrong with a tool on a machine. Any other reason would tell the client something about the gateway or its own token. */
const MACHINE_REASON = /^(?:tool|path|file|edit|process|media)\./;
/** The machine's own reason, if the error table has it as one of machines. */
const reasonOf = (outcome: ToolResultParams["outcome"], reason: string | undefined): ErrorReason =>
  reason !== undefined && MACHINE_REASON.test(reason) && isErrorReason(reason) ? reason : OUTCOME_REASONS[outcome ?? "error"];
