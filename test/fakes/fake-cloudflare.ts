/**
 * The part of Cloudflare's API that `gsv deploy` and wrangler use, for one person: checks the token, keeps what was made, refuses what
 * the real one refuses (a second resource of a name, a binding to a Worker that does not exist), and answers with the faults that a test
 * asks for. It also plays the deployed gateway: `GET /health` on `gatewayUrl` answers as the active version would. Each area of the API
 * has a file in `cloudflare/`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import type { Account, Database, Index, Namespace, Queue, Script, Version } from "./cloudflare/account.ts";
import { type Answer, answer, jwt, missing, Refusal, type Row } from "./cloudflare/api.ts";
import { answerD1 } from "./cloudflare/d1.ts";
import { HEX, plain, summary } from "./cloudflare/golden.ts";
import { answerKv } from "./cloudflare/kv.ts";
import { answerQueues } from "./cloudflare/queues.ts";
import { answerR2 } from "./cloudflare/r2.ts";
import { answerVectorize } from "./cloudflare/vectorize.ts";
import { answerWorkers } from "./cloudflare/workers.ts";

export const ACCOUNT = "0123456789abcdef0123456789abcdef";
export const OTHER_ACCOUNT = "fedcba9876543210fedcba9876543210";
export const TOKEN = "cf-token-of-a-test";

/** `cut` does what was asked and drops the connection without an answer. */
export type FaultKind = "500" | "429" | "cut";
export interface Fault {
  /** Position in `requests` of the run, from 0. */
  readonly at: number;
  readonly kind: FaultKind;
  /** The same request fails each time, until the fault is taken away. */
  readonly stays: boolean;
}

/** What the account lacks. */
export interface Lack {
  /** The product's path, such as `r2` or `queues`. */
  readonly product: string;
  readonly status: number;
  readonly code: number;
  readonly message: string;
}

export class FakeCloudflare implements Account {
  readonly scripts = new Map<string, Script>();
  readonly buckets = new Map<string, Set<string>>();
  readonly databases: Database[] = [];
  readonly namespaces: Namespace[] = [];
  readonly queues: Queue[] = [];
  readonly indexes: Index[] = [];
  readonly assets = new Set<string>();
  accounts: readonly { readonly id: string; readonly name: string }[] = [{ id: ACCOUNT, name: "Ada" }];
  subdomain: string | undefined = "ada";
  lacks: readonly Lack[] = [];
  /** Whether the token may read what the account pays for; undefined: it may not. */
  plan: "free" | "paid" | undefined = "paid";
  /** The deployed gateway answers so; undefined: as its version says. */
  health: { readonly status: number; readonly body: unknown } | undefined;
  /** Lines of the golden file: method, path and what matters of the body, without ids. */
  readonly requests: string[] = [];
  fault: Fault | undefined;
  /** Requests wait for it. */
  gate: Promise<void> | undefined;
  /** How many requests wait for the gate. */
  waiting = 0;
  /** Each request like this gets status 500. */
  breaksAt: RegExp | undefined;
  #faulty: string | undefined;
  readonly #server: Server;
  readonly #tails = new WebSocketServer({ noServer: true, handleProtocols: () => "trace-v1" });

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<FakeCloudflare> {
    const server = createServer();
    const fake = new FakeCloudflare(server);
    server.on("request", (request, response) => void fake.#serve(request, response));
    server.on("upgrade", (request, socket, head) => {
      fake.#tails.handleUpgrade(request, socket, head, (ws) => {
        // One that is interrupted ends in the middle of a frame.
        ws.on("error", () => undefined);
        ws.send(JSON.stringify(TAIL_EVENT));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return fake;
  }
  async end(): Promise<void> {
    for (const client of this.#tails.clients) client.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  get url(): string {
    return `http://127.0.0.1:${this.port}/client/v4`;
  }
  /** Where the deployed gateway answers. */
  get gatewayUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }
  env(): Readonly<Record<string, string>> {
    return { CLOUDFLARE_API_BASE_URL: this.url, CLOUDFLARE_API_TOKEN: TOKEN };
  }
  script(name: string): Script {
    return this.scripts.get(name) ?? missing(10007, "This Worker does not exist on your account.");
  }
  /** The version that runs. */
  active(name: string): Version | undefined {
    const { versions = [], deployments = [] } = this.scripts.get(name) ?? {};
    return versions.find(({ id }) => id === deployments.at(-1)?.version);
  }
  forgetRequests(): void {
    this.requests.length = 0;
    this.#faulty = undefined;
    this.fault = undefined;
    this.breaksAt = undefined;
  }
  /** All that must not be there twice, or go away. */
  inventory(): Row {
    return {
      workers: [...this.scripts].map(([name, { secrets }]) => `${name}: ${[...secrets.keys()].sort().join(" ")}`).sort(),
      bindings: [...this.scripts.keys()].sort().map((name) => [name, (this.active(name)?.bindings ?? []).map(plain).sort()]),
      buckets: [...this.buckets].map(([name, files]) => [name, ...[...files].sort()].join(" ")).sort(),
      databases: this.databases.map(({ name }) => name).sort(),
      namespaces: this.namespaces.map(({ title }) => title).sort(),
      queues: this.queues.map(({ queue_name: name, consumers }) => `${name}: ${consumers.map(({ script }) => script).join(" ")}`).sort(),
      indexes: this.indexes.map(({ name, metadata }) => `${name}: ${[...metadata].sort().join(" ")}`),
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const url = new URL(request.url ?? "/", "http://fake");
    if (url.pathname === "/health") return this.#health(response);
    if (this.gate !== undefined) {
      this.waiting += 1;
      await this.gate;
      this.waiting -= 1;
    }
    const path = url.pathname.replace(/^\/client\/v4/, "");
    const method = request.method ?? "GET";
    const type = request.headers["content-type"] ?? "";
    const form = type.startsWith("multipart/") ? await new Response(body, { headers: { "content-type": type } }).formData() : undefined;
    const metadata = form?.get("metadata");
    // Some of wrangler's requests have JSON and do not say so.
    const text = typeof metadata === "string" ? metadata : form === undefined ? body.toString() : "";
    const json = (text.startsWith("{") ? JSON.parse(text) : {}) as Row;
    const signature = `${method} ${path}${url.search}`.replaceAll(HEX, "ID");
    const sum = type === "application/octet-stream" ? ` ${body.length} bytes` : summary(path, method, json);
    const at = this.requests.push(`${signature}${sum}`) - 1;
    const hits =
      this.fault !== undefined && (this.fault.stays && this.#faulty !== undefined ? this.#faulty === signature : this.fault.at === at);
    if (hits) this.#faulty = signature;
    const kind = hits ? this.fault?.kind : this.breaksAt?.test(signature) === true ? "500" : undefined;
    if (kind === "500")
      return answer(response, 500, {
        success: false,
        errors: [{ code: 10013, message: "An unknown error has occurred." }],
        messages: [],
        result: null,
      });
    if (kind === "429")
      return answer(response, 429, {
        success: false,
        errors: [{ code: 971, message: "Please wait and consider throttling your request speed" }],
        messages: [],
        result: null,
      });
    try {
      // Assets go with the token of their session.
      const token = path.endsWith("/workers/assets/upload") ? jwt() : TOKEN;
      if (request.headers.authorization !== `Bearer ${token}`) throw new Refusal(401, 10000, "Authentication error");
      const main = form?.get(String(json["main_module"]));
      const source = main instanceof Blob ? await main.text() : "";
      const { result, info } = this.#answer(method, path, url.searchParams, { ...json, source }, form);
      if (kind === "cut") return void request.socket.destroy();
      answer(response, 200, { success: true, errors: [], messages: [], result, ...(info === undefined ? {} : { result_info: info }) });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answer(response, error.status, {
        success: false,
        errors: [{ code: error.code, message: error.message }],
        messages: [],
        result: null,
      });
    }
  }

  #health(response: ServerResponse): void {
    const active = this.active("gsv");
    const version = active?.bindings.find(({ name }) => name === "VERSION")?.["text"];
    if (this.health !== undefined) return answer(response, this.health.status, this.health.body);
    if (active === undefined || version === undefined) return answer(response, 503, { title: "Parked" });
    answer(response, 200, { ok: true, version });
  }

  #answer(method: string, path: string, query: URLSearchParams, json: Row, form?: FormData): Answer {
    if (path === "/user") return { result: { id: "u", email: "ada@example.org" } };
    if (path === "/user/tokens/verify") return { result: { id: "t", status: "active" } };
    if (path === "/accounts") return { result: this.accounts, info: { page: 1, total_pages: 1, count: this.accounts.length } };
    if (path === "/memberships") return { result: this.accounts.map((account) => ({ id: "m", account })) };
    const [, , account = "", ...rest] = path.split("/");
    if (!path.startsWith("/accounts/") || !this.accounts.some(({ id }) => id === account))
      throw new Refusal(403, 9109, "Unauthorized to access requested resource");
    const lack = this.lacks.find(({ product }) => rest.join("/").startsWith(product));
    if (lack !== undefined) throw new Refusal(lack.status, lack.code, lack.message);
    const [area, kind, name, ...more] = rest.map(decodeURIComponent);
    if (area === "subscriptions") {
      if (this.plan === undefined) throw new Refusal(403, 10000, "Authentication error");
      return { result: this.plan === "paid" ? [{ rate_plan: { id: "workers_paid" } }] : [] };
    }
    if (area === "workers") return answerWorkers(this, method, kind ?? "", name, more, query, json, form);
    if (area === "r2") return answerR2(this.buckets, method, name, more, json);
    if (area === "d1") return answerD1(this.databases, method, name, query, json);
    if (area === "storage") return answerKv(this.namespaces, method, more[0], json);
    if (area === "queues") return answerQueues(this.queues, method, [kind, name, ...more], query, json);
    if (area === "vectorize") return answerVectorize(this.indexes, method, more, json);
    return missing(7003, `Could not route to ${path}`);
  }
}

const TAIL_EVENT = {
  outcome: "ok",
  scriptName: "gsv",
  exceptions: [],
  logs: [{ message: ["a line of the gateway's log"], level: "log", timestamp: 1_790_000_000_000 }],
  eventTimestamp: 1_790_000_000_000,
  event: { request: { url: "https://gsv.ada.workers.dev/health", method: "GET", headers: {}, cf: {} } },
};
