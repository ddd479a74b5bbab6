/**
 * Call ids name the owner of a tool result. Calls of sessions have `{ref}/{run}/{step}/{index}` (gateway rule G1), calls of clients
 * have `gw/{tokenId}/{name}`. A ref has ten characters, so the two forms never collide. PURE.
 */

export type CallOwner = { readonly kind: "session"; readonly ref: string } | { readonly kind: "gateway" };
const GATEWAY = "gw";
/** A client's own name for a call: on a node with a ledger, a repeated request with the same name runs once. */
const CLIENT_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export const isClientCallName = (name: string): boolean => CLIENT_NAME.test(name);
/** `~` can't begin a client's own name, so generated and chosen names never collide. */
export const clientCallId = (tokenId: string, chosen: string | undefined, fresh: string): string =>
  `${GATEWAY}/${tokenId}/${chosen ?? `~${fresh}`}`;

export function ownerOf(callId: string): CallOwner | undefined {
  const slash = callId.indexOf("/");
  if (slash <= 0) return undefined;
  const head = callId.slice(0, slash);
  return head === GATEWAY ? { kind: "gateway" } : { kind: "session", ref: head };
}
