/**
 * Call ids: who a tool result belongs to. A session's are `{ref}/{run}/{step}/{index}` (gateway rule G1); the gateway's own, for
 * tools that a client called itself, are `gw/{tokenId}/{name}`. A ref has ten characters, so the two never meet. PURE.
 */

export type CallOwner = { readonly kind: "session"; readonly ref: string } | { readonly kind: "gateway" };
const GATEWAY = "gw";
/** What a client may choose as a call's name: with it, asking twice runs once on a node with a ledger. */
const CLIENT_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export const isClientCallName = (name: string): boolean => CLIENT_NAME.test(name);
/** `~` can't begin a client's own name, so fresh names and chosen ones never meet. */
export const clientCallId = (tokenId: string, chosen: string | undefined, fresh: string): string =>
  `${GATEWAY}/${tokenId}/${chosen ?? `~${fresh}`}`;

export function ownerOf(callId: string): CallOwner | undefined {
  const slash = callId.indexOf("/");
  if (slash <= 0) return undefined;
  const head = callId.slice(0, slash);
  return head === GATEWAY ? { kind: "gateway" } : { kind: "session", ref: head };
}
