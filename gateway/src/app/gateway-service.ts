/**
 * What the gateway serves to channels' Workers over their service bindings (GatewayService): checks what comes in and hands it to the
 * Gateway object. The properties of the service binding say which channel calls; what the caller says of itself is ignored (rule CH24). Files pass through
 * here, because channels have no access to the storage (CH25). There is no way to this entrypoint over HTTP.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { GatewayService } from "../../../protocol/gen/services.ts";
import type {
  ChannelDone,
  ChannelFileRead,
  ChannelInboundOutcome,
  ChannelMayDeliver,
  ChannelMediaSlot,
  GatewayServiceDeliveredParams,
  GatewayServiceInboundParams,
  GatewayServiceMayDeliverParams,
  GatewayServiceMediaParams,
  GatewayServiceStatusParams,
} from "../../../protocol/gen/types.ts";
import {
  checkChannelFileRead,
  checkGatewayServiceDeliveredParams,
  checkGatewayServiceInboundParams,
  checkGatewayServiceMayDeliverParams,
  checkGatewayServiceMediaParams,
  checkGatewayServiceStatusParams,
} from "../../../protocol/gen/validators/checks.js";
import type { TypeName } from "../../../protocol/gen/explain-table.ts";
import type { GatewayFiles, OutboundBytes } from "../../../protocol/runtime/channel-files.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import type { Env } from "../platform/env.ts";
import { gatewayStub } from "../platform/stubs.ts";
import type { ChannelRef } from "../ports/channels.ts";

/** The properties of the service binding; the deployment writes them. */
export interface ChannelProps {
  /** The name of the channel's Worker. */
  readonly channel?: string;
}

function checked<T>(check: (value: unknown) => value is T, name: TypeName, params: unknown): T {
  if (!check(params)) throw new TypeError(`${name}: ${explainText(name, params)}`);
  return params;
}

export class GatewayEntrypoint extends WorkerEntrypoint<Env, ChannelProps> implements GatewayService, GatewayFiles {
  /** The account under the binding's own channel. Throws when the caller claims another channel. */
  async #own({ channel: claimed, accountId }: ChannelRef): Promise<ChannelRef> {
    const channel = this.ctx.props?.channel;
    if (typeof channel === "string" && channel !== "" && claimed.toLowerCase() === channel) return { channel, accountId };
    await gatewayStub(this.env).channelRefused(channel, claimed);
    if (typeof channel === "string" && channel !== "")
      throw new TypeError(`this service binding is of the channel ${channel}, not of another`);
    throw new TypeError('this service binding names no channel: add "props": { "channel": "<name>" } to it and deploy the channel again');
  }

  async inbound(params: GatewayServiceInboundParams): Promise<ChannelInboundOutcome> {
    const { account, inbound } = checked(checkGatewayServiceInboundParams, "GatewayServiceInboundParams", params);
    return gatewayStub(this.env).channelInbound(await this.#own(account), inbound);
  }
  async media(params: GatewayServiceMediaParams): Promise<ChannelMediaSlot> {
    const { account, inbound, mimeType, index } = checked(checkGatewayServiceMediaParams, "GatewayServiceMediaParams", params);
    const r2Key = await gatewayStub(this.env).channelMediaKey(await this.#own(account), inbound, { mimeType, index });
    return r2Key === undefined ? {} : { r2Key };
  }
  async storeFile(params: GatewayServiceMediaParams, bytes: Uint8Array): Promise<ChannelMediaSlot> {
    const { account, inbound, mimeType, index } = checked(checkGatewayServiceMediaParams, "GatewayServiceMediaParams", params);
    const own = await this.#own(account);
    if (!(bytes instanceof Uint8Array) || bytes.byteLength > LIMITS.mediaBytes)
      throw new TypeError(`a file has at most ${LIMITS.mediaBytes} bytes`);
    const place = await gatewayStub(this.env).channelFileKey(own, inbound, { mimeType, index, sizeBytes: bytes.byteLength });
    if (place.kind === "unwanted") return {};
    if (place.kind === "full")
      throw new Error(
        `this channel has stored ${LIMITS.channelFiles} files, or ${LIMITS.channelFilesBytes} bytes, for messages that have not come: send these messages first`,
      );
    const { r2Key } = place;
    await this.env.STORAGE.put(r2Key, bytes, {
      httpMetadata: { contentType: params.mimeType },
      customMetadata: {
        originalFilename: (params.filename ?? "").slice(0, 256),
        uploadedAt: String(Date.now()),
        // The second part of `media/{sessionKey}/{uuid}.{ext}`.
        sessionKey: r2Key.split("/")[1] ?? "",
      },
    });
    return { r2Key };
  }
  async readFile(params: ChannelFileRead): Promise<OutboundBytes | null> {
    const { account, deliveryId, r2Key, maxBytes } = checked(checkChannelFileRead, "ChannelFileRead", params);
    const own = await this.#own(account);
    if (!(await gatewayStub(this.env).channelMayRead(own, deliveryId, r2Key)))
      throw new TypeError("this file is not part of a delivery of this channel");
    const object = await this.env.STORAGE.get(r2Key);
    if (object === null) return null;
    if (object.size <= maxBytes) return { sizeBytes: object.size, bytes: new Uint8Array(await object.arrayBuffer()) };
    await object.body.cancel();
    return { sizeBytes: object.size };
  }
  async status(params: GatewayServiceStatusParams): Promise<ChannelDone> {
    const { account, state } = checked(checkGatewayServiceStatusParams, "GatewayServiceStatusParams", params);
    await gatewayStub(this.env).channelStatus(await this.#own(account), state);
    return { ok: true };
  }
  async delivered(params: GatewayServiceDeliveredParams): Promise<ChannelDone> {
    const { account, report } = checked(checkGatewayServiceDeliveredParams, "GatewayServiceDeliveredParams", params);
    await gatewayStub(this.env).channelDelivered(await this.#own(account), report);
    return { ok: true };
  }
  async mayDeliver(params: GatewayServiceMayDeliverParams): Promise<ChannelMayDeliver> {
    const { account } = checked(checkGatewayServiceMayDeliverParams, "GatewayServiceMayDeliverParams", params);
    await this.#own(account);
    return { may: await gatewayStub(this.env).channelMayDeliver() };
  }
}
