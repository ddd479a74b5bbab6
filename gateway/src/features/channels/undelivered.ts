/**
 * The texts about messages that did not reach a platform or may be missing from one (promises P9, P10), for people and models. Texts of
 * platforms and people in them are data: one line, without deceptive characters, names only as JSON. PURE.
 */
import type { ChannelGap, Peer } from "../../../../protocol/gen/types.ts";
import { cleanName } from "../../../../protocol/runtime/clean-name.ts";
import { localDay, localTime } from "../../prompt/dates.ts";
import type { FailureCause } from "../../ports/channels.ts";
import { kindOfDelivery } from "./delivery-ids.ts";

export interface Undelivered {
  readonly id: string;
  readonly channel: string;
  readonly peer?: Peer;
  readonly state: "failed" | "unknown";
  readonly error?: string;
}
const MAX_ERROR = 300;
const SUBJECTS = { message: "A message that you had sent", notice: "A notice", answer: "An answer" } as const;

export function undeliveredText({ id, channel, peer, state, error }: Undelivered): string {
  const to = peer === undefined ? "" : ` to ${namedPeer(peer)}`;
  const why = cleanName(error, MAX_ERROR);
  const what = SUBJECTS[kindOfDelivery(id)];
  const end = state === "failed" ? "could not be delivered" : "may or may not have arrived, and is not sent again";
  return `${what} over ${channel}${to} ${end}${why === undefined ? "" : `: ${why}`}. (${cleanName(id, 160) ?? ""})`;
}

const namedPeer = ({ kind, id, name: given }: Peer): string => {
  const name = cleanName(given);
  return JSON.stringify({ [kind]: cleanName(id, 256) ?? "", ...(name === undefined ? {} : { name }) });
};
/** For the owner: the person was told only that something went wrong (rule NT10). */
export function guestFailedText(
  { channel, peer }: { readonly channel: string; readonly peer: Peer },
  { runId, sessionKey, text }: FailureCause,
): string {
  return `A run over ${channel} for ${namedPeer(peer)} failed, and they were told to try again later. The cause: ${text}\nLook: \`gsv why ${runId} --session ${sessionKey}\`.`;
}

/** For the owner: an account has been down for a while (rule NT11). */
export function downText(down: {
  readonly channel: string;
  readonly accountId: string;
  readonly since: number;
  readonly error: string | undefined;
  readonly timeZone: string;
}): string {
  const { channel, accountId, since, timeZone } = down;
  const why = cleanName(down.error, MAX_ERROR);
  const account = accountId === "default" ? "" : ` (account ${cleanName(accountId) ?? ""})`;
  return `${channel}${account} has not been connected since ${localTime(since, timeZone)} (${timeZone})${why === undefined ? "" : `: ${why}`}. It tries again by itself. Look: \`gsv channel status ${channel}\`.`;
}

/** Tells of a time from which messages of a channel may be missing, in the owner's time zone. */
export function gapText({
  channel,
  gap: { from, until, why },
  timeZone,
}: {
  readonly channel: string;
  readonly gap: ChannelGap;
  readonly timeZone: string;
}): string {
  const reason = cleanName(why, MAX_ERROR);
  const day = localDay(until, timeZone);
  const time = (at: number): string => `${localDay(at, timeZone).today} ${localTime(at, timeZone)}`;
  return `Messages over ${channel} between ${time(from)} and ${time(until)} (${day.timeZone}) may be missing${reason === undefined ? "" : `: ${reason}`}.`;
}
