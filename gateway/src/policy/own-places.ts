/** Whether what a call sends goes to the owner (rule PO16). PURE. */
import type { PolicyCall } from "../ports/policy.ts";
import { parseTarget, targetName } from "../tools/message-target.ts";

/**
 * A message to the owner's own direct conversation, named in full by `to` (rule PO16). A place that is named in parts may be another one
 * on another account, so it asks.
 */
export function isToOwner({ target, name, args }: PolicyCall, ownPlaces: readonly string[]): boolean {
  if (target.kind !== "native" || name !== MESSAGE || PARTS.some((part) => Object.hasOwn(args, part))) return false;
  return isOwnPlace(placeIn(args), ownPlaces);
}
const placeIn = (args: PolicyCall["args"]): unknown => (Object.hasOwn(args, "to") ? args["to"] : undefined);
function isOwnPlace(to: unknown, ownPlaces: readonly string[]): boolean {
  const place = typeof to === "string" ? parseTarget(to) : undefined;
  if (place?.accountId === undefined || place.peer.kind !== "dm") return false;
  return ownPlaces.includes(targetName({ ...place, accountId: place.accountId }));
}
/** A job that is asked for without a place answers where it was asked for. */
export function isJobForOwner({ args }: PolicyCall, ownPlaces: readonly string[]): boolean {
  const to = placeIn(args);
  return to === undefined || isOwnPlace(to, ownPlaces);
}
const MESSAGE = "gsv__Message";
const PARTS = ["channel", "account", "peerKind", "peerId"] as const;
