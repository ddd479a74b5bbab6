/**
 * Decides who may open a socket or send an HTTP request (wire rules H2, H7; promises S1, S2), by origin, token, and the failed attempts
 * of an address. What a token may do is decided in `authorise.ts`.
 */
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Admitted, HttpCaller } from "../ports/http.ts";
import type { Result } from "../ports/result.ts";
import { scopesOf } from "./authorise.ts";
import { addressGroup, FailureWindow } from "./limits.ts";
import { fail } from "./outcome.ts";
import type { TokenGrant, Tokens } from "./token-store.ts";

export interface UpgradeFacts {
  readonly method: string;
  readonly upgrade: string | null;
  readonly origin: string | null;
  /** The request carries a valid token. */
  readonly vouched: boolean;
  /** Sockets without a hello that were closed here and are not gone yet: all, and those from the same address. */
  readonly closingSockets: number;
  /** Empty where it is not known. */
  readonly address: string;
  readonly closingFromAddress: number;
  /** Sockets with a hello, and those that a token vouches for. */
  readonly readySockets: number;
}
export interface HttpRefusal {
  readonly reason: ErrorReason;
  readonly message: string;
}
export interface AdmissionPorts {
  readonly tokens: Pick<Tokens, "configured" | "verify">;
  readonly now: () => number;
  /** Origins of browsers that may connect. */
  readonly allowedOrigins: () => readonly string[];
}

/** Sockets without a hello that are closing at once, beside `unauthSockets` that are open. */
const MAX_CLOSING = LIMITS.unauthSockets / 2;
/** The rest is for addresses of which no socket is closing: some addresses must not keep out all others. */
const MAX_CLOSING_WITH_SHARE = LIMITS.unauthSockets;

const refuse = (reason: ErrorReason, message: string = ERRORS[reason].text): HttpRefusal => ({ reason, message });

export class Admission {
  readonly #ports: AdmissionPorts;
  readonly #failures = new FailureWindow(LIMITS.authFailuresPerMinute);

  constructor(ports: AdmissionPorts) {
    this.#ports = ports;
  }

  /** Why a WebSocket upgrade is refused; undefined when it is allowed. */
  upgradeRefusal(facts: UpgradeFacts): HttpRefusal | undefined {
    const { tokens, now, allowedOrigins } = this.#ports;
    if (facts.method !== "GET" || facts.upgrade?.toLowerCase() !== "websocket")
      return refuse("protocol.unsupported", "This address speaks WebSocket: send a GET request with `Upgrade: websocket`.");
    if (!originAllowed(facts.origin, allowedOrigins())) return refuse("auth.origin");
    if (!tokens.configured(now())) return refuse("auth.not_configured");
    // A closed socket holds memory until its peer has answered. A socket that only waits makes way for a newer one.
    const isFresh = facts.address !== "" && facts.closingFromAddress === 0;
    const flooded =
      facts.closingSockets >= (isFresh ? MAX_CLOSING_WITH_SHARE : MAX_CLOSING) ||
      facts.closingFromAddress >= LIMITS.unauthSocketsPerAddress;
    return facts.readySockets >= LIMITS.authSockets || (flooded && !facts.vouched) ? refuse("limit.sockets") : undefined;
  }

  /** Whether the upgrade itself carries a valid token (H9). A wrong token counts as a failure; `connect` refuses it. */
  async vouches({ token, address }: Pick<HttpCaller, "token" | "address">): Promise<boolean> {
    if (token === undefined) return false;
    const { tokens, now } = this.#ports;
    const grant = await tokens.verify(token, now());
    if (grant === undefined) this.failed(address);
    return grant !== undefined;
  }

  /** The scopes of a bearer token over HTTP, or a refusal. */
  async authenticate(caller: HttpCaller): Promise<Admitted<{ readonly scopes: readonly string[] }>> {
    const grant = await this.grant(caller);
    if (!grant.ok) return grant;
    const { kind } = grant.value;
    return { ok: true, value: { scopes: httpScopes(kind) } };
  }

  /** The record of the caller's token. Counts a failure of its address. */
  async grant({ token, origin, address }: HttpCaller): Promise<Result<TokenGrant>> {
    const { tokens, now, allowedOrigins } = this.#ports;
    if (!originAllowed(origin ?? null, allowedOrigins())) return fail("auth.origin");
    if (!tokens.configured(now())) return fail("auth.not_configured");
    const grant = token === undefined ? undefined : await tokens.verify(token, now());
    if (grant !== undefined) return { ok: true, value: grant };
    return this.failed(address) ? fail("limit.rate", TOO_MANY_ATTEMPTS) : fail("auth.required");
  }

  /** The record of a token that may submit tasks: who may chat may do so. */
  async grantTask(caller: HttpCaller): Promise<Result<TokenGrant>> {
    const grant = await this.grant(caller);
    if (!grant.ok) return grant;
    if (httpScopes(grant.value.kind).includes("chat")) return grant;
    return fail("auth.forbidden", "This needs a client or admin token.");
  }

  /** Counts a failed attempt. True: the address has had too many. */
  failed(address: string): boolean {
    return this.#failures.failed(addressGroup(address), this.#ports.now());
  }
}

export const TOO_MANY_ATTEMPTS = "Too many failed attempts.";

const httpScopes = (kind: TokenGrant["kind"]): readonly string[] =>
  scopesOf({ kind, mode: kind === "node" || kind === "channel" ? kind : "client" });

/** Programs send no Origin. A browser always does, and only listed origins may connect; compared whole, never by suffix. */
export function originAllowed(origin: string | null, allowed: readonly string[]): boolean {
  if (origin === null) return true;
  const asked = normalOrigin(origin);
  return asked !== undefined && allowed.some((item) => normalOrigin(item) === asked);
}

/** Scheme, host and port as browsers write them. `null`, which sandboxed pages send, matches no entry. */
function normalOrigin(text: string): string | undefined {
  try {
    const { origin } = new URL(text.trim());
    return origin === "null" ? undefined : origin;
  } catch {
    return undefined;
  }
}
