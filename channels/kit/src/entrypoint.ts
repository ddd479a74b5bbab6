/**
 * What a channel's Worker serves to the gateway over its service binding (ChannelService): validates the parameters and calls the
 * account's Durable Object. It serves nothing over HTTP (promises X17).
 */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { ChannelService } from "../../../protocol/gen/services.ts";
import type {
  ChannelAccount,
  ChannelCapabilities,
  ChannelDone,
  ChannelLogin,
  ChannelSendResult,
  ChannelServiceLiveParams,
  ChannelServiceLoginParams,
  ChannelServiceLogoutParams,
  ChannelServiceRecheckParams,
  ChannelServiceSendParams,
  ChannelServiceStartParams,
  ChannelServiceStatusParams,
  ChannelServiceStopParams,
  ChannelServiceTypingParams,
} from "../../../protocol/gen/types.ts";
import {
  checkChannelServiceLiveParams,
  checkChannelServiceLoginParams,
  checkChannelServiceLogoutParams,
  checkChannelServiceRecheckParams,
  checkChannelServiceSendParams,
  checkChannelServiceStartParams,
  checkChannelServiceStatusParams,
  checkChannelServiceStopParams,
  checkChannelServiceTypingParams,
} from "../../../protocol/gen/validators/checks.js";
import type { AccountObject, KitEnv } from "./account-object.ts";

export interface ChannelEnv extends KitEnv {
  readonly ACCOUNT: DurableObjectNamespace<AccountObject<KitEnv> & Rpc.DurableObjectBranded>;
}
const ACCOUNT_ID = /^[a-z0-9_-]{1,64}$/;

function checked<T extends { readonly accountId?: string }>(check: (value: unknown) => value is T, what: string, params: unknown): T {
  if (!check(params)) throw new TypeError(`${what}: the parameters are not valid`);
  if (params.accountId !== undefined && !ACCOUNT_ID.test(params.accountId)) throw new TypeError(`${what}: the account id is not valid`);
  return params;
}

export class ChannelEntrypoint<E extends ChannelEnv> extends WorkerEntrypoint<E> implements ChannelService {
  #account(accountId: string) {
    return this.env.ACCOUNT.getByName(accountId);
  }
  /** Nothing is served over HTTP. */
  override fetch(_request: Request): Response | Promise<Response> {
    return new Response("This channel answers only its gateway.\n", { status: 404 });
  }
  async describe(): Promise<ChannelCapabilities> {
    return this.#account("default").describe();
  }
  async start(params: ChannelServiceStartParams): Promise<ChannelAccount> {
    const { accountId, config } = checked(checkChannelServiceStartParams, "start", params);
    return this.#account(accountId).start(config);
  }
  async stop(params: ChannelServiceStopParams): Promise<ChannelAccount> {
    return this.#account(checked(checkChannelServiceStopParams, "stop", params).accountId).stop();
  }
  async status(params: ChannelServiceStatusParams): Promise<ChannelAccount[]> {
    const { accountId = "default" } = checked(checkChannelServiceStatusParams, "status", params);
    return [await this.#account(accountId).status()];
  }
  async send(params: ChannelServiceSendParams): Promise<ChannelSendResult> {
    const { accountId, message } = checked(checkChannelServiceSendParams, "send", params);
    return this.#account(accountId).send(message);
  }
  async live(params: ChannelServiceLiveParams): Promise<ChannelDone> {
    const { accountId, live } = checked(checkChannelServiceLiveParams, "live", params);
    await this.#account(accountId).live(live);
    return { ok: true };
  }
  async typing(params: ChannelServiceTypingParams): Promise<ChannelDone> {
    const { accountId, peer, active } = checked(checkChannelServiceTypingParams, "typing", params);
    await this.#account(accountId).typing(peer, active);
    return { ok: true };
  }
  async recheck(params: ChannelServiceRecheckParams): Promise<ChannelDone> {
    await this.#account(checked(checkChannelServiceRecheckParams, "recheck", params).accountId).recheck();
    return { ok: true };
  }
  async login(params: ChannelServiceLoginParams): Promise<ChannelLogin> {
    const { accountId, ...options } = checked(checkChannelServiceLoginParams, "login", params);
    return this.#account(accountId).login({ force: false, ...options });
  }
  async logout(params: ChannelServiceLogoutParams): Promise<ChannelAccount> {
    return this.#account(checked(checkChannelServiceLogoutParams, "logout", params).accountId).logout();
  }
}
