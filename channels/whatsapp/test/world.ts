/**
 * The real Worker as it is deployed, on the real runtime, between a fake WhatsApp and a test that plays the gateway. All state is on
 * disk, so that the runtime can be killed and started again.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelLogin,
  ChannelSendResult,
  DeliveryReport,
  OutboundMessage,
} from "../../../protocol/gen/types.ts";
import { bundle, RawWorkerd } from "../../../gateway/test/support/raw-workerd.ts";
import { FakeWhatsApp } from "../../fakes/whatsapp/server.ts";

const here = dirname(fileURLToPath(import.meta.url));
const ACCOUNT = "default";

function config(worker: { readonly testUrl: string; readonly url: string; readonly noiseRoot: string }): string {
  const flags = 'compatibilityDate = "2026-11-01"';
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "gateway", worker = .gateway), (name = "whatsapp", worker = .whatsapp), (name = "r2", worker = .r2),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", disk = (path = "files", writable = true)),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = false, trustedCertificates = [embed "ca.pem"])))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "gateway")]
);
const gateway :Workerd.Worker = (modules = [(name = "gateway.js", esModule = embed "gateway.js")], ${flags},
  bindings = [(name = "CHANNEL", service = "whatsapp"), (name = "STORAGE", r2Bucket = "r2"), (name = "TEST_URL", text = "${worker.testUrl}")]);
const whatsapp :Workerd.Worker = (modules = [(name = "whatsapp.js", esModule = embed "whatsapp.js")], ${flags},
  durableObjectNamespaces = [(className = "WhatsAppAccount", uniqueKey = "WhatsAppAccount", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [
    (name = "ACCOUNT", durableObjectNamespace = "WhatsAppAccount"), (name = "STORAGE", r2Bucket = "r2"),
    (name = "GATEWAY", service = (name = "gateway", entrypoint = "GatewayEntrypoint")),
    (name = "WHATSAPP_URL", text = "${worker.url}"), (name = "WHATSAPP_NOISE_ROOT", text = "${worker.noiseRoot}")
  ]);
const r2 :Workerd.Worker = (modules = [(name = "r2.js", esModule = embed "r2.js")], compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "files")]);
`;
}

export class World {
  readonly fake = new FakeWhatsApp();
  readonly folder = mkdtempSync(join(tmpdir(), "gsv-whatsapp-"));
  /** What the gateway took, in order. The same message twice is here twice. */
  readonly inbound: ChannelInbound[] = [];
  readonly statuses: ChannelAccount[] = [];
  readonly delivered: DeliveryReport[] = [];
  noiseRoot: string | undefined;
  #log = "";
  #worker = "";
  #workerd: RawWorkerd | undefined;
  readonly #server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    request.on("end", () => {
      const answer = this.#answer((request.url ?? "").slice(1), JSON.parse(text));
      response.writeHead(answer === undefined ? 503 : 200).end(JSON.stringify(answer ?? {}));
      this.fake.note("gateway");
    });
  });

  #answer(method: string, params: { inbound: ChannelInbound; state: ChannelAccount; report: DeliveryReport; index: number }): unknown {
    switch (method) {
      case "inbound":
        this.inbound.push(params.inbound);
        return { outcome: "accepted" };
      case "media":
        return { r2Key: `media/s/${params.inbound.message.id}-${params.index}` };
      case "status":
        this.statuses.push(params.state);
        return { ok: true };
      case "delivered":
        this.delivered.push(params.report);
        return { ok: true };
      default:
        return undefined;
    }
  }
  /** `worker`: the built bundle. */
  async start(worker: string): Promise<this> {
    this.#worker = worker;
    for (const name of ["do", "files"]) mkdirSync(join(this.folder, name), { recursive: true });
    await this.fake.listen();
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    await this.boot();
    return this;
  }
  async boot(): Promise<void> {
    const [gateway, r2] = await Promise.all([
      bundle(join(here, "gateway-stub.ts")),
      bundle(join(here, "..", "..", "..", "gateway", "embedded", "r2.ts")),
    ]);
    const testUrl = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.#workerd = await RawWorkerd.start(
      this.folder,
      config({ testUrl, url: this.fake.url, noiseRoot: this.noiseRoot ?? this.fake.rootHex }),
      { "gateway.js": gateway, "r2.js": r2, "whatsapp.js": readFileSync(this.#worker, "utf8"), "ca.pem": this.fake.tls.cert },
    );
  }
  async kill(): Promise<void> {
    await this.#workerd?.kill();
    this.#log += this.#workerd?.log ?? "";
    this.#workerd = undefined;
  }
  async restart(): Promise<void> {
    await this.kill();
    await this.boot();
  }
  async end(): Promise<void> {
    await this.kill();
    await this.fake.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }
  /** Everything that the runtime has printed. */
  get output(): string {
    return this.#log + (this.#workerd?.log ?? "");
  }

  async #call<T>(method: string, params: object): Promise<T> {
    assert(this.#workerd);
    const response = await fetch(`${this.#workerd.url}/${method}`, {
      method: "POST",
      body: JSON.stringify({ accountId: ACCOUNT, ...params }),
    });
    const text = await response.text();
    assert.equal(response.status, 200, `${method}: ${text}`);
    return JSON.parse(text) as T;
  }
  startAccount = async (settings: object = {}): Promise<ChannelAccount> => this.#call("start", { config: settings });
  stop = async (): Promise<ChannelAccount> => this.#call("stop", {});
  login = async (options: object = {}): Promise<ChannelLogin> => this.#call("login", options);
  logout = async (): Promise<ChannelAccount> => this.#call("logout", {});
  async status(): Promise<ChannelAccount> {
    const [account] = await this.#call<ChannelAccount[]>("status", {});
    assert(account);
    return account;
  }
  /** Asks until it says so, at most ten seconds. */
  async statusWhere(holds: (account: ChannelAccount) => boolean): Promise<ChannelAccount> {
    for (const end = Date.now() + 10_000; ; ) {
      const account = await this.status();
      if (holds(account) || Date.now() > end) return account;
    }
  }
  send = async (message: Omit<OutboundMessage, "kind">): Promise<ChannelSendResult> =>
    this.#call("send", { message: { kind: "answer", ...message } });
  typing = async (peer: OutboundMessage["peer"], active: boolean): Promise<void> => this.#call("typing", { peer, active });
  async put(key: string, bytes: Uint8Array): Promise<void> {
    assert(this.#workerd);
    await fetch(`${this.#workerd.url}/put?key=${encodeURIComponent(key)}`, { method: "POST", body: Buffer.from(bytes) });
  }
  async get(key: string): Promise<Buffer> {
    assert(this.#workerd);
    const response = await fetch(`${this.#workerd.url}/get?key=${encodeURIComponent(key)}`);
    assert.equal(response.status, 200, key);
    return Buffer.from(await response.arrayBuffer());
  }

  /** Waits until it holds, whichever side moves. */
  async until<T>(what: string, look: () => T | undefined | false, ms?: number): Promise<T> {
    try {
      return await this.fake.until(what, look, ms);
    } catch (error) {
      throw new Error(`${String(error)}\n${this.output.split("\n").slice(-12).join("\n")}`);
    }
  }
  async connected(since = this.fake.noted("flushed").length): Promise<void> {
    await this.until("connected", () => this.fake.noted("flushed").length > since);
  }
  received = async (id: string): Promise<ChannelInbound> =>
    this.until(`the gateway gets ${id}`, () => this.inbound.find(({ message }) => message.id === id));
  reported = async (deliveryId: string): Promise<DeliveryReport> =>
    this.until(`the gateway hears of ${deliveryId}`, () => this.delivered.find((report) => report.deliveryId === deliveryId));
  /** Links the account as its owner does, by the QR code. */
  async pair(): Promise<void> {
    const login = await this.login();
    assert.equal(login.state, "qr", login.message);
    const before = this.fake.noted("flushed").length;
    this.fake.linking.scan(login.qr ?? "");
    await this.connected(before);
  }
}
