/**
 * Who caused a message, a run or a tool call. Stored with the run; policy, budgets and the audit log read it. No code parses ids,
 * session keys or texts to learn who asks.
 */
import type { Peer } from "../../../protocol/gen/types.ts";

export type Origin =
  /** A connected client; `tokenId` names the token of its connection. */
  | { readonly kind: "client"; readonly clientId: string; readonly tokenId?: string }
  /** A sender on a channel. `role` is the sender's access when the message arrived. */
  | {
      readonly kind: "channel";
      readonly channel: string;
      readonly accountId: string;
      readonly peer: Peer;
      readonly senderId?: string;
      readonly role: "owner" | "guest";
    }
  /** Another session of the same gateway. `hops` counts the sessions in the chain, from 1. */
  | { readonly kind: "session"; readonly sessionKey: string; readonly hops: number }
  /** The end of a background command on a node. */
  | { readonly kind: "node_event"; readonly nodeId: string }
  /** The gateway itself, for example a note about an undelivered message. */
  | { readonly kind: "gateway" };
