/** The name of a conversation in the rows of its account. PURE. */

/** The id of a conversation inside an account. */
export const peerName = (peer: { readonly kind: string; readonly id: string }): string => `${peer.kind}:${peer.id}`;
