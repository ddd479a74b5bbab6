/**
 * The handshake (wire rules H1 to H8): turns a new socket into a connection with a principal, or answers with an error and closes it.
 * The identity comes from the token's record; the frame only chooses among what the record allows.
 */
import { type GsvError, succeed } from "../ports/result.ts";
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { type EventName, PROTOCOL_FINGERPRINT } from "../../../protocol/gen/methods.ts";
import type { ConnectParams, ConnectResult } from "../../../protocol/gen/types.ts";
import { checkConnectParams } from "../../../protocol/gen/validators/checks.js";
import { decodeFrame } from "../../../protocol/runtime/codec.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import { actorOf, admit, featuresFor, mayReplace, type Principal, scopesOf } from "./authorise.ts";
import { plainName } from "../ports/actor.ts";
import { peekId, UNKNOWN_ID } from "./frames.ts";
import { type Admission, TOO_MANY_ATTEMPTS } from "./admission.ts";
import type { Connection, OpenConnection } from "./connections.ts";
import type { FeatureSet } from "./feature-set.ts";
import { fail } from "./outcome.ts";
import type { KernelPorts } from "./ports.ts";

export type HandshakePorts = Pick<KernelPorts, "connections" | "tokens" | "audit" | "arm" | "config" | "now"> & {
  readonly admission: Pick<Admission, "failed">;
  readonly features: Pick<FeatureSet, "listed" | "connectProblem" | "connected">;
  /** Version of the program. */
  readonly version: string;
  readonly unservedEvents: readonly EventName[];
};

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

const refuse = (reason: ErrorReason, message?: string, hint?: string): GsvError => fail(reason, message, hint).error;

/** Characters of later frames that may arrive while `connect` is checked, so that a client need not wait for hello-ok. */
const EARLY_CHARS = LIMITS.unauthFrameBytes * 4;

/** Handles one text frame before hello-ok. Returns the frames that came early, once the socket is connected. */
export async function handshake(ports: HandshakePorts, open: OpenConnection, text: string): Promise<readonly string[]> {
  const end = (id: string, error: GsvError): void => {
    ports.connections.answer(open.socket, id, { ok: false, error });
    ports.connections.close(open.socket, CODES[error.reason] ?? CLOSE.protocol, error.reason);
  };
  if (open.greeting) {
    open.early.push(text);
    const waiting = open.early.reduce((sum, early) => sum + early.length, 0);
    if (waiting > EARLY_CHARS)
      end(
        UNKNOWN_ID,
        refuse(
          "protocol.not_connected",
          "Too much was sent before the answer to `connect`.",
          "Wait for the answer to `connect` before you send more.",
        ),
      );
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
  const identified = await identify(ports, open, params);
  // The socket may have closed or timed out meanwhile.
  if (ports.connections.of(open.socket) !== open) return [];
  // No `await` from here on, so that no other handshake can interleave.
  const principal = "reason" in identified ? identified : (crowded(ports) ?? misfit(ports, identified, params) ?? identified);
  if ("reason" in principal) {
    end(frame.id, principal);
    return [];
  }
  const old = ports.connections.byIdentity(principal);
  if (old !== undefined && !mayReplace(old.principal, principal)) {
    deny(ports, open, params, "auth.forbidden");
    end(
      frame.id,
      refuse(
        "auth.forbidden",
        `${principal.id} is connected already, with another token.`,
        `Close that connection first, or use its token${principal.mode === "node" ? ", or give this machine another name: `gsv invite node --name OTHER`" : ""}.`,
      ),
    );
    return [];
  }
  welcome(ports, open, principal, params, old, frame.id);
  return open.early;
}

function tooMuch(params: ConnectParams, text: string): GsvError | undefined {
  if (params.client.mode === "node" || utf8Bytes(text) <= LIMITS.unauthFrameBytes) return undefined;
  return refuse("protocol.too_large", `Before hello-ok a client's frame has at most ${LIMITS.unauthFrameBytes} bytes.`);
}

function wrongVersion({ minProtocol, maxProtocol }: ConnectParams): GsvError | undefined {
  const ours = LIMITS.protocolVersion;
  return minProtocol <= ours && ours <= maxProtocol
    ? undefined
    : refuse("protocol.version", `This gateway speaks protocol version ${ours}, you speak ${minProtocol} to ${maxProtocol}.`);
}

async function identify(ports: HandshakePorts, open: OpenConnection, params: ConnectParams): Promise<Principal | GsvError> {
  const now = ports.now();
  if (!ports.tokens.configured(now)) return refuse("auth.not_configured");
  const token = params.auth?.token;
  const grant = token === undefined ? undefined : await ports.tokens.verify(token, now);
  if (grant === undefined) {
    const tooMany = ports.admission.failed(open.address);
    deny(ports, open, params, tooMany ? "limit.rate" : "auth.required");
    return tooMany ? refuse("limit.rate", TOO_MANY_ATTEMPTS) : refuse("auth.required");
  }
  const admission = admit(grant, params.client);
  if (admission.ok) return admission.principal;
  deny(ports, open, params, admission.error.reason, grant.tokenId);
  return admission.error;
}

function deny(ports: HandshakePorts, open: OpenConnection, { client }: ConnectParams, reason: ErrorReason, tokenId?: string): void {
  ports.audit.append({
    actor: `address:${open.address}`,
    origin: client.mode,
    action: "connect",
    target: `${client.mode}:${plainName(client.id)}`,
    decision: "denied",
    detail: tokenId === undefined ? reason : `${reason}, token ${tokenId}`,
  });
}

const crowded = (ports: HandshakePorts): GsvError | undefined =>
  ports.connections.readyCount() >= LIMITS.authSockets ? refuse("limit.sockets") : undefined;

function misfit(ports: HandshakePorts, principal: Principal, params: ConnectParams): GsvError | undefined {
  const problem = ports.features.connectProblem(principal, params);
  return problem === undefined ? undefined : refuse("protocol.bad_connect", problem.message, problem.hint);
}

function welcome(
  ports: HandshakePorts,
  open: OpenConnection,
  principal: Principal,
  params: ConnectParams,
  old: Connection | undefined,
  requestId: string,
): void {
  const { connections } = ports;
  if (old !== undefined) connections.close(old.socket, CLOSE.replaced, "replaced by a newer connection with the same id");
  const dialect = principal.mode === "client" && params.fingerprint === undefined ? "reference" : "current";
  const connection = connections.ready(open, principal, dialect);
  if (principal.mode === "node" && principal.kind === "admin") {
    ports.audit.append({
      actor: actorOf(principal),
      origin: principal.mode,
      action: "connect",
      target: `node:${principal.id}`,
      decision: "allowed",
      detail: "with an admin token",
    });
  }
  connections.answer(connection.socket, requestId, succeed(hello(ports, connection)));
  ports.features.connected(connection, params, old);
  ports.arm();
}

function hello(ports: HandshakePorts, { principal, conn }: Connection): ConnectResult {
  const timeZone = principal.mode === "client" ? ports.config.timeZone() : undefined;
  return {
    type: "hello-ok",
    protocol: LIMITS.protocolVersion,
    server: { version: ports.version, connectionId: conn, ...(timeZone === undefined ? {} : { timeZone }) },
    features: featuresFor(principal, ports.features.listed, ports.unservedEvents),
    fingerprint: PROTOCOL_FINGERPRINT,
    scopes: [...scopesOf(principal)],
    pingIntervalMs: LIMITS.pingIntervalMs,
  };
}
