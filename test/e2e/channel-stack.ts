/**
 * A message from end to end, with a proxy in every connection: a platform, its channel in one process, the gateway in another, a model.
 * Channel and gateway talk over service bindings, as on the edge, but each binding goes through a proxy that can be down, cut, or lose
 * data. The Workers are those of `dist/runtime`; their state is on disk.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Program } from "../../channels/fakes/example/program.ts";
import { RawWorkerd } from "../../gateway/test/support/raw-workerd.ts";
import { GATEWAY_MODULES, gatewayFiles, runtimeFile } from "./gateway-modules.ts";
import { Client, type FakeModel, type Json, startFakeModel, until } from "./support.ts";

/** The socket option that connects two Workers in two processes. */
const RPC = 'http = (capnpConnectHost = "rpc")';
const DATE = 'compatibilityDate = "2026-11-01"';

/** A channel as it is built. */
export interface Kind {
  readonly name: "example" | "discord" | "whatsapp";
  readonly className: string;
  readonly flags: readonly string[];
  /** Variables of the deployment. */
  readonly texts?: Readonly<Record<string, string>>;
  /** A certificate that the Worker trusts. */
  readonly trusted?: string;
}
const EXAMPLE: Kind = { name: "example", className: "ExampleAccount", flags: [] };

const gatewayConfig = (channel: string, channelPort: number, tokenHash: string): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "gsv", worker = .gsv), (name = "r2", worker = .r2),
    (name = "channel", external = (address = "127.0.0.1:${channelPort}", ${RPC})),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", disk = (path = "files", writable = true, allowDotfiles = true)),
    (name = "internet", network = (allow = ["public", "private"]))
  ],
  sockets = [
    (name = "http", address = "127.0.0.1:0", http = (), service = "gsv"),
    (name = "rpc", address = "127.0.0.1:0", ${RPC}, service = (name = "gsv", entrypoint = "GatewayEntrypoint", props = (json = ${JSON.stringify(JSON.stringify({ channel }))}))),
    (name = "bucket", address = "127.0.0.1:0", http = (), service = "r2")
  ]
);
const gsv :Workerd.Worker = (
  modules = ${GATEWAY_MODULES}, ${DATE},
  durableObjectNamespaces = [
    (className = "Gateway", uniqueKey = "gsv-Gateway", enableSql = true), (className = "Session", uniqueKey = "gsv-Session", enableSql = true),
    (className = "SearchIndex", uniqueKey = "gsv-SearchIndex", enableSql = true)
  ],
  durableObjectStorage = (localDisk = "do"),
  bindings = [
    (name = "GATEWAY", durableObjectNamespace = "Gateway"), (name = "SESSION", durableObjectNamespace = "Session"),
    (name = "SEARCH", durableObjectNamespace = "SearchIndex"), (name = "STORAGE", r2Bucket = "r2"),
    (name = "ENVIRONMENT", text = "embedded"), (name = "VERSION", text = "0.0.1"), (name = "SEALING_KEYS", text = "${"5e".repeat(32)}"),
    (name = "BOOTSTRAP_TOKEN_HASH", text = "${tokenHash}"),
    (name = "CHANNEL_${channel.toUpperCase()}", service = "channel")
  ]
);
const r2 :Workerd.Worker = (
  modules = [(name = "r2.js", esModule = embed "r2.js")], ${DATE},
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "files")]
);
`;
const channelConfig = (
  { className, flags, texts = {}, trusted }: Kind,
  gatewayPort: number,
  bucketPort: number,
): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "channel", worker = .channel), (name = "gateway", external = (address = "127.0.0.1:${gatewayPort}", ${RPC})),
    (name = "bucket", external = (address = "127.0.0.1:${bucketPort}", http = ())),
    (name = "do", disk = (path = "do", writable = true)), (name = "internet", network = (allow = ["public", "private"]${trusted === undefined ? "" : ', tlsOptions = (trustedCertificates = [embed "ca.pem"])'}))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", ${RPC}, service = "channel")]
);
const channel :Workerd.Worker = (
  modules = [(name = "channel.js", esModule = embed "channel.js")], ${DATE}, compatibilityFlags = ${JSON.stringify(flags)},
  durableObjectNamespaces = [(className = "${className}", uniqueKey = "${className}", enableSql = true)],
  durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "ACCOUNT", durableObjectNamespace = "${className}"), (name = "SEALING_KEYS", text = "${"5e".repeat(32)}"), (name = "GATEWAY", service = "gateway"), (name = "STORAGE", r2Bucket = "bucket")${Object.entries(
    texts,
  )
    .map(([name, text]) => `, (name = "${name}", text = ${JSON.stringify(text)})`)
    .join("")}]
);
`;

/** A proxy between two processes. Its address stays the same when the other side is restarted. */
export class Wire {
  /** Port of the other side; absent: nothing listens. */
  target: number | undefined;
  /** Probability that a piece of a call, or of an answer, is lost together with the connection. */
  losesCalls = 0;
  losesAnswers = 0;
  random: () => number = Math.random;
  lost = 0;
  /** Calls pass, answers do not. */
  mute = false;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #server = createServer((near) => this.#join(near));

  async listen(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return this;
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  #join(near: Socket): void {
    if (this.target === undefined) return void near.destroy();
    const far = connect(this.target, "127.0.0.1");
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    const end = (): void => {
      near.destroy();
      far.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of pair) socket.setNoDelay(true).on("error", end).on("close", end);
    const pass = (from: Socket, to: Socket, loses: () => number, isMute: () => boolean): void =>
      void from.on("data", (piece) => {
        if (isMute()) return;
        const chance = loses();
        if (chance > 0 && this.random() < chance) {
          this.lost += 1;
          return end();
        }
        to.write(piece);
      });
    pass(
      near,
      far,
      () => this.losesCalls,
      () => false,
    );
    pass(
      far,
      near,
      () => this.losesAnswers,
      () => this.mute,
    );
  }
  cut(): void {
    for (const [near, far] of this.#pairs) {
      near.destroy();
      far.destroy();
    }
    this.#pairs.clear();
  }
  close(): void {
    this.target = undefined;
    this.cut();
    this.#server.close();
  }
}

export class ChannelStack {
  readonly folder = mkdtempSync(join(tmpdir(), "gsv-stack-"));
  readonly token = `gsv_admin_${randomBytes(24).toString("hex")}`;
  readonly program = new Program(`hmac-${randomBytes(16).toString("hex")}`);
  /** From the channel to the gateway, and from the gateway to the channel. */
  readonly toGateway = new Wire();
  readonly toChannel = new Wire();
  /** From the channel to the bucket, which is in the gateway's process. */
  readonly toBucket = new Wire();
  /** Environment of both processes, from their next start on. */
  env: Readonly<Record<string, string>> = {};
  readonly model: FakeModel;
  readonly #logs: string[] = [];
  #gateway: RawWorkerd | undefined;
  #channel: RawWorkerd | undefined;
  readonly #clients: Client[] = [];

  readonly #kind: Kind;

  private constructor(model: FakeModel, kind: Kind) {
    this.model = model;
    this.#kind = kind;
  }
  /** `channel`: its configuration in the gateway. `account`: its start configuration; by default the example's, with a callback. */
  static async start(channel: Json, kind: Kind = EXAMPLE, account?: Json): Promise<ChannelStack> {
    const stack = new ChannelStack(await startFakeModel(), kind);
    for (const name of ["gateway/do", "gateway/files", "channel/do"]) mkdirSync(join(stack.folder, name), { recursive: true });
    await Promise.all([stack.program.listen(), stack.toGateway.listen(), stack.toChannel.listen(), stack.toBucket.listen()]);
    try {
      await Promise.all([stack.bootGateway(), stack.bootChannel()]);
    } catch (error) {
      // What runs already would keep the test alive.
      await stack.end();
      throw error;
    }
    const client = await stack.client();
    await client.call("config.set", { path: "model", value: { provider: "openai", id: "fake-1", baseUrl: `${stack.model.url}/v1` } });
    await client.call("config.set", { path: "apiKeys", value: { openai: "sk-of-the-fake-provider" } });
    await client.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    await client.call("config.set", { path: `channels.${kind.name}`, value: channel });
    const config = account ?? { secret: stack.program.secret, callbackUrl: stack.program.url };
    await client.call("channel.start", { channel: kind.name, config });
    return stack;
  }
  async bootGateway(): Promise<void> {
    const hash = createHash("sha256").update(this.token).digest("hex");
    const files = gatewayFiles();
    const config = gatewayConfig(this.#kind.name, this.toChannel.port, hash);
    this.#gateway = await RawWorkerd.start(join(this.folder, "gateway"), config, files, ["http", "rpc", "bucket"], this.env);
    this.toGateway.target = this.#gateway.ports.get("rpc");
    this.toBucket.target = this.#gateway.ports.get("bucket");
    // The supervisor's first request, which resumes the sessions.
    await fetch(`${this.#gateway.url}/health`);
  }
  async bootChannel(): Promise<void> {
    const { name, trusted } = this.#kind;
    const files = { "channel.js": runtimeFile(`channels/${name}.js`), ...(trusted === undefined ? {} : { "ca.pem": trusted }) };
    this.#channel = await RawWorkerd.start(
      join(this.folder, "channel"),
      channelConfig(this.#kind, this.toGateway.port, this.toBucket.port),
      files,
      ["http"],
      this.env,
    );
    this.toChannel.target = this.#channel.ports.get("http");
  }
  async killGateway(): Promise<void> {
    for (const wire of [this.toGateway, this.toBucket]) {
      wire.target = undefined;
      wire.cut();
    }
    await this.#gateway?.kill();
    this.#logs.push(this.#gateway?.log ?? "");
    this.#gateway = undefined;
  }
  async killChannel(): Promise<void> {
    this.toChannel.target = undefined;
    this.toChannel.cut();
    await this.#channel?.kill();
    this.#logs.push(this.#channel?.log ?? "");
    this.#channel = undefined;
  }
  /** Ages the store of the channel. Only while its process is dead. */
  alter(statement: string): void {
    const objects = join(this.folder, "channel", "do", this.#kind.className);
    for (const name of readdirSync(objects).filter((file) => file.endsWith(".sqlite") && file !== "metadata.sqlite")) {
      const db = new DatabaseSync(join(objects, name));
      db.exec(statement);
      db.close();
    }
  }
  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    await Promise.all([this.killGateway(), this.killChannel()]);
    for (const wire of [this.toGateway, this.toChannel, this.toBucket]) wire.close();
    await Promise.all([this.program.close(), this.model.close()]);
    rmSync(this.folder, { recursive: true, force: true });
  }
  /** All output of both processes. */
  get output(): string {
    return [...this.#logs, this.#gateway?.log ?? "", this.#channel?.log ?? ""].join("\n");
  }
  get pids(): { readonly gateway: number; readonly channel: number } {
    return { gateway: this.#gateway?.pid ?? 0, channel: this.#channel?.pid ?? 0 };
  }

  /** `params`: merged over those of `connect`. */
  async client(params?: Json): Promise<Client> {
    const { port } = new URL(this.#gateway?.url ?? "");
    const client = await Client.connect(`ws://127.0.0.1:${port}/ws`, { token: this.token, ...(params ? { params } : {}) });
    this.#clients.push(client);
    return client;
  }
  async call(method: string, params?: Json): Promise<Json> {
    const client = await this.client();
    try {
      return await client.call(method, params);
    } finally {
      client.close();
    }
  }
  /** Sends one webhook, once. */
  async post(message: Json): Promise<number> {
    const body = JSON.stringify(message);
    try {
      const response = await fetch(`${this.#channel?.url}/default`, { method: "POST", body, headers: this.program.sign(body) });
      await response.text();
      return response.status;
    } catch {
      return 0;
    }
  }
  /** Sends a webhook until it is accepted. */
  async say(from: string, id: string, text: string, more: Json = {}): Promise<void> {
    await until(`${id} is taken`, async () => (await this.post({ id, from, text, ...more })) === 200);
  }
  /** Waits until so many texts were shown to a person. */
  async told(person: string, count: number): Promise<string[]> {
    return until(`${count} messages to ${person}`, () => {
      const texts = this.program.to(person);
      return texts.length >= count ? texts : undefined;
    }).catch((error: unknown) => {
      throw new Error(`${String(error)}; seen: ${JSON.stringify(this.program.to(person))}\n${this.output.slice(-3_000)}`);
    });
  }
  /** Waits until the channel has nothing left to hand over or to send. */
  async quiet(): Promise<void> {
    await until(
      "nothing waits",
      async () => {
        const { accounts } = await this.call("channel.status", { channel: this.#kind.name });
        return (accounts as Json[]).every((account) => account["inboxWaiting"] === 0 && account["outboxWaiting"] === 0);
      },
      undefined,
      100,
    );
  }
}
