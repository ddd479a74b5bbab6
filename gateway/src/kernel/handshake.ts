/**
 * The handshake (wire rules H1 to H8): from a socket that nobody knows to a connection with a principal, or to a coded error and a
 * close. What a caller is comes from its token's record; the frame only chooses among what that allows.
 */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { PROTOCOL_FINGERPRINT } from "../../../protocol/gen/methods.ts";
import type { ConnectParams, ConnectResult } from "../../../protocol/gen/types.ts";
import { checkConnectParams } from "../../../protocol/gen/validators/checks.js";
import { decodeFrame, utf8Bytes } from "../../../protocol/runtime/codec.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import { admit, featuresFor, mayReplace, type Principal, scopesOf } from "./authorise.ts";
import { resumeFrom } from "../features/sessions/follow.ts";
import { peekId, UNKNOWN_ID } from "./frame-id.ts";
import type { FailureWindow } from "./limits.ts";
import { ADVERTISED, UNSERVED_EVENTS } from "../app/methods.ts";
import { fail, succeed } from "./outcome.ts";
import type { Connection, OpenConnection } from "./connections.ts";
import { nodeProblem } from "../features/nodes/registry.ts";
import { canonicalKey } from "./routing/session-keys.ts";
import type { Services } from "../app/services.ts";

/** Why a socket is closed. */
export const CLOSE = {
  protocol: 4000,
  auth: 4001,
  version: 4002,
  forbidden: 4003,
  timeout: 4008,
  tryLater: 1013,
  replaced: 1000,
  policy: 1008,
} as const;

const CODES: Partial<Record<ErrorReason, number>> = {
  "protocol.version": CLOSE.version,
  "auth.required": CLOSE.auth,
  "auth.not_configured": CLOSE.auth,
  "limit.rate": CLOSE.auth,
  "auth.forbidden": CLOSE.forbidden,
  "auth.bound": CLOSE.forbidden,
  "limit.sockets": CLOSE.tryLater,
};

interface Refusal {
  readonly reason: ErrorReason;
  readonly message: string;
}
const refuse = (reason: ErrorReason, message: string = ERRORS[reason].text): Refusal => ({ reason, message });

/** Bytes that may come while a `connect` is looked at: who asks on without waiting is not refused for being quick. */
const EARLY_CHARS = LIMITS.unauthFrameBytes * 4;

/** One text frame from a socket that has not said hello. Answers what came early, once it has. */
export async function handshake(
  services: Services,
  failures: FailureWindow,
  open: OpenConnection,
  text: string,
): Promise<readonly string[]> {
  const end = (id: string, { reason, message }: Refusal): void => {
    services.connections.answer(open.socket, id, fail(reason, message));
    services.connections.close(open.socket, CODES[reason] ?? CLOSE.protocol, reason);
  };
  if (open.greeting) {
    open.early.push(text);
    const waiting = open.early.reduce((sum, early) => sum + early.length, 0);
    if (waiting > EARLY_CHARS) end(UNKNOWN_ID, refuse("protocol.not_connected", "Wait for the answer to `connect` before you send more."));
    return [];
  }
  const decoded = decodeFrame(text, LIMITS.unauthNodeFrameBytes);
  if (!decoded.ok) {
    end(decoded.error.id ?? peekId(text), refuse(decoded.error.reason, decoded.error.message));
    return [];
  }
  const { frame } = decoded;
  if (frame.type !== "req" || frame.method !== "connect") {
    end(frame.type === "req" ? frame.id : UNKNOWN_ID, refuse("protocol.not_connected"));
    return [];
  }
  const params: unknown = frame.params;
  if (!checkConnectParams(params)) {
    end(frame.id, refuse("protocol.bad_connect", `The connect request is not valid: ${explainText("ConnectParams", params)}`));
    return [];
  }
  const early = tooMuch(params, text) ?? wrongVersion(params);
  if (early !== undefined) {
    end(frame.id, early);
    return [];
  }
  open.greeting = true;
  const identified = await identify(services, failures, open, params);
  // The socket may have gone, or run out of time, meanwhile.
  if (services.connections.of(open.socket) !== open) return [];
  // From here on everything happens at once: no other handshake can come between.
  const principal = "reason" in identified ? identified : (crowded(services) ?? misfitNode(identified, params) ?? identified);
  if ("reason" in principal) {
    end(frame.id, principal);
    return [];
  }
  const old = services.connections.byIdentity(principal);
  if (old !== undefined && !mayReplace(old.principal, principal)) {
    deny(services, open, params, "auth.forbidden");
    end(
      frame.id,
      refuse("auth.forbidden", `${principal.id} is connected already, with another token. Close that connection first, or use its token.`),
    );
    return [];
  }
  welcome(services, open, principal, params, old, frame.id);
  return open.early;
}

function tooMuch(params: ConnectParams, text: string): Refusal | undefined {
  if (params.client.mode === "node" || utf8Bytes(text) <= LIMITS.unauthFrameBytes) return undefined;
  return refuse("protocol.too_large", `Before hello-ok a client's frame has at most ${LIMITS.unauthFrameBytes} bytes.`);
}

function wrongVersion({ minProtocol, maxProtocol }: ConnectParams): Refusal | undefined {
  const ours = LIMITS.protocolVersion;
  return minProtocol <= ours && ours <= maxProtocol
    ? undefined
    : refuse(
        "protocol.version",
        `This gateway speaks protocol version ${ours}, you speak ${minProtocol} to ${maxProtocol}. Update the side that is older.`,
      );
}

async function identify(
  services: Services,
  failures: FailureWindow,
  open: OpenConnection,
  params: ConnectParams,
): Promise<Principal | Refusal> {
  const now = services.clock.now();
  if (!services.tokens.configured(now)) return refuse("auth.not_configured");
  const token = params.auth?.token;
  const grant = token === undefined ? undefined : await services.tokens.verify(token, now);
  if (grant === undefined) {
    const tooMany = failures.failed(open.address, now);
    deny(services, open, params, tooMany ? "limit.rate" : "auth.required");
    return tooMany ? refuse("limit.rate", "Too many failed attempts. Wait a minute.") : refuse("auth.required");
  }
  const admission = admit(grant, params.client);
  if (admission.ok) return admission.principal;
  deny(services, open, params, admission.reason, grant.tokenId);
  return admission;
}

function deny(services: Services, open: OpenConnection, { client }: ConnectParams, reason: ErrorReason, tokenId?: string): void {
  const entry = services.audit.append({
    actor: `address:${open.address}`,
    action: "connect",
    target: `${client.mode}:${client.id}`,
    decision: "denied",
    detail: tokenId === undefined ? reason : `${reason}, token ${tokenId}`,
  });
  services.background("audit", entry);
}

const crowded = (services: Services): Refusal | undefined =>
  services.connections.readyCount() >= LIMITS.authSockets ? refuse("limit.sockets") : undefined;

function misfitNode(principal: Principal, { tools, nodeRuntime }: ConnectParams): Refusal | undefined {
  if (principal.mode !== "node") return undefined;
  const problem = nodeProblem(principal.id, tools ?? [], nodeRuntime);
  return problem === undefined ? undefined : refuse("protocol.bad_connect", problem);
}

function welcome(
  services: Services,
  open: OpenConnection,
  principal: Principal,
  params: ConnectParams,
  old: Connection | undefined,
  requestId: string,
): void {
  const { connections, nodes, nodeLinks } = services;
  const isNode = principal.mode === "node";
  const waiting = isNode ? [...new Set([...nodes.waiting(principal.id), ...(old === undefined ? [] : nodeLinks.refsOf(old))])] : [];
  if (old !== undefined) connections.close(old.socket, CLOSE.replaced, "replaced by a newer connection with the same id");
  const connection = connections.ready(open, principal);
  if (isNode) nodes.connected(params.client, params.tools ?? [], params.nodeRuntime, params.ledger !== undefined, services.clock.now());
  if (isNode && principal.kind === "admin") {
    services.background(
      "audit",
      services.audit.append({
        actor: `node:${principal.id} token:${principal.tokenId}`,
        action: "connect",
        target: `node:${principal.id}`,
        decision: "allowed",
        detail: "with an admin token",
      }),
    );
  }
  connections.answer(connection.socket, requestId, succeed(hello(services, connection)));
  if (isNode) nodeLinks.came(connection, params.ledger?.calls, waiting);
  else if (principal.mode === "client") resume(services, connection, params);
  services.alarms.arm();
}

function hello(services: Services, { principal, conn }: Connection): ConnectResult {
  return {
    type: "hello-ok",
    protocol: LIMITS.protocolVersion,
    server: { version: services.version, connectionId: conn },
    features: featuresFor(principal, ADVERTISED, UNSERVED_EVENTS),
    fingerprint: PROTOCOL_FINGERPRINT,
    scopes: [...scopesOf(principal)],
    pingIntervalMs: LIMITS.pingIntervalMs,
  };
}

/** What the client followed before its link broke, if it may read at all. */
function resume(services: Services, connection: Connection, { resume: asked }: ConnectParams): void {
  if (!scopesOf(connection.principal).includes("read")) return;
  for (const { sessionKey, afterSeq } of asked?.sessions ?? []) {
    const found = canonicalKey(sessionKey, services.config.mainKey(), services.config.defaultAgentId());
    if (found.ok) services.background("resume", resumeFrom(services, connection, found.key, afterSeq));
  }
}
