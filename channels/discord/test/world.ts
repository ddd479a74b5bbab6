/** The real Discord Worker on the kit's stage; each bot is an account with its own fake Discord. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  OutboundMessage,
} from "../../../protocol/gen/types.ts";
import { FakeDiscord, type FakeOptions } from "../../fakes/discord/fake-discord.ts";
import { type GatewaySide, Stage, type StagedWorker } from "../../kit/test/stage.ts";

const here = dirname(fileURLToPath(import.meta.url));

interface WranglerConfig {
  readonly compatibility_date: string;
  readonly compatibility_flags: readonly string[];
  readonly alias: Record<string, string>;
  readonly define: Record<string, string>;
}
export function wranglerConfig(): WranglerConfig {
  const text = readFileSync(join(here, "..", "wrangler.jsonc"), "utf8");
  return JSON.parse(text.replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*/g, (_, string: string | undefined) => string ?? "")) as WranglerConfig;
}
/** Bundles as wrangler.jsonc says. */
export async function bundleWorker(minify: boolean): Promise<string> {
  const { alias, define } = wranglerConfig();
  const result = await build({
    entryPoints: [join(here, "..", "src", "worker.ts")],
    bundle: true,
    minify,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    mainFields: ["browser", "module", "main"],
    external: ["cloudflare:*", "node:*", "zlib-sync"],
    // Node's modules with their full names, as in wrangler.
    alias: {
      ...Object.fromEntries(["url", "path", "events", "util", "buffer", "process"].map((name) => [name, `node:${name}`])),
      ...Object.fromEntries(Object.entries(alias).map(([name, path]) => [name, join(here, "..", path)])),
    },
    define,
    write: false,
    logLevel: "error",
  });
  return result.outputFiles[0]?.text ?? "";
}

export async function stagedWorker(): Promise<StagedWorker> {
  const { compatibility_date: date, compatibility_flags: flags } = wranglerConfig();
  return { script: await bundleWorker(false), className: "DiscordAccount", date, flags };
}

/** One bot: an account of the channel with its own fake Discord. */
export class Bot {
  readonly world: World;
  readonly accountId: string;
  readonly discord: FakeDiscord;
  readonly #gateway: GatewaySide;
  #deliveries = 0;

  constructor(world: World, accountId: string, discord: FakeDiscord, gateway: GatewaySide) {
    this.world = world;
    this.accountId = accountId;
    this.discord = discord;
    this.#gateway = gateway;
  }
  get inbound(): readonly ChannelInbound[] {
    return this.#gateway.calls;
  }
  get states(): readonly ChannelAccount[] {
    return this.#gateway.states;
  }
  /** The gateway's answer to a message; accepted by default. */
  set answer(rule: (inbound: ChannelInbound) => ChannelInboundOutcome) {
    this.#gateway.rule = rule;
  }
  set away(away: boolean) {
    this.#gateway.away = away;
  }
  start(config: Record<string, unknown> = {}): Promise<ChannelAccount> {
    const { token, api } = this.discord;
    return this.world.call("start", { accountId: this.accountId, config: { token, apiBase: api, ...config } });
  }
  async connected(): Promise<this> {
    await this.start();
    await this.discord.until(({ kind }) => kind === "gateway.ready", "ready");
    return this;
  }
  async status(): Promise<ChannelAccount> {
    const [state] = await this.world.call<ChannelAccount[]>("status", { accountId: this.accountId });
    if (!state) throw new Error("no state");
    return state;
  }
  async send(
    message: Omit<OutboundMessage, "deliveryId" | "kind"> & Partial<Pick<OutboundMessage, "kind">>,
    deliveryId = `d${this.#deliveries++}`,
  ): Promise<string> {
    await this.world.call("send", { accountId: this.accountId, message: { deliveryId, kind: "answer", ...message } });
    return deliveryId;
  }
  report(deliveryId: string): Promise<DeliveryReport> {
    return this.world.stage.report(deliveryId, this.accountId);
  }
  async received(test: (inbound: ChannelInbound) => boolean, what: string): Promise<ChannelInbound> {
    return this.world.until(() => this.inbound.find(test), what);
  }
}

export class World {
  readonly stage = new Stage();
  readonly #bots: Bot[] = [];

  async open(): Promise<this> {
    await this.stage.open(await stagedWorker());
    return this;
  }
  boot = (): Promise<void> => this.stage.boot();
  kill = (): Promise<void> => this.stage.kill();
  async close(): Promise<void> {
    await this.stage.end();
    for (const { discord } of this.#bots) await discord.close();
  }
  get output(): string {
    return this.stage.output;
  }
  async bot(accountId: string, options: FakeOptions = {}): Promise<Bot> {
    const bot = new Bot(this, accountId, await new FakeDiscord(options).listen(), this.stage.gateway(accountId));
    this.#bots.push(bot);
    return bot;
  }
  call = <T>(method: string, params: object): Promise<T> => this.stage.call(method, params);
  put = (key: string, bytes: Uint8Array): Promise<void> => this.stage.put(key, bytes);
  async get(key: string): Promise<string> {
    return (await this.stage.get(key)).toString();
  }
  /** Waits for what the gateway sees. */
  until = <T>(look: () => T | undefined, what: string, ms?: number): Promise<T> => this.stage.until(what, look, ms);
}
