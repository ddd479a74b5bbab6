/**
 * Decides who may call which method. Reads the contract's method table and the token's record, never what a frame says about its
 * sender. Denies everything that is not granted (gateway rule A1, promise S3). PURE.
 */
import { EVENTS, type EventName, METHODS, type MethodName, type Scope } from "../../../protocol/gen/methods.ts";
import type { ClientInfo, Mode, TokenKind } from "../../../protocol/gen/types.ts";
import { actorText } from "../ports/actor.ts";
import { failure, type GsvError } from "../ports/result.ts";
import type { TokenGrant } from "./token-store.ts";

/** The identity of a connection, from its token's record. */
export interface Principal {
  readonly tokenId: string;
  readonly kind: TokenKind;
  readonly mode: Mode;
  /** Its name in that mode: a client's, a node's, a channel's. */
  readonly id: string;
  readonly expiresAt?: number;
}

/** A connection as an actor of the audit. */
export const actorOf = ({ mode, id, tokenId }: Pick<Principal, "mode" | "id" | "tokenId">): string => actorText(mode, id, tokenId);

const CLIENT_SCOPES: Readonly<Record<TokenKind, readonly Scope[]>> = {
  admin: ["read", "chat", "operate", "admin"],
  client: ["read", "chat", "operate"],
  "client-ro": ["read"],
  node: [],
  channel: [],
};

export function scopesOf({ kind, mode }: Pick<Principal, "kind" | "mode">): readonly Scope[] {
  switch (mode) {
    case "client":
      return CLIENT_SCOPES[kind];
    case "node":
      return kind === "node" || kind === "admin" ? ["node"] : [];
    case "channel":
      return kind === "channel" ? ["channel"] : [];
  }
}

export function may(principal: Pick<Principal, "kind" | "mode">, method: MethodName): boolean {
  const { callers, scope } = METHODS[method];
  // A second `connect` is answered `already_connected`, for every caller.
  if (method === "connect" || !callers.some((caller) => caller === principal.mode)) return false;
  // Scopes tell clients apart. What a node or a channel may call follows from what it is.
  return scopesOf(principal).includes(principal.mode === "client" ? scope : principal.mode);
}

/** Why `may` says no, and which token would do: what a person can create is a kind of token, never a scope. */
export function refusalOf(
  { kind, mode }: Pick<Principal, "kind" | "mode">,
  method: MethodName,
): { readonly message: string; readonly hint?: string } {
  const { callers, scope } = METHODS[method];
  const who = mode === "client" ? `${withArticle(kind)} token` : `A ${mode}`;
  if (!callers.some((caller) => caller === "client"))
    return {
      message: `${mode === "client" ? "A client" : who} may not call ${method}: only ${callers.map((caller) => `${caller}s`).join(" and ")} call it.`,
    };
  const kinds = KINDS.filter((each) => CLIENT_SCOPES[each].includes(scope));
  const least = kinds[0] ?? "admin";
  const named = kinds.length === 1 ? least : `${kinds.slice(0, -1).join(", ")} or ${kinds.at(-1)}`;
  return {
    message: `${who} may not call ${method}: that takes ${withArticle(named).toLowerCase()} token.`,
    hint: `Run the command on the gateway's machine, or make such a token there (\`gsv token create --scope ${least}\`) and store it here: \`gsv local-config set token -\`.`,
  };
}
/** The kinds for clients, the one with the least access first. */
const KINDS = ["client-ro", "client", "admin"] as const satisfies readonly TokenKind[];
const withArticle = (name: string): string => `${name.startsWith("a") ? "An" : "A"} ${name}`;

type Decision = { readonly ok: true; readonly principal: Principal } | { readonly ok: false; readonly error: GsvError };

/** Decides as what a token's holder connects (H3). The frame only chooses among the modes that the record allows. */
export function admit(grant: TokenGrant, client: ClientInfo): Decision {
  const { kind, tokenId } = grant;
  const principal: Principal = {
    tokenId,
    kind,
    mode: client.mode,
    id: client.id,
    ...(grant.expiresAt === undefined ? {} : { expiresAt: grant.expiresAt }),
  };
  const forbidden = (message: string, hint?: string): Decision => failure("auth.forbidden", message, hint);
  const bound = (message: string, hint?: string): Decision => failure("auth.bound", message, hint);
  switch (kind) {
    case "admin":
      return client.mode === "channel"
        ? forbidden("An admin token may connect as a client or a node.", "Make a channel token: `gsv token create --scope channel`.")
        : { ok: true, principal };
    case "client":
    case "client-ro":
      return client.mode === "client" ? { ok: true, principal } : forbidden(`A ${kind} token may connect only as a client.`);
    case "node":
      if (client.mode !== "node") return forbidden("A node token may connect only as a node.");
      return client.id === grant.nodeId
        ? { ok: true, principal }
        : bound(
            `This token is bound to the node ${grant.nodeId ?? "?"}.`,
            "Connect under that id, or make a token for this one: `gsv token create --scope node --node ID`.",
          );
    case "channel": {
      if (client.mode !== "channel") return forbidden("A channel token may connect only as a channel.");
      const account = grant.accountId ?? "default";
      const fits = client.channel === grant.channel && (client.accountId ?? "default") === account;
      return fits
        ? { ok: true, principal: { ...principal, id: `${grant.channel ?? ""}:${account}` } }
        : bound("This token is bound to another channel or account.");
    }
  }
}

/** Whether a new connection may take the place of one with the same mode and id (H4). */
export const mayReplace = (old: Principal, fresh: Principal): boolean => old.tokenId === fresh.tokenId || fresh.kind === "admin";

const isEvent = (name: string): name is EventName => Object.hasOwn(EVENTS, name);
/** The lists of hello-ok: methods that are served and allowed, and events that this kind of caller gets. */
export function featuresFor(
  principal: Principal,
  served: readonly MethodName[],
  unservedEvents: readonly EventName[],
): { readonly methods: string[]; readonly events: string[] } {
  return {
    methods: served.filter((method) => may(principal, method)).sort(),
    events: Object.keys(EVENTS)
      .filter(isEvent)
      .filter((name) => !unservedEvents.includes(name) && EVENTS[name].to.some((caller) => caller === principal.mode))
      .sort(),
  };
}
