/**
 * The part of Cloudflare's API that `gsv deploy` and wrangler use, for one person: checks the token, keeps what was made, refuses what
 * the real one refuses (a second resource of a name, a binding to a Worker that does not exist), and answers with the faults that a test
 * asks for. It also plays the deployed gateway: `GET /health` on `gatewayUrl` answers as the active version would.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

export const ACCOUNT = "0123456789abcdef0123456789abcdef";
export const OTHER_ACCOUNT = "fedcba9876543210fedcba9876543210";
export const TOKEN = "cf-token-of-a-test";

type Row = Readonly<Record<string, unknown>>;
export interface Binding {
  readonly name: string;
  readonly type: string;
  readonly [more: string]: unknown;
}
export interface Version {
  readonly id: string;
  readonly number: number;
  readonly message: string;
  readonly bindings: readonly Binding[];
  readonly exports: readonly string[];
  readonly modules: readonly string[];
  /** Of the main module. */
  readonly source: string;
}
export interface Script {
  readonly versions: Version[];
  /** Ids of versions, the newest last. */
  readonly deployments: { readonly version: string; readonly message: string }[];
  readonly secrets: Map<string, string>;
  readonly subdomain: { enabled: boolean; previews_enabled: boolean };
  /** Classes of Durable Objects that have data. */
  readonly namespaces: Set<string>;
}
interface Queue {
  readonly queue_id: string;
  readonly queue_name: string;
  readonly consumers: { readonly consumer_id: string; readonly script: string; readonly [more: string]: unknown }[];
}

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

class Refusal extends Error {
  readonly status: number;
  readonly code: number;
  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}
const missing = (code: number, message = "not found"): never => {
  throw new Refusal(404, code, message);
};

const HEX = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;

export class FakeCloudflare {
  readonly scripts = new Map<string, Script>();
  readonly buckets = new Map<string, Set<string>>();
  readonly databases: { readonly uuid: string; readonly name: string }[] = [];
  readonly namespaces: { readonly id: string; readonly title: string }[] = [];
  readonly queues: Queue[] = [];
  readonly indexes: { readonly name: string; readonly config: Row; readonly metadata: string[] }[] = [];
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

  #answer(method: string, path: string, query: URLSearchParams, json: Row, form?: FormData): { result: unknown; info?: Row } {
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
    if (area === "workers") return this.#workers(method, kind ?? "", name, more, query, json, form);
    if (area === "r2") return this.#r2(method, name, more, json);
    if (area === "d1") return this.#d1(method, name, query, json);
    if (area === "storage") return this.#kv(method, more[0], json);
    if (area === "queues") return this.#queue(method, [kind, name, ...more], query, json);
    if (area === "vectorize") return this.#vectorize(method, more, json);
    return missing(7003, `Could not route to ${path}`);
  }

  #workers(
    method: string,
    kind: string,
    name: string | undefined,
    rest: readonly string[],
    query: URLSearchParams,
    json: Row,
    form?: FormData,
  ): { result: unknown; info?: Row } {
    const [what] = rest;
    if (kind === "subdomain")
      return this.subdomain === undefined ? missing(10007, "workers.api.error.no_subdomain") : { result: { subdomain: this.subdomain } };
    if (kind === "account-settings") return { result: { default_usage_model: "standard" } };
    if (kind === "assets") {
      for (const hash of form?.keys() ?? []) this.assets.add(hash);
      return { result: { jwt: jwt() } };
    }
    if (kind === "tails") return { result: [] };
    if (kind === "durable_objects") return { result: [] };
    if (kind === "scripts" && name === undefined) return { result: [...this.scripts.keys()].map((script) => ({ id: script })) };
    if (name === undefined) return missing(7003);
    if (kind === "scripts" && what === undefined && method === "DELETE") {
      this.script(name);
      if (query.get("force") !== "true") throw new Refusal(400, 10064, "Worker has Durable Objects, which would be deleted.");
      this.scripts.delete(name);
      for (const { consumers } of this.queues) consumers.splice(0, consumers.length, ...consumers.filter(({ script }) => script !== name));
      return { result: null };
    }
    if (kind === "services") {
      this.script(name);
      if (what === "environments") return { result: rest.length > 2 ? [] : { script: { last_deployed_from: "wrangler" }, bindings: [] } };
      return { result: { id: name, default_environment: { environment: "production", script: { last_deployed_from: "wrangler" } } } };
    }
    if (kind === "workers") {
      const { subdomain } = this.script(name);
      return {
        result: {
          id: name,
          name,
          subdomain,
          tags: [],
          observability: { enabled: false },
          logpush: false,
          tail_consumers: [],
          references: {},
        },
      };
    }
    return kind === "scripts" ? this.#script(method, name, rest, json, form) : missing(7003);
  }

  #script(method: string, name: string, [what, id]: readonly string[], json: Row, form?: FormData): { result: unknown } {
    if (what === undefined && method === "PUT") return { result: this.#upload(name, json, form) };
    if (what === "assets-upload-session") {
      const hashes = Object.values((json["manifest"] ?? {}) as Readonly<Record<string, { hash: string }>>).map(({ hash }) => hash);
      const wanted = hashes.filter((hash) => !this.assets.has(hash));
      return { result: { jwt: jwt(), buckets: wanted.length === 0 ? [] : [wanted] } };
    }
    const script = this.script(name);
    if (what === "subdomain") {
      if (method === "POST") Object.assign(script.subdomain, json);
      return { result: script.subdomain };
    }
    if (what === "secrets") return { result: [...script.secrets.keys()].map((secret) => ({ name: secret, type: "secret_text" })) };
    if (what === "settings" || what === "script-settings")
      return { result: { bindings: this.active(name)?.bindings ?? [], tags: [], logpush: false, observability: null } };
    if (what === "schedules") return { result: { schedules: [] } };
    if (what === "versions") return this.#versions(script, id);
    if (what === "deployments") return this.#deployments(method, script, json);
    if (what === "tails" && method === "POST")
      return {
        result: {
          id: randomUUID().replaceAll("-", ""),
          url: `ws://127.0.0.1:${this.port}/tail/${name}`,
          expires_at: "2099-01-01T00:00:00Z",
        },
      };
    if (what === "tails") return { result: null };
    return missing(7003);
  }

  #versions(script: Script, id: string | undefined): { result: unknown } {
    const shown = ({ id: version, number, message, bindings }: Version): Row => ({
      id: version,
      number,
      metadata: {
        created_on: new Date(1_790_000_000_000 + number * 60_000).toISOString(),
        author_email: "ada@example.org",
        source: "wrangler",
      },
      annotations: { "workers/message": message, "workers/triggered_by": "upload" },
      resources: { bindings, script: { etag: version, handlers: ["fetch"] }, script_runtime: { compatibility_date: "2026-11-01" } },
    });
    if (id !== undefined)
      return { result: shown(script.versions.find((version) => version.id === id) ?? missing(10073, "version not found")) };
    return { result: { items: [...script.versions].reverse().slice(0, 10).map(shown) } };
  }

  #deployments(method: string, script: Script, json: Row): { result: unknown } {
    if (method === "POST") {
      const [{ version_id: version } = { version_id: "" }] = json["versions"] as readonly { version_id: string }[];
      if (!script.versions.some((known) => known.id === version)) throw new Refusal(400, 10073, "version not found");
      const message = ((json["annotations"] ?? {}) as Readonly<Record<string, string>>)["workers/message"] ?? "";
      script.deployments.push({ version, message });
      return { result: { id: randomUUID() } };
    }
    return {
      result: {
        deployments: [...script.deployments]
          .reverse()
          .slice(0, 10)
          .map(({ version, message }, index) => ({
            id: randomUUID(),
            source: "wrangler",
            strategy: "percentage",
            author_email: "ada@example.org",
            created_on: new Date(1_790_000_000_000 + (script.deployments.length - index) * 60_000).toISOString(),
            annotations: { "workers/message": message },
            versions: [{ version_id: version, percentage: 100 }],
          })),
      },
    };
  }

  #upload(name: string, metadata: Row, form?: FormData): Row {
    const bindings = (metadata["bindings"] ?? []) as readonly Binding[];
    const entrypoints = bindings.filter(({ type }) => type === "service");
    for (const { service } of entrypoints)
      if (!this.scripts.has(String(service)))
        throw new Refusal(400, 10143, `Service binding refers to service '${String(service)}' which was not found.`);
    for (const { type, ...binding } of bindings) {
      const known =
        (type !== "kv_namespace" || this.namespaces.some(({ id }) => id === binding["namespace_id"])) &&
        (type !== "d1" || this.databases.some(({ uuid }) => uuid === (binding["database_id"] ?? binding["id"]))) &&
        (type !== "r2_bucket" || this.buckets.has(String(binding["bucket_name"]))) &&
        (type !== "queue" || this.queues.some(({ queue_name: queue }) => queue === binding["queue_name"])) &&
        (type !== "vectorize" || this.indexes.some((index) => index.name === binding["index_name"]));
      if (!known) throw new Refusal(400, 10021, `Binding ${binding.name} refers to something that does not exist.`);
    }
    const before = this.active(name)?.bindings ?? [];
    const script = this.scripts.get(name) ?? {
      versions: [],
      deployments: [],
      secrets: new Map<string, string>(),
      subdomain: { enabled: false, previews_enabled: false },
      namespaces: new Set<string>(),
    };
    const kept = (metadata["keep_bindings"] ?? []) as readonly string[];
    if (!kept.includes("secret_text")) script.secrets.clear();
    for (const { type, name: secret, text } of bindings) if (type === "secret_text") script.secrets.set(secret, String(text));
    const classes = Object.keys((metadata["exports"] ?? {}) as object);
    for (const known of script.namespaces)
      if (!classes.includes(known)) throw new Refusal(400, 10064, `The class ${known} has data and is not among the exports.`);
    for (const known of classes) script.namespaces.add(known);
    const id = randomUUID();
    const annotations = (metadata["annotations"] ?? {}) as Readonly<Record<string, string>>;
    script.versions.push({
      id,
      number: script.versions.length + 1,
      message: annotations["workers/message"] ?? "",
      bindings: bindings
        .filter(({ type }) => type !== "secret_text")
        .map((binding) => (binding.type === "inherit" ? (before.find((known) => known.name === binding.name) ?? binding) : binding)),
      exports: classes,
      modules: [...(form?.keys() ?? [])].filter((part) => part !== "metadata"),
      source: String(metadata["source"]),
    });
    script.deployments.push({ version: id, message: annotations["workers/message"] ?? "" });
    this.scripts.set(name, script);
    return {
      id: name,
      tag: "t",
      etag: "e",
      deployment_id: id.replaceAll("-", ""),
      startup_time_ms: 7,
      available_on_subdomain: true,
      entry_point: String(metadata["main_module"]),
      has_modules: true,
    };
  }

  #r2(method: string, name: string | undefined, rest: readonly string[], json: Row): { result: unknown; info?: Row } {
    if (name === undefined && method === "POST") {
      const bucket = String(json["name"]);
      if (this.buckets.has(bucket)) throw new Refusal(409, 10004, "The bucket you tried to create already exists, and you own it.");
      this.buckets.set(bucket, new Set());
      return { result: { name: bucket, creation_date: "2026-11-01T00:00:00Z", location: "WEUR", storage_class: "Standard" } };
    }
    if (name === undefined)
      return { result: { buckets: [...this.buckets.keys()].map((bucket) => ({ name: bucket, creation_date: "2026-11-01T00:00:00Z" })) } };
    const objects = this.buckets.get(name) ?? missing(10006, "The specified bucket does not exist.");
    if (rest[0] === "objects" && method === "DELETE") {
      objects.delete(rest.slice(1).join("/"));
      return { result: null };
    }
    if (rest[0] === "objects" && method === "PUT") {
      objects.add(rest.slice(1).join("/"));
      return { result: { key: rest.slice(1).join("/") } };
    }
    if (rest[0] === "objects") {
      const page = [...objects].sort().slice(0, 2);
      return {
        result: page.map((key) => ({ key })),
        info: { is_truncated: objects.size > page.length, cursor: objects.size > page.length ? "more" : "" },
      };
    }
    if (method === "DELETE") {
      if (objects.size > 0) throw new Refusal(409, 10008, "The bucket you tried to delete is not empty.");
      this.buckets.delete(name);
      return { result: {} };
    }
    return { result: { name, creation_date: "2026-11-01T00:00:00Z" } };
  }

  #d1(method: string, id: string | undefined, query: URLSearchParams, json: Row): { result: unknown; info?: Row } {
    if (id === undefined && method === "POST") {
      const database = { uuid: randomUUID(), name: String(json["name"]) };
      if (this.databases.some(({ name }) => name === database.name))
        throw new Refusal(400, 7502, "A database with that name already exists");
      this.databases.push(database);
      return { result: { ...database, version: "production", created_at: "2026-11-01T00:00:00Z" } };
    }
    if (id === undefined) {
      const name = query.get("name");
      const found = this.databases.filter((database) => name === null || database.name === name);
      return { result: found, info: { page: 1, per_page: 100, count: found.length, total_count: found.length } };
    }
    const at = this.databases.findIndex(({ uuid, name }) => uuid === id || name === id);
    if (at < 0) return missing(7404, "The database was not found");
    if (method === "DELETE") this.databases.splice(at, 1);
    return { result: this.databases[at] ?? null };
  }

  #kv(method: string, id: string | undefined, json: Row): { result: unknown; info?: Row } {
    if (id === undefined && method === "POST") {
      const title = String(json["title"]);
      if (this.namespaces.some((namespace) => namespace.title === title))
        throw new Refusal(400, 10014, "a namespace with this account ID and title already exists");
      this.namespaces.push({ id: randomUUID().replaceAll("-", ""), title });
      return { result: this.namespaces.at(-1) };
    }
    if (id === undefined)
      return {
        result: this.namespaces,
        info: { page: 1, per_page: 100, count: this.namespaces.length, total_count: this.namespaces.length },
      };
    const at = this.namespaces.findIndex((namespace) => namespace.id === id);
    if (at < 0) return missing(10013, "namespace not found");
    const namespace = this.namespaces[at];
    if (method === "DELETE") this.namespaces.splice(at, 1);
    return { result: namespace };
  }

  #queue(
    method: string,
    [id, part, consumer]: readonly (string | undefined)[],
    query: URLSearchParams,
    json: Row,
  ): { result: unknown; info?: Row } {
    if (id === undefined && method === "POST") {
      const name = String(json["queue_name"]);
      if (this.queues.some(({ queue_name: known }) => known === name))
        throw new Refusal(409, 11009, `Queue name '${name}' is already taken.`);
      this.queues.push({ queue_id: randomUUID().replaceAll("-", ""), queue_name: name, consumers: [] });
      return { result: shownQueue(this.queues.at(-1)) };
    }
    if (id === undefined) {
      const names = query.getAll("name");
      const found = this.queues.filter(({ queue_name: name }) => names.length === 0 || names.includes(name));
      return { result: found.map(shownQueue), info: { page: 1, total_pages: 1, count: found.length } };
    }
    const queue = this.queues.find(({ queue_id: known }) => known === id) ?? missing(11000, "Queue not found");
    if (part === "consumers") {
      if (method === "GET") return { result: queue.consumers };
      if (method === "DELETE") {
        queue.consumers.splice(0, queue.consumers.length, ...queue.consumers.filter(({ consumer_id: known }) => known !== consumer));
        return { result: null };
      }
      const settings = {
        script: String(json["script_name"]),
        type: "worker",
        settings: json["settings"],
        dead_letter_queue: json["dead_letter_queue"],
      };
      const at = queue.consumers.findIndex(({ consumer_id: known, script }) => known === consumer || script === settings.script);
      if (method === "POST" && at >= 0) throw new Refusal(409, 11004, "Queue already has a consumer.");
      const row = { ...settings, consumer_id: queue.consumers[at]?.consumer_id ?? randomUUID().replaceAll("-", "") };
      queue.consumers.splice(at < 0 ? queue.consumers.length : at, 1, row);
      return { result: row };
    }
    if (method === "DELETE") this.queues.splice(this.queues.indexOf(queue), 1);
    return { result: shownQueue(queue) };
  }

  #vectorize(method: string, [name, part, act]: readonly string[], json: Row): { result: unknown; info?: Row } {
    if (name === undefined && method === "POST") {
      const index = String(json["name"]);
      if (this.indexes.some((known) => known.name === index)) throw new Refusal(409, 3002, "An index with this name already exists");
      this.indexes.push({ name: index, config: (json["config"] ?? {}) as Row, metadata: [] });
      return { result: this.indexes.at(-1) };
    }
    if (name === undefined) return { result: this.indexes };
    const at = this.indexes.findIndex((index) => index.name === name);
    const index = this.indexes[at] ?? missing(3000, "vectorize.index.not_found");
    if (part === "metadata_index") {
      if (act === "create") index.metadata.push(String(json["propertyName"]));
      return {
        result:
          act === "list"
            ? { metadataIndexes: index.metadata.map((propertyName) => ({ propertyName, indexType: "String" })) }
            : { mutationId: randomUUID() },
      };
    }
    if (method === "DELETE") this.indexes.splice(at, 1);
    return { result: index };
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
/** wrangler reads when it expires. */
const jwt = (): string => `e30.${Buffer.from(JSON.stringify({ exp: 4_000_000_000 })).toString("base64url")}.sig`;
const shownQueue = (queue?: Queue): unknown => ({
  ...queue,
  producers: [],
  producers_total_count: 0,
  consumers_total_count: queue?.consumers.length ?? 0,
});

/** A binding without ids and without what changes with each build. */
const plain = ({ name, type, ...more }: Binding): string =>
  `${name} ${type} ${String(more["service"] ?? more["bucket_name"] ?? more["queue_name"] ?? more["class_name"] ?? more["index_name"] ?? "")}`.trim();

/** What of a request's body belongs to the golden file. */
function summary(path: string, method: string, json: Row): string {
  if (method === "GET" || method === "DELETE") return "";
  if (/\/workers\/scripts\/[^/]+$/.test(path)) {
    const bindings = (json["bindings"] ?? []) as readonly Binding[];
    const classes = Object.keys((json["exports"] ?? {}) as object);
    return `\n${[...bindings.map((binding) => `    ${plain(binding)}`).sort(), `    exports ${classes.join(" ")}`].join("\n")}`;
  }
  const shown = JSON.stringify(json)
    .replaceAll(HEX, "ID")
    .replaceAll(/gsv [a-z]+ [0-9A-Z]{26}[^"]*/g, "MESSAGE");
  return shown === "{}" ? "" : ` ${shown}`;
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
