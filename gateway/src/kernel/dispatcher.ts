/**
 * Handles one request from text to answer, in the order of wire rule FR3: size, depth, JSON, frame, known method, served, allowed,
 * params, handler. A caller that may not call a method learns nothing about its params. A failing handler becomes an error answer.
 */

import type { Failure, GsvError } from "../ports/result.ts";
import { isMethodName, METHODS, type MethodInfo, type MethodName, type ParamsOf } from "../../../protocol/gen/methods.ts";
import type { TypeName } from "../../../protocol/gen/explain-table.ts";
import { PARAMS_VALIDATORS } from "../../../protocol/gen/validators/index.ts";
import { type Decoded, decodeFrame } from "../../../protocol/runtime/codec.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import { storageFault } from "../ports/storage-fault.ts";
import { actorOf, may, refusalOf } from "./authorise.ts";
import type { Connection } from "./connections.ts";
import { type Caller, LATER, type Outcome } from "./feature.ts";
import type { FeatureSet } from "./feature-set.ts";
import { peekId, peekText } from "./frames.ts";
import { recordedPath } from "./config/schema.ts";
import { fail } from "./outcome.ts";
import type { KernelPorts } from "./ports.ts";

export type DispatchPorts = Pick<KernelPorts, "connections" | "audit" | "closeToken" | "ids" | "log" | "now"> & {
  readonly features: Pick<FeatureSet, "closed" | "frameRules" | "methods">;
};

/** Requests of an end about its open transfer. A receiver acknowledges many times a second, and a folder of small files asks as often. */
const TRANSFER_REQUESTS: ReadonlySet<string> = new Set<MethodName>([
  "transfer.create",
  "transfer.get",
  "transfer.meta",
  "transfer.accept",
  "transfer.ack",
  "transfer.alive",
  "transfer.complete",
  "transfer.done",
]);
/** Longer requests count as all others do. */
const REPORT_CHARS = 4096;

/** Handles one text frame of a connection after hello-ok. */
export async function dispatch(ports: DispatchPorts, connection: Connection, text: string): Promise<void> {
  const { connections } = ports;
  const now = ports.now();
  const answer = (id: string, failure: Failure): void => void connections.answer(connection.socket, id, failure);
  const isReport =
    connection.transferRequests !== undefined && text.length <= REPORT_CHARS && TRANSFER_REQUESTS.has(peekText(text, ["method"]) ?? "");
  if (!connections.admitRequest(connection, now, isReport)) {
    answer(peekId(text), fail("limit.rate"));
    return;
  }
  const decoded = decode(ports, connection, text);
  // A frame may name two methods, and the last one counts.
  const isOther = isReport && !(decoded.ok && decoded.frame.type === "req" && TRANSFER_REQUESTS.has(decoded.frame.method));
  if (isOther && !connections.admitRequest(connection, now)) {
    answer(peekId(text), fail("limit.rate"));
    return;
  }
  if (!decoded.ok) {
    answer(decoded.error.id ?? peekId(text), fail(decoded.error.reason, decoded.error.message));
    return;
  }
  const { frame } = decoded;
  // Events of peers have no receiver here; a later version may have one (FR2).
  if (frame.type === "evt") return;
  if (frame.type === "res") {
    answer(frame.id, fail("protocol.unsupported", "The gateway sends no requests, so it expects no responses."));
    return;
  }
  const { principal } = connection;
  if (principal.expiresAt !== undefined && now >= principal.expiresAt) {
    answer(frame.id, fail("auth.required", "The token has expired.", "Create a new token: `gsv token create`."));
    ports.closeToken(principal.tokenId, "the token has expired");
    return;
  }
  if (!isMethodName(frame.method)) {
    answer(frame.id, fail("protocol.unknown_method"));
    return;
  }
  const outcome = await perform(ports, { connection, requestId: frame.id, now }, frame.method, frame.params);
  if (outcome !== LATER) connections.answer(connection.socket, frame.id, outcome);
}

const isTooMuch = (decoded: Decoded): boolean =>
  !decoded.ok && (decoded.error.reason === "protocol.too_large" || decoded.error.reason === "protocol.too_deep");
/** Some methods accept larger frames. A feature may replace a frame that is too large even for that by a smaller request. */
function decode({ features }: DispatchPorts, { principal }: Connection, text: string): Decoded {
  const decoded = decodeFrame(text);
  if (!isTooMuch(decoded)) return decoded;
  const method = peekText(text, ["method"]) ?? "";
  const rule = isMethodName(method) && may(principal, method) ? features.frameRules[method] : undefined;
  if (rule === undefined) return decoded;
  const whole = decodeFrame(text, rule.maxBytes);
  if (!isTooMuch(whole)) return whole;
  const params = rule.instead((path) => peekText(text, path));
  return params === undefined ? decoded : { ok: true, frame: { type: "req", id: peekId(text), method, params } };
}

/** Starts the handler before its first `await`, so that requests begin in order; only audited ones wait before. */
async function perform(ports: DispatchPorts, caller: Caller, method: MethodName, params: unknown): Promise<Outcome<unknown>> {
  if (method === "connect") return fail("protocol.already_connected");
  if (ports.features.methods[method] === undefined) return fail("method.not_served", `This gateway knows ${method} but does not serve it.`);
  if (!may(caller.connection.principal, method)) {
    const { message, hint } = refusalOf(caller.connection.principal, method);
    note(ports, caller, method, "denied", undefined, message, undefined);
    return fail("auth.forbidden", message, hint);
  }
  const closed = ports.features.closed(method);
  if (closed !== undefined) return closed;
  const given = params ?? {};
  const check = PARAMS_VALIDATORS[method];
  if (check !== null && !check(given)) {
    const problem = explainText(paramsTypeOf(method), given);
    const instead = ports.features.frameRules[method]?.insteadOfInvalid(given, problem);
    return instead === undefined || !check(instead)
      ? fail("protocol.invalid_params", `The params of ${method} are not valid: ${problem}`)
      : perform(ports, caller, method, instead);
  }
  try {
    const { audit }: MethodInfo = METHODS[method];
    if (typeof audit === "string") return await call(ports, caller, method, given as ParamsOf<typeof method>);
    const argsHash = await ports.ids.sha256(JSON.stringify(given));
    const outcome = await call(ports, caller, method, given as ParamsOf<typeof method>);
    const failed = outcome !== LATER && !outcome.ok;
    note(
      ports,
      caller,
      method,
      failed ? (isDenial(outcome.error) ? "denied" : "failed") : "allowed",
      audit.target === null ? undefined : recordedTarget(method, textAt(given, audit.target)),
      failed ? (isDenial(outcome.error) ? outcome.error.message : outcome.error.reason) : undefined,
      argsHash,
      failed ? outcome.error.reason : undefined,
    );
    return outcome;
  } catch (error) {
    ports.log.error("handler_failed", { method, error });
    const { reason, message } = storageFault(error);
    return fail(reason, message);
  }
}

/** The message of a denial names its rule. */
const isDenial = ({ reason }: GsvError): boolean => reason === "policy.denied" || reason === "policy.error";

function call<M extends MethodName>(
  ports: DispatchPorts,
  caller: Caller,
  method: M,
  params: ParamsOf<M>,
): Outcome<unknown> | Promise<Outcome<unknown>> {
  return ports.features.methods[method]?.(caller, params) ?? fail("method.not_served");
}

function note(
  ports: DispatchPorts,
  { connection }: Caller,
  action: string,
  decision: "allowed" | "denied" | "failed",
  target: string | undefined,
  detail: string | undefined,
  argsHash: string | undefined,
  rule = "method.scope",
): void {
  const entry = {
    actor: actorOf(connection.principal),
    origin: connection.principal.mode,
    action,
    decision,
    ...(decision === "denied" ? { rule } : {}),
    ...(target !== undefined && TOOL_METHODS.has(action) ? { tool: target } : {}),
    ...(target === undefined ? {} : { target }),
    ...(detail === undefined ? {} : { detail }),
    ...(argsHash === undefined ? {} : { argsHash }),
  };
  ports.audit.append(entry);
}

/** Their target is the name of a tool. */
const TOOL_METHODS: ReadonlySet<string> = new Set<MethodName>(["tool.invoke", "tool.request"]);

function textAt(params: unknown, name: string): string | undefined {
  const value: unknown = typeof params === "object" && params !== null ? Reflect.get(params, name) : undefined;
  return typeof value === "string" ? value : undefined;
}

/** What the audit keeps of a target. */
const recordedTarget = (method: MethodName, target: string | undefined): string | undefined =>
  target !== undefined && (method === "config.set" || method === "config.unset") ? recordedPath(target) : target;

/** The contract's own name of a method's params. */
const paramsTypeOf = (method: MethodName): TypeName => METHODS[method].params ?? "Frame";
