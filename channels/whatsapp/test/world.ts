/** The real Worker on the kit's stage, linked to a fake WhatsApp: one account, its owner and its peers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelLogin,
  ChannelSendResult,
  DeliveryReport,
  OutboundMessage,
} from "../../../protocol/gen/types.ts";
import { FakeWhatsApp } from "../../fakes/whatsapp/server.ts";
import { Stage, type StagedWorker } from "../../kit/test/stage.ts";

/** `script`: the built bundle. */
export const stagedWorker = (fake: FakeWhatsApp, script: string, noiseRoot = fake.rootHex): StagedWorker => ({
  script: readFileSync(script, "utf8"),
  className: "WhatsAppAccount",
  date: "2026-11-01",
  flags: [],
  texts: { WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: noiseRoot },
  trusted: fake.tls.cert,
});

export class World {
  readonly fake = new FakeWhatsApp();
  readonly #stage = new Stage();
  noiseRoot: string | undefined;

  async start(script: string): Promise<this> {
    await this.fake.listen();
    await this.#stage.open(stagedWorker(this.fake, script, this.noiseRoot));
    return this;
  }
  boot = (): Promise<void> => this.#stage.boot();
  kill = (): Promise<void> => this.#stage.kill();
  async end(): Promise<void> {
    await this.#stage.end();
    await this.fake.close();
  }
  get output(): string {
    return this.#stage.output;
  }
  /** Messages that the gateway took, in order, with duplicates. */
  get inbound(): readonly ChannelInbound[] {
    return this.#stage.gateway().calls;
  }
  set away(away: boolean) {
    this.#stage.gateway().away = away;
  }
  get statuses(): readonly ChannelAccount[] {
    return this.#stage.gateway().states;
  }

  #call<T>(method: string, params: object): Promise<T> {
    return this.#stage.call(method, { accountId: "default", ...params });
  }
  startAccount = (settings: object = {}): Promise<ChannelAccount> => this.#call("start", { config: settings });
  stop = (): Promise<ChannelAccount> => this.#call("stop", {});
  login = (options: object = {}): Promise<ChannelLogin> => this.#call("login", options);
  logout = (): Promise<ChannelAccount> => this.#call("logout", {});
  status = (): Promise<ChannelAccount> => this.#stage.status();
  statusWhere = (holds: (account: ChannelAccount) => boolean): Promise<ChannelAccount> => this.#stage.statusWhere("the status", holds);
  send = (message: Omit<OutboundMessage, "kind">): Promise<ChannelSendResult> => this.#stage.send(message);
  typing = (peer: OutboundMessage["peer"], active: boolean): Promise<void> => this.#call("typing", { peer, active });
  put = (key: string, bytes: Uint8Array): Promise<void> => this.#stage.put(key, bytes);
  get = (key: string): Promise<Buffer> => this.#stage.get(key);

  /** Waits for a condition on either side. */
  until = <T>(what: string, look: () => T | undefined | false, ms?: number): Promise<T> => this.#stage.until(what, look, ms);
  async connected(since = this.fake.noted("flushed").length): Promise<void> {
    await this.until("connected", () => this.fake.noted("flushed").length > since);
  }
  received = (id: string): Promise<ChannelInbound> =>
    this.until(`the gateway gets ${id}`, () => this.inbound.find(({ message }) => message.id === id));
  reported = (deliveryId: string): Promise<DeliveryReport> => this.#stage.report(deliveryId);
  /** Links the account by the QR code. */
  async pair(): Promise<void> {
    const login = await this.login();
    assert.equal(login.state, "qr", login.message);
    const before = this.fake.noted("flushed").length;
    this.fake.linking.scan(login.qr ?? "");
    await this.connected(before);
  }
}
