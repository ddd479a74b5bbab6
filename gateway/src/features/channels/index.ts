/** Channels: messages from platforms to sessions and back, who may talk over them, and messages that the agent sends on its own. */
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { DeliveryReport } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";
import type {
  ChannelMessage,
  ChannelMessageSent,
  ChannelPlaces,
  ChannelPort,
  ChannelRef,
  ChannelsOutPort,
  ReplyCall,
} from "../../ports/channels.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { Result } from "../../ports/result.ts";
import type { SessionsPort, StopListenerPort, StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { Channels } from "./account-store.ts";
import { Deliveries } from "./delivery-store.ts";
import { DownAccounts } from "./down-store.ts";
import { WaitingFiles } from "./file-store.ts";
import { ChannelHub } from "./hub.ts";
import { channelMethods } from "./methods.ts";
import { CHANNEL_HISTORY, CHANNEL_MIGRATIONS } from "./migrations.ts";
import { Pairings } from "./pairing-store.ts";
import { Peers } from "./peer-store.ts";
import { CHANNEL_TOOLS } from "./tools.ts";
import { recheckChannels, wakeChannels } from "./wake.ts";

export interface ChannelPorts
  extends SessionsPort,
    ApprovalsPort,
    NotifyPort,
    Pick<StopListenerPort, "onStopChange">,
    Pick<StopPort, "stopped">,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "contextVersion" | "database" | "ids" | "log" | "now" | "scrub"> {
  /** The Worker of a channel; undefined: none is bound. */
  readonly channel: (name: string) => ChannelService | undefined;
  readonly channelNames: () => readonly string[];
  readonly bucket: Pick<Bucket, "delete">;
}
/** What channels' Workers and sessions may call. */
export interface ChannelsRpc {
  readonly inbound: ChannelPort["channelInbound"];
  readonly mediaKey: ChannelPort["channelMediaKey"];
  readonly fileKey: ChannelPort["channelFileKey"];
  readonly mayRead: ChannelPort["channelMayRead"];
  readonly refused: ChannelPort["channelRefused"];
  readonly status: ChannelPort["channelStatus"];
  delivered(account: ChannelRef, report: DeliveryReport): void;
  mayDeliver(): boolean;
  reply(call: ReplyCall): Promise<Result<void>>;
  places(query: string, limit: number): ChannelPlaces;
  message(input: ChannelMessage): Promise<Result<ChannelMessageSent>>;
}

export const channelsFeature: FeatureDefinition<ChannelPorts, ChannelsOutPort & { readonly channelsRpc: ChannelsRpc }> = {
  name: "channels",
  history: CHANNEL_HISTORY,
  migrations: CHANNEL_MIGRATIONS,
  tools: CHANNEL_TOOLS,
  create(ports) {
    const { database, ids, log, background } = ports;
    const files = new WaitingFiles(database);
    const deliveries = new Deliveries(database);
    const hub = new ChannelHub({
      ...ports,
      channels: new Channels(database),
      pairings: new Pairings(database),
      deliveries,
      down: new DownAccounts(database),
      peers: new Peers(database),
      files,
      sha256: ids.sha256,
      random: ids.bytes,
      service: ports.channel,
      names: ports.channelNames,
    });
    ports.onStopChange(() => {
      if (ports.stopped() === undefined) deliveries.resumed(ports.now());
      return recheckChannels(hub, (channel, error) => log.warn("channel_not_told_of_stop", { channel, error }));
    });
    return {
      offers: {
        channelsOut: {
          message: (input) => hub.outgoing.message(input),
          lastOwn: () => hub.outgoing.lastOwn(),
          lastFromOthers: (channel, agentId, since) => hub.outgoing.lastFromOthers(channel, agentId, since),
          wasStarted: (channel) => hub.outgoing.wasStarted(channel),
          notify: (input) => hub.outgoing.notify(input),
          refusalOf: (target) => hub.outgoing.refusalOf(target),
          problemOf: (target) => hub.outgoing.problemOf(target),
        },
        channelsRpc: {
          inbound: (account, inbound) => hub.inbound(account, inbound),
          mediaKey: (account, inbound, file) => hub.mediaKey(account, inbound, file),
          fileKey: (account, inbound, file) => hub.fileKey(account, inbound, file),
          mayRead: (account, deliveryId, r2Key) => hub.mayRead(account, deliveryId, r2Key),
          refused: (channel, claimed) => hub.refused(channel, claimed),
          status: async (account, state) => hub.status(account, state),
          delivered: (account, report) => hub.delivered(account, report),
          mayDeliver: () => ports.stopped() === undefined,
          reply: (call) => hub.deliverer.reply(call),
          places: (query, limit) => hub.outgoing.places(query, limit),
          message: (input) => hub.outgoing.message(input),
        },
      },
      methods: channelMethods({ hub, log }),
      // Only the owner's conversations may send messages.
      runContext: ({ named }) => (named !== undefined && ports.sessions.isOwners(named) ? { ownPlaces: hub.outgoing.own() } : {}),
      contextVersion: () => `own ${hub.outgoing.ownVersion()}`,
      // Answered only with an error that says how channels deliver their messages.
      unlisted: ["channel.inbound"],
      alarms: [
        { name: "held_messages", next: () => hub.pairing.nextRelease(), run: () => background("release", hub.pairing.releaseAll()) },
        {
          name: "undelivered",
          next: () => hub.deliverer.nextTelling(),
          run: () => background("tell_undelivered", hub.deliverer.tellUndelivered()),
        },
        { name: "channels_down", next: () => hub.watch.nextTelling(), run: (at) => hub.watch.tell(at) },
        { name: "channels_asked", next: () => hub.watch.nextAsking(), run: (at) => background("ask_channels", hub.watch.ask(at)) },
        { name: "channel_files", next: () => files.nextExpiry(), run: () => background("sweep_files", hub.sweepFiles()) },
        { name: "channel_retention", next: () => hub.retention.next(), run: (at) => hub.retention.prune(at) },
      ],
      restarted: () =>
        background(
          "wake_channels",
          wakeChannels(hub, (channel, error) => log.error("wake_failed", { channel, error })),
        ),
    };
  },
};
