/** What is checked of a WebSocket upgrade before a socket exists (wire rules H2, H7; promises S1, S2). Pure. */
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";

export interface UpgradeFacts {
  readonly method: string;
  readonly upgrade: string | null;
  readonly origin: string | null;
  readonly allowedOrigins: readonly string[];
  readonly tokenConfigured: boolean;
  /** Sockets that have not said hello: all, and those from the same address. */
  readonly openSockets: number;
  readonly openFromAddress: number;
  readonly readySockets: number;
}
export interface HttpRefusal {
  readonly reason: ErrorReason;
  readonly message: string;
}
const refuse = (reason: ErrorReason, message: string = ERRORS[reason].text): HttpRefusal => ({ reason, message });

export function checkUpgrade(facts: UpgradeFacts): HttpRefusal | undefined {
  if (facts.method !== "GET" || facts.upgrade?.toLowerCase() !== "websocket")
    return refuse("protocol.unsupported", "This address speaks WebSocket: send a GET request with `Upgrade: websocket`.");
  if (!originAllowed(facts.origin, facts.allowedOrigins)) return refuse("auth.origin");
  if (!facts.tokenConfigured) return refuse("auth.not_configured");
  const crowded =
    facts.openSockets >= LIMITS.unauthSockets ||
    facts.openFromAddress >= LIMITS.unauthSocketsPerAddress ||
    facts.readySockets >= LIMITS.authSockets;
  return crowded ? refuse("limit.sockets") : undefined;
}

/** Programs send no Origin. A browser always does, and only those that are listed may come in; compared whole, never by suffix. */
export function originAllowed(origin: string | null, allowed: readonly string[]): boolean {
  if (origin === null) return true;
  const asked = normalOrigin(origin);
  return asked !== undefined && allowed.some((item) => normalOrigin(item) === asked);
}

/** Scheme, host and port as browsers write them. `null`, which sandboxed pages send, is nobody's. */
function normalOrigin(text: string): string | undefined {
  try {
    const { origin } = new URL(text.trim());
    return origin === "null" ? undefined : origin;
  } catch {
    return undefined;
  }
}

/**
 * Whether an embedded gateway may be reached under this Host (promises TH9): a page of a stranger's domain that was made to resolve to
 * this machine still says that domain's name. Loopback names only, and what was allowed by hand.
 */
export function hostAllowed(host: string | null, allowed: readonly string[]): boolean {
  if (host === null || host === "") return false;
  const name = hostName(host);
  return name !== undefined && (isLoopback(name) || allowed.some((item) => item === name || item === host.toLowerCase()));
}

function hostName(host: string): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:@/?#\s]+)(?::\d{1,5})?$/i.exec(host.trim());
  return match?.[1]?.toLowerCase().replace(/\.$/, "");
}

const isLoopback = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(name);
