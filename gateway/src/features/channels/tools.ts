/**
 * `gsv__Channels` and `gsv__Message`: the agent writes to people and groups on channels. Only for the owner's sessions. The gateway
 * decides whether the agent may write to a place; a message always names its place, there is no default.
 */
import { nothingRead } from "../../policy/taint.ts";
import { parseTarget, type Target } from "../../tools/message-target.ts";
import type { Result } from "../../ports/result.ts";
import { bad, FILE_NAMES, fileNames, integer, optional, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

const MAX_TEXT_CHARS = 16_000;
const MAX_PLACES = 50;
const PLACES = 20;
const MAX_ID_CHARS = 256;

interface Where {
  readonly to: string | undefined;
  readonly channel: string | undefined;
  readonly account: string | undefined;
  readonly peerKind: string | undefined;
  readonly peerId: string | undefined;
}
function targetOf({ to, channel, account, peerKind, peerId }: Where): Result<Target> {
  const apart = [channel, account, peerKind, peerId].some((part) => part !== undefined);
  if (to !== undefined && apart) return bad("The place is named twice. Use either `to`, or `channel`, `peerKind` and `peerId`.");
  const target = parseTarget(to ?? `${channel ?? ""}/${account ?? "-"}/${peerKind ?? ""}/${peerId ?? ""}`);
  if (!target) return bad("The place is missing. Use `to` as gsv__Channels shows it.");
  if (to !== undefined || account !== undefined) return { ok: true, value: target };
  return { ok: true, value: { channel: target.channel, peer: target.peer } };
}

/** The place of a message that has something to say. */
function placeOf({ text, files = [], ...where }: Where & { readonly text: string; readonly files: readonly string[] | undefined }) {
  const target = targetOf(where);
  return target.ok && text.trim() === "" && files.length === 0 ? bad("`text` is empty.") : target;
}

export const CHANNEL_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__Channels",
      description: "Lists the people and groups that gsv__Message may write to, the last active first. They chose their names themselves.",
      policyClass: "read_private",
      properties: {
        query: { type: "string", description: "Part of a name, id or channel." },
        limit: { type: "integer" },
      },
    },
    { query: optional(text(MAX_ID_CHARS)), limit: optional(integer(1, MAX_PLACES)) },
    async ({ query, limit }, { gateway }) => {
      const { channels, places, more } = await gateway.channelPlaces(query ?? "", limit ?? PLACES);
      const shown = places.map(({ lastWroteAt, ...place }) => ({ ...place, lastWroteAt: new Date(lastWroteAt).toISOString() }));
      return {
        ok: true,
        result: { channels, places: shown, ...(more ? { note: "There are more places. Use `query` to find them." } : {}) },
        // The names of people and groups are of others; those of the channels are the owner's.
        ...(shown.length === 0 ? { taint: nothingRead("gsv__Channels") } : {}),
      };
    },
  ),
  tool(
    {
      name: "gsv__Message",
      description:
        "Sends a message to a person or group, when your human asks for it or has agreed. You are told if it cannot be delivered. Not for answers in this conversation; gsv__Attach sends files there.",
      policyClass: "egress",
      properties: {
        to: { type: "string", description: "As gsv__Channels shows it." },
        text: { type: "string", description: "Markdown." },
        files: {
          type: "array",
          items: { type: "string" },
          description: FILE_NAMES,
        },
        replyTo: { type: "string", description: "The platform's id of a message." },
      },
    },
    {
      to: optional(text(512)),
      channel: optional(text(64)),
      account: optional(text(64)),
      peerKind: optional(text(16)),
      peerId: optional(text(MAX_ID_CHARS)),
      text: text(MAX_TEXT_CHARS),
      files: optional(fileNames),
      replyTo: optional(text(MAX_ID_CHARS)),
    },
    async ({ text, files = [], replyTo, ...where }, context, store) => {
      const target = placeOf({ text, files, ...where });
      if (!target.ok) return target;
      const media = await store.outgoing(files, context);
      if (!media.ok) return media;
      const { identity: from, callId, gateway } = context;
      const replyToId = replyTo === undefined ? {} : { replyToId: replyTo };
      return outcome(await gateway.message({ from, callId, target: target.value, text, media: media.value, ...replyToId }));
    },
    {
      refused: (args) => {
        const place = placeOf(args);
        return place.ok ? undefined : place;
      },
    },
  ),
];
