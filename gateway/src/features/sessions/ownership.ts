/**
 * Whose a conversation is (promises S7, S8, X8). The main one and those of the command line are the owner's by their names. Any other
 * is what it was when it was made: the owner's when a direct message of the owner's made it, else somebody else's, for ever. No
 * configuration, role or second message changes that; who may write where follows from it, not the other way round.
 */
import type { SessionIdentity } from "../../ports/session.ts";
import type { SessionRecord, Sessions } from "./registry.ts";
import { isOwnersOwn, type SessionAddress } from "../../kernel/routing/session-keys.ts";

export interface Named {
  readonly key: string;
  readonly address: SessionAddress;
}
export const isOwners = (address: SessionAddress, record: Pick<SessionRecord, "owned"> | undefined): boolean =>
  isOwnersOwn(address) || record?.owned === true;

/** The identity of a conversation in which something is said now; it is made when it is not there. `owned`: by the owner. */
export function takeUp(sessions: Pick<Sessions, "touch">, { key, address }: Named, now: number, owned = false): SessionIdentity {
  const record = sessions.touch(key, now, owned);
  return { key, ref: record.ref, agentId: address.agentId, isMain: isOwners(address, record) };
}
/** The same of one that nobody may have said anything in yet. Makes nothing. */
export function lookUp(sessions: Pick<Sessions, "find">, { key, address }: Named, refWhenNew: string): SessionIdentity {
  const record = sessions.find(key);
  return { key, ref: record?.ref ?? refWhenNew, agentId: address.agentId, isMain: isOwners(address, record) };
}
