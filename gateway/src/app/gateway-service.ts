/**
 * Serves the channels' Workers over their service bindings (GatewayService): checks each call and passes it to the Gateway object. Only
 * Workers that the deployment binds can reach it; it has no HTTP address.
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { GatewayService } from "../../../protocol/gen/services.ts";
import type {
  ChannelDone,
  ChannelInboundOutcome,
  ChannelMediaSlot,
  GatewayServiceDeliveredParams,
  GatewayServiceInboundParams,
  GatewayServiceMediaParams,
  GatewayServiceStatusParams,
} from "../../../protocol/gen/types.ts";
import {
  checkGatewayServiceDeliveredParams,
  checkGatewayServiceInboundParams,
  checkGatewayServiceMediaParams,
  checkGatewayServiceStatusParams,
} from "../../../protocol/gen/validators/checks.js";
import type { TypeName } from "../../../protocol/gen/explain-table.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import type { Env } from "../platform/env.ts";
import { gatewayStub } from "../platform/stubs.ts";

function checked<T>(check: (value: unknown) => value is T, name: TypeName, params: unknown): T {
  if (!check(params)) throw new TypeError(`${name}: ${explainText(name, params)}`);
  return params;
}

export class GatewayEntrypoint extends WorkerEntrypoint<Env> implements GatewayService {
  async inbound(params: GatewayServiceInboundParams): Promise<ChannelInboundOutcome> {
    const { account, inbound } = checked(checkGatewayServiceInboundParams, "GatewayServiceInboundParams", params);
    return gatewayStub(this.env).channelInbound(account, inbound);
  }
  async media(params: GatewayServiceMediaParams): Promise<ChannelMediaSlot> {
    const { account, inbound, mimeType, index } = checked(checkGatewayServiceMediaParams, "GatewayServiceMediaParams", params);
    const r2Key = await gatewayStub(this.env).channelMediaKey(account, inbound, { mimeType, index });
    return r2Key === undefined ? {} : { r2Key };
  }
  async status(params: GatewayServiceStatusParams): Promise<ChannelDone> {
    const { account, state } = checked(checkGatewayServiceStatusParams, "GatewayServiceStatusParams", params);
    await gatewayStub(this.env).channelStatus(account, state);
    return { ok: true };
  }
  async delivered(params: GatewayServiceDeliveredParams): Promise<ChannelDone> {
    const { account, report } = checked(checkGatewayServiceDeliveredParams, "GatewayServiceDeliveredParams", params);
    await gatewayStub(this.env).channelDelivered(account, report);
    return { ok: true };
  }
}
