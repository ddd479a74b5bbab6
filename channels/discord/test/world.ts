/**
 * The real Discord Worker on workerd, with its state on disk, between a fake Discord and a fake gateway that the test itself is. A
 * black box: only what the gateway and Discord see is looked at.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { RawWorkerd, bundle } from "../../../gateway/test/support/raw-workerd.ts";
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  OutboundMessage,
} from "../../../protocol/gen/types.ts";
import { FakeDiscord, type FakeOptions } from "../../fakes/discord/fake-discord.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..", "..");

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
/** As wrangler would do it, by what wrangler.jsonc says. */
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
    // Node's own modules by their full names, as wrangler has them.
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

const GATEWAY = `import { WorkerEntrypoint } from "cloudflare:workers";
const ask = async (method, params) => (await fetch("TEST/" + method, { method: "POST", body: JSON.stringify(params) })).json();
export class GatewayEntrypoint extends WorkerEntrypoint {
  inbound(params) { return ask("inbound", params); }
  media(params) { return ask("media", params); }
  status(params) { return ask("status", params); }
  delivered(params) { return ask("delivered", params); }
}
export default { async fetch(request, env) {
  const url = new URL(request.url);
  if (url.pathname === "/file") {
    if (request.method === "PUT") { await env.STORAGE.put(url.searchParams.get("key"), await request.arrayBuffer()); return new Response("ok"); }
    const object = await env.STORAGE.get(url.searchParams.get("key"));
    return object ? new Response(object.body) : new Response("none", { status: 404 });
  }
  try { return Response.json(await env.CHANNEL[url.pathname.slice(1)](await request.json())); }
  catch (error) { return new Response(String(error), { status: 500 }); }
} };`;

const capnp = (flags: readonly string[], date: string): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = .app), (name = "gateway", worker = .gateway), (name = "r2", worker = .r2),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", disk = (path = "files", writable = true)),
    (name = "internet", network = (allow = ["private", "local"]))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "gateway")]
);
const app :Workerd.Worker = (
  modules = [(name = "app.js", esModule = embed "app.js")], compatibilityDate = "${date}", compatibilityFlags = ${JSON.stringify(flags)},
  durableObjectNamespaces = [(className = "DiscordAccount", uniqueKey = "DiscordAccount", enableSql = true)],
  durableObjectStorage = (localDisk = "do"),
  bindings = [
    (name = "ACCOUNT", durableObjectNamespace = "DiscordAccount"), (name = "STORAGE", r2Bucket = "r2"),
    (name = "GATEWAY", service = (name = "gateway", entrypoint = "GatewayEntrypoint"))
  ]
);
const gateway :Workerd.Worker = (
  modules = [(name = "gateway.js", esModule = embed "gateway.js")], compatibilityDate = "${date}",
  bindings = [(name = "CHANNEL", service = "app"), (name = "STORAGE", r2Bucket = "r2")]
);
const r2 :Workerd.Worker = (
  modules = [(name = "r2.js", esModule = embed "r2.js")], compatibilityDate = "${date}",
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "files")]
);
`;

interface InboundCall {
  readonly account: { readonly accountId: string };
  readonly inbound: ChannelInbound;
}
/** One bot: an account of the channel with its own fake Discord. */
export class Bot {
  readonly world: World;
  readonly accountId: string;
  readonly discord: FakeDiscord;
  readonly inbound: ChannelInbound[] = [];
  readonly states: ChannelAccount[] = [];
  readonly delivered: DeliveryReport[] = [];
  /** What the gateway says to a message; by default that it is accepted. */
  answer: (inbound: ChannelInbound) => ChannelInboundOutcome = () => ({ outcome: "accepted" });
  /** The gateway is away. */
  away = false;
  #deliveries = 0;

  constructor(world: World, accountId: string, discord: FakeDiscord) {
    this.world = world;
    this.accountId = accountId;
    this.discord = discord;
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
  async send(message: Omit<OutboundMessage, "deliveryId" | "kind">, deliveryId = `d${this.#deliveries++}`): Promise<string> {
    await this.world.call("send", { accountId: this.accountId, message: { deliveryId, kind: "answer", ...message } });
    return deliveryId;
  }
  async report(deliveryId: string): Promise<DeliveryReport> {
    return this.world.until(() => this.delivered.find((report) => report.deliveryId === deliveryId), `the report of ${deliveryId}`);
  }
  async received(test: (inbound: ChannelInbound) => boolean, what: string): Promise<ChannelInbound> {
    return this.world.until(() => this.inbound.find(test), what);
  }
}

export class World {
  readonly #folder = mkdtempSync(join(tmpdir(), "gsv-discord-"));
  readonly #bots = new Map<string, Bot>();
  readonly #logs: string[] = [];
  #server: Server | undefined;
  #workerd: RawWorkerd | undefined;
  #modules: Record<string, string> = {};
  #changed: (() => void)[] = [];

  async open(): Promise<this> {
    for (const name of ["do", "files"]) mkdirSync(join(this.#folder, name), { recursive: true });
    this.#server = createServer((request, response) => {
      let text = "";
      request.on("data", (data: Buffer) => {
        text += data.toString();
      });
      request.on("end", () => {
        const value = this.#asked((request.url ?? "").slice(1), JSON.parse(text));
        if (value === undefined) response.destroy();
        else response.end(JSON.stringify(value));
        for (const wake of this.#changed.splice(0)) wake();
      });
    });
    await new Promise<void>((resolve) => this.#server?.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    const [app, r2] = await Promise.all([bundleWorker(false), bundle(join(root, "gateway", "embedded", "r2.ts"))]);
    this.#modules = { "app.js": app, "r2.js": r2, "gateway.js": GATEWAY.replace("TEST", `http://127.0.0.1:${port}`) };
    await this.boot();
    return this;
  }
  async boot(): Promise<void> {
    const { compatibility_flags: flags, compatibility_date: date } = wranglerConfig();
    this.#workerd = await RawWorkerd.start(this.#folder, capnp(flags, date), this.#modules);
  }
  async kill(): Promise<void> {
    if (this.#workerd) this.#logs.push(this.#workerd.log);
    await this.#workerd?.kill();
    this.#workerd = undefined;
  }
  async close(): Promise<void> {
    await this.kill();
    for (const { discord } of this.#bots.values()) await discord.close();
    this.#server?.closeAllConnections();
    this.#server?.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
  /** Everything that the Worker has ever printed. */
  get output(): string {
    return [...this.#logs, this.#workerd?.log ?? ""].join("\n");
  }
  async bot(accountId: string, options: FakeOptions = {}): Promise<Bot> {
    const bot = new Bot(this, accountId, await new FakeDiscord(options).listen());
    this.#bots.set(accountId, bot);
    return bot;
  }
  #asked(method: string, params: InboundCall & { state: ChannelAccount; report: DeliveryReport; index: number }): unknown {
    const bot = this.#bots.get(params.account.accountId);
    if (!bot || bot.away) return undefined;
    switch (method) {
      case "inbound":
        bot.inbound.push(params.inbound);
        return bot.answer(params.inbound);
      case "media":
        return { r2Key: `media/test/${params.inbound.message.id}-${params.index}.bin` };
      case "status":
        bot.states.push(params.state);
        return { ok: true };
      default:
        bot.delivered.push(params.report);
        return { ok: true };
    }
  }
  async call<T>(method: string, params: unknown): Promise<T> {
    const response = await fetch(`${this.#workerd?.url}/${method}`, { method: "POST", body: JSON.stringify(params) });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return JSON.parse(text) as T;
  }
  async put(key: string, bytes: Uint8Array): Promise<void> {
    await fetch(`${this.#workerd?.url}/file?key=${encodeURIComponent(key)}`, { method: "PUT", body: bytes as unknown as BodyInit });
  }
  async get(key: string): Promise<string> {
    return (await fetch(`${this.#workerd?.url}/file?key=${encodeURIComponent(key)}`)).text();
  }
  /** Waits for what the gateway sees. */
  async until<T>(look: () => T | undefined, what: string, ms = 10_000): Promise<T> {
    const end = Date.now() + ms;
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      const left = end - Date.now();
      if (left <= 0) throw new Error(`${what} did not come; the Worker said:\n${this.output.slice(-3_000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#changed.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }
}
