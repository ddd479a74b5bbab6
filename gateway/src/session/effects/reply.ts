/**
 * Reply: hands the end of a run to the channel that its message came from. The channel's outbox is durable and recognises the delivery
 * by its id, so repeating the hand-over is harmless (promise P9). Given up visibly after a day.
 */
import type { Media, OutboundAction, OutboundKind } from "../../../../protocol/gen/types.ts";
import { answersTo } from "../../calls/approval.ts";
import { verbatim } from "../../calls/shown-call.ts";
import type { FailureCause } from "../../ports/channels.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import { type MediaBlock, textOf } from "../../ports/messages.ts";
import type { ReplyRoute, SessionIdentity } from "../../ports/session.ts";
import type { Effect, EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";

export interface ReplyPorts {
  readonly row: (seq: number) => LogRow | undefined;
  /** Whose conversation this is. */
  readonly who: () => SessionIdentity | undefined;
  readonly gateway: Pick<GatewayPort, "reply">;
  readonly wall: () => number;
  readonly commit: (event: EventBody) => void;
  readonly after: After;
}
const MAX_AGE_MS = 86_400_000;
/** Time limit of one call, so that a hanging call does not block later replies of the conversation. */
const ANSWER_MS = 60_000;

/**
 * The effects that may run now: of the replies to one conversation only the first, so that a retried reply is not overtaken by the next
 * one (promise P3), and all other effects.
 */
export function inReplyOrder(open: readonly Effect[]): readonly Effect[] {
  const busy = new Set<string>();
  return open.filter((effect) => {
    if (effect.type !== "Reply") return true;
    const conversation = conversationOf(effect.route);
    if (busy.has(conversation)) return false;
    busy.add(conversation);
    return true;
  });
}

/** An answer to this conversation is not in the channel yet, so no text of a later one may be shown there (gateway rule CH23). */
export const isReplyOpen = (open: readonly Effect[], route: ReplyRoute): boolean =>
  open.some((effect) => effect.type === "Reply" && conversationOf(effect.route) === conversationOf(route));
const conversationOf = ({ channel, accountId, peer }: ReplyRoute): string => JSON.stringify([channel, accountId, peer.kind, peer.id]);

export async function sendReply(
  effect: EffectOf<"Reply">,
  flight: Flight,
  { row, who, gateway, wall, commit, after }: ReplyPorts,
): Promise<FlightEnd> {
  const end = row(effect.seq);
  const done = (): FlightEnd => {
    commit({ type: "EffectDone", effectId: effect.id });
    return "done";
  };
  if (!end) return done();
  const { route, deliveryId } = effect;
  const { kind, text, actions = [], cause } = said(end, who());
  const files = end.kind === "assistant" ? (end.files ?? []) : [];
  const call = gateway
    .reply({
      kind: "send",
      route,
      ...(cause === undefined ? {} : { cause }),
      message: {
        deliveryId,
        kind,
        peer: route.peer,
        text,
        ...(route.replyToId === undefined ? {} : { replyToId: route.replyToId }),
        ...(files.length === 0 ? {} : { media: files.map(toMedia) }),
        ...(actions.length === 0 ? {} : { actions: [...actions] }),
      },
    })
    .catch(() => undefined);
  const result = await within(after, ANSWER_MS, call, () => undefined);
  if (result?.ok) return done();
  const lasting = result?.error.reason === "channel.unknown";
  if (!lasting && wall() - end.at < MAX_AGE_MS) return backoff(flight.tries);
  const why = result?.error.message ?? "the channel could not be reached for a day";
  commit({ type: "Parked", effectId: effect.id, text: `An answer could not be sent over ${route.channel}: ${why}` });
  return done();
}

const toMedia = ({ type, mimeType, r2Key, filename, sizeBytes }: MediaBlock): Media => ({
  type,
  mimeType,
  r2Key,
  ...(filename === undefined ? {} : { filename }),
  ...(sizeBytes === undefined ? {} : { size: sizeBytes }),
});

interface Said {
  readonly kind: OutboundKind;
  readonly text: string;
  readonly actions?: readonly OutboundAction[];
  /** The text hides it. */
  readonly cause?: FailureCause;
}
/** Errors of limits of a day or a month have words for guests already (rule SP7). */
const FOR_GUESTS: ReadonlySet<string> = new Set(["budget.session", "budget.agent", "budget.guest", "budget.day", "budget.month"]);
const NEUTRAL = "Something went wrong, and I can't answer this now. Please try again later.";

function said(row: LogRow, identity: SessionIdentity | undefined): Said {
  if (row.kind === "notice" && row.notice === "error" && identity?.isOwnersSession === false && !FOR_GUESTS.has(row.reason ?? "")) {
    const { key, ref, agentId } = identity;
    const cause = { id: `${ref}/${row.seq}`, sessionKey: key, agentId, runId: row.runId, reason: row.reason ?? "", text: row.text };
    return { kind: "error", text: NEUTRAL, cause };
  }
  if (row.kind === "assistant") return { kind: "answer", text: textOf(row.message.content) };
  if (row.kind === "notice" && row.notice === "paused") {
    const { question } = row;
    const actions = question && answersTo(question.code, question.limit ? "limit" : "call");
    return { kind: "approval", text: verbatim(row.text), ...(actions === undefined ? {} : { actions }) };
  }
  if (row.kind === "notice") return { kind: row.notice === "error" ? "error" : "notice", text: row.text };
  return { kind: "notice", text: "Done." };
}
