/**
 * Runs a channel's built Worker on the real runtime between a fake platform and a gateway that the test plays. All state is on disk, so
 * that the Worker can be killed and restarted. A black box: tests look only at what the gateway and the platform see.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  ChannelAccount,
  ChannelInbound,
  ChannelInboundOutcome,
  ChannelSendResult,
  DeliveryReport,
  OutboundMessage,
} from "../../../protocol/gen/types.ts";
import { bundle, RawWorkerd } from "../../../gateway/test/support/raw-workerd.ts";

const here = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(here, "..", "..", "..");

/** The channel under test. */
export interface StagedWorker {
  readonly script: string;
  /** Class of the account's Durable Object. */
  readonly className: string;
  readonly date: string;
  readonly flags: readonly string[];
  /** Variables of the deployment. */
  readonly texts?: Readonly<Record<string, string>>;
  /** A certificate that the Worker trusts. */
  readonly trusted?: string;
}
/** The keys of every staged Worker. */
export const SEALING_KEYS = "5e".repeat(32);
const capnp = ({ className, date, flags, texts = {}, trusted }: StagedWorker, testUrl: string): string => {
  const trust = `(trustBrowserCas = false, trustedCertificates = [${trusted === undefined ? "" : 'embed "ca.pem"'}])`;
  const variables = Object.entries(texts).map(([name, text]) => `, (name = "${name}", text = ${JSON.stringify(text)})`);
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "gateway", worker = .gateway), (name = "channel", worker = .channel), (name = "r2", worker = .r2),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", disk = (path = "files", writable = true)),
    (name = "internet", network = (allow = ["public", "private", "local"], tlsOptions = ${trust}))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "gateway")]
);
const channel :Workerd.Worker = (
  modules = [(name = "channel.js", esModule = embed "channel.js")], compatibilityDate = "${date}", compatibilityFlags = ${JSON.stringify(flags)},
  durableObjectNamespaces = [(className = "${className}", uniqueKey = "${className}", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [
    (name = "ACCOUNT", durableObjectNamespace = "${className}"), (name = "SEALING_KEYS", text = "${SEALING_KEYS}"),
    (name = "GATEWAY", service = (name = "gateway", entrypoint = "GatewayEntrypoint"))${variables.join("")}
  ]
);
const gateway :Workerd.Worker = (
  modules = [(name = "gateway.js", esModule = embed "gateway.js")], compatibilityDate = "${date}",
  bindings = [(name = "CHANNEL", service = "channel"), (name = "STORAGE", r2Bucket = "r2"), (name = "TEST_URL", text = "${testUrl}")]
);
const r2 :Workerd.Worker = (
  modules = [(name = "r2.js", esModule = embed "r2.js")], compatibilityDate = "${date}",
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "files")]
);
`;
};

/** `away`: the call fails without effect. `garbage`: the answer is not valid. `lost`: it has its effect and the answer is lost. */
export type Answer = ChannelInboundOutcome | "away" | "garbage" | { readonly lost: ChannelInboundOutcome };
export type Rule = (inbound: ChannelInbound, nth: number) => Answer | Promise<Answer>;

/** A fake gateway for one account. Idempotent: the same message again gets the same answer. */
export class GatewaySide {
  /** All calls, also failed ones. */
  readonly calls: ChannelInbound[] = [];
  /** Accepted messages in order, without duplicates. */
  readonly taken: ChannelInbound[] = [];
  readonly states: ChannelAccount[] = [];
  readonly reports: DeliveryReport[] = [];
  away = false;
  /** Everything is stopped, and how often the channel asked whether messages may leave. */
  stopped = false;
  asks = 0;
  /** Accepts everything by default. A rule of the conversation has priority. */
  rule: Rule = () => ({ outcome: "accepted" });
  readonly rules = new Map<string, Rule>();
  /** Reports of these deliveries are taken, and the answers to them are lost. */
  readonly loseReports = new Set<string>();
  readonly #known = new Map<string, ChannelInboundOutcome>();
  readonly #tries = new Map<string, number>();

  async inbound(inbound: ChannelInbound): Promise<unknown> {
    const name = `${inbound.peer.kind}:${inbound.peer.id}/${inbound.message.id}`;
    const nth = (this.#tries.get(name) ?? 0) + 1;
    this.#tries.set(name, nth);
    this.calls.push(inbound);
    const answer = await (this.rules.get(inbound.peer.id) ?? this.rule)(inbound, nth);
    if (answer === "away") return undefined;
    if (answer === "garbage") return { outcome: 5, replies: "none" };
    const lost = "lost" in answer;
    const outcome = this.#known.get(name) ?? (lost ? answer.lost : answer);
    if (!this.#known.has(name) && outcome.outcome !== "later") {
      this.#known.set(name, outcome.outcome === "accepted" ? { ...outcome, outcome: "duplicate" } : outcome);
      this.taken.push(inbound);
    }
    return lost ? undefined : outcome;
  }
  delivered(report: DeliveryReport): unknown {
    this.reports.push(report);
    return this.loseReports.delete(report.deliveryId) ? undefined : { ok: true };
  }
  /** Accepted texts of one conversation. */
  textsOf(peerId: string): string[] {
    return this.taken.filter(({ peer }) => peer.id === peerId).map(({ message }) => message.text);
  }
}

interface Asked {
  readonly account: { readonly accountId: string };
  readonly inbound: ChannelInbound;
  readonly state: ChannelAccount;
  readonly report: DeliveryReport;
  readonly index: number;
}
export class Stage {
  readonly folder = mkdtempSync(join(tmpdir(), "gsv-channel-"));
  readonly #gateways = new Map<string, GatewaySide>();
  readonly #server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => void this.#serve((request.url ?? "").slice(1), JSON.parse(text) as Asked, response));
  });
  #worker: StagedWorker | undefined;
  #modules: Record<string, string> = {};
  #workerd: RawWorkerd | undefined;
  #log = "";
  #watchers: (() => void)[] = [];

  /** Pass `texts` to `boot` when they depend on the test. */
  async open(worker: StagedWorker): Promise<this> {
    for (const name of ["do", "files"]) mkdirSync(join(this.folder, name), { recursive: true });
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const [gateway, r2] = await Promise.all([bundle(join(here, "gateway-stub.ts")), bundle(join(ROOT, "gateway", "embedded", "r2.ts"))]);
    this.#modules = { "gateway.js": gateway, "r2.js": r2 };
    await this.boot(worker);
    return this;
  }
  async boot(worker = this.#worker): Promise<void> {
    if (!worker) throw new Error("the stage was not opened");
    this.#worker = worker;
    const { port } = this.#server.address() as AddressInfo;
    this.#workerd = await RawWorkerd.start(this.folder, capnp(worker, `http://127.0.0.1:${port}`), {
      ...this.#modules,
      "channel.js": worker.script,
      ...(worker.trusted === undefined ? {} : { "ca.pem": worker.trusted }),
    });
  }
  async kill(): Promise<void> {
    await this.#workerd?.kill();
    this.#log += this.#workerd?.log ?? "";
    this.#workerd = undefined;
  }
  async end(): Promise<void> {
    await this.kill();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }
  /** The runtime's whole output. */
  get output(): string {
    return this.#log + (this.#workerd?.log ?? "");
  }
  gateway(accountId = "default"): GatewaySide {
    const side = this.#gateways.get(accountId) ?? new GatewaySide();
    this.#gateways.set(accountId, side);
    return side;
  }
  async #serve(method: string, asked: Asked, response: ServerResponse): Promise<void> {
    const gateway = this.gateway(asked.account.accountId);
    const answer = gateway.away ? undefined : await this.#answer(gateway, method, asked);
    if (answer === undefined) response.destroy();
    else response.end(JSON.stringify(answer));
    this.wake();
  }
  async #answer(gateway: GatewaySide, method: string, { inbound, state, report, index }: Asked): Promise<unknown> {
    switch (method) {
      case "inbound": {
        const outcome = gateway.inbound(inbound);
        this.wake();
        return outcome;
      }
      case "media":
        return { r2Key: `media/s/${inbound.message.id}-${index}.bin` };
      case "status":
        gateway.states.push(state);
        return { ok: true };
      case "mayDeliver":
        gateway.asks += 1;
        return { may: !gateway.stopped };
      default:
        return gateway.delivered(report);
    }
  }

  // ---------------------------------------------------------------- calls of the gateway to the channel

  url(path: string): string {
    if (!this.#workerd) throw new Error("the runtime is not there");
    return `${this.#workerd.url}${path}`;
  }
  async call<T>(method: string, params: object): Promise<T> {
    const response = await fetch(this.url(`/call/${method}`), { method: "POST", body: JSON.stringify(params) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method}: ${text}`);
    return JSON.parse(text) as T;
  }
  /** An HTTP request from outside. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url(`/worker${path}`), init);
  }
  async status(accountId = "default"): Promise<ChannelAccount> {
    const [state] = await this.call<ChannelAccount[]>("status", { accountId });
    if (!state) throw new Error("no state");
    return state;
  }
  /** Polls the status until the condition holds. */
  async statusWhere(what: string, holds: (state: ChannelAccount) => boolean, accountId = "default"): Promise<ChannelAccount> {
    for (const end = Date.now() + 15_000; ; ) {
      const state = await this.status(accountId);
      if (holds(state)) return state;
      if (Date.now() > end) throw new Error(`${what}: not reached; the state is ${JSON.stringify(state)}`);
    }
  }
  send(message: Omit<OutboundMessage, "kind">, accountId = "default"): Promise<ChannelSendResult> {
    return this.call("send", { accountId, message: { kind: "answer", ...message } });
  }
  async put(key: string, bytes: Uint8Array): Promise<void> {
    await fetch(this.url(`/file?key=${encodeURIComponent(key)}`), { method: "PUT", body: Buffer.from(bytes) });
  }
  async get(key: string): Promise<Buffer> {
    const response = await fetch(this.url(`/file?key=${encodeURIComponent(key)}`));
    if (!response.ok) throw new Error(`there is no ${key}`);
    return Buffer.from(await response.arrayBuffer());
  }

  // ---------------------------------------------------------------- waiting

  /** Wakes the waiting conditions. */
  wake(): void {
    for (const wake of this.#watchers.splice(0)) wake();
  }
  /** Checks the condition at each event, and every few ms for events on the platform. */
  async until<T>(what: string, look: () => T | undefined | false, ms = 15_000): Promise<T> {
    const end = Date.now() + ms;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      if (Date.now() > end) throw new Error(`${what}: not reached; output of the Worker:\n${this.output.slice(-3_000)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 10);
        this.#watchers.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }
  report(deliveryId: string, accountId = "default"): Promise<DeliveryReport> {
    return this.until(`the report of ${deliveryId}`, () =>
      this.gateway(accountId).reports.find((report) => report.deliveryId === deliveryId),
    );
  }
}
