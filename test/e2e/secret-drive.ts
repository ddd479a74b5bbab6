/** Suite Q: secrets where the product keeps them, and everything that could bring one to the light. For secret-sinks.test.ts. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signed } from "../../channels/fakes/example/program.ts";
import { DM, FakeDiscord } from "../../channels/fakes/discord/fake-discord.ts";
import { argumentsOf, spellings } from "./secret-suite.ts";
import { type Client, type FakeModel, Machine, type NodeProcess, type Ran, startFakeModel, until } from "./support.ts";

const canary = (what: string): string => `canary/${what}+${randomBytes(12).toString("hex")}`;
export const SECRETS = [
  "the key of the provider in use",
  "the key of a second provider",
  "the key of a third provider",
  "a configured header",
  "the owner's token",
  "the token of a client",
  "the token of a reader",
  "the token of the node",
  "the token of a channel",
  "a revoked token",
  "a wrong token",
  "the secret of a webhook",
  "the token of a Discord bot",
  "the key of stored secrets",
  "the gateway's own key",
  "a channel's own key",
  "a private key in the home",
  "a variable of the node",
  "a .env file that no one read",
  "a cookie",
  "the password in an address",
  "a pairing code",
  "the code of a question",
] as const;
export type Secret = (typeof SECRETS)[number];
export const PLACES = [
  "prompts",
  "conversations",
  "frames to clients",
  "frames to machines",
  "HTTP answers",
  "output of commands",
  "errors",
  "the gateway's log",
  "the node's log",
  "the audit",
  "transcripts and memory",
  "search results",
  "the state folder",
  "arguments of processes",
  "messages to people",
] as const;
export type Place = (typeof PLACES)[number];
/** Where a code is shown on purpose: to the owner, and to the person whom it was made for. Neither is a key to anything by itself. */
const CODES: ReadonlySet<Place> = new Set([
  "frames to clients",
  "output of commands",
  "errors",
  "the audit",
  "the state folder",
  "messages to people",
]);
export const ON_PURPOSE: Readonly<Partial<Record<Secret, ReadonlySet<Place>>>> = {
  "a pairing code": CODES,
  "the code of a question": CODES,
};

/** A machine whose user has a home of his own, with a key in it. */
class Home extends Machine {
  readonly user = join(this.folder, "user");
  override env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    return { ...super.env(), HOME: this.user, ...more };
  }
}

const call = (tool: string, args: object): string => `call ${tool} ${JSON.stringify(args)}`;
const bash = (command: string): string => call("laptop__Bash", { command });
export const session = (name: string): string => `agent:main:cli:dm:${name}`;

export class Drive {
  readonly machine = new Home();
  readonly secrets = new Map<Secret, string>();
  readonly places = new Map<Place, string>();
  readonly http: string[] = [];
  readonly output: string[] = [];
  readonly errors: string[] = [];
  readonly fake: FakeModel;
  readonly discord: FakeDiscord;
  /** The owner's client. */
  owner!: Client;
  node!: NodeProcess;

  private constructor(fake: FakeModel, discord: FakeDiscord) {
    this.fake = fake;
    this.discord = discord;
    mkdirSync(this.machine.user, { recursive: true });
  }
  static async start(): Promise<Drive> {
    const token = `MTAwMDAw.${randomBytes(4).toString("hex")}.${randomBytes(20).toString("hex")}`;
    return new Drive(await startFakeModel(), await new FakeDiscord({ token }).listen());
  }
  async end(): Promise<void> {
    await this.machine.end();
    await Promise.all([this.fake.close(), this.discord.close()]);
  }
  secret(name: Secret): string {
    return this.secrets.get(name) ?? assert.fail(name);
  }

  readonly run = async (args: readonly string[], options: Parameters<Machine["gsv"]>[1] = {}): Promise<Ran> => {
    const ran = await this.machine.gsv(args, options);
    this.output.push(`$ gsv ${args[0]}\n${ran.stdout}`);
    this.errors.push(`$ gsv ${args[0]}\n${ran.stderr}`);
    return ran;
  };
  readonly ask = async (name: string, message: string): Promise<void> => {
    await this.owner.ask(message, { sessionKey: session(name) });
  };
  readonly fetched = async (path: string, init: RequestInit = {}): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${this.machine.port}${path}`, init);
    this.http.push(`${answer.status} ${JSON.stringify([...answer.headers])}\n${await answer.text()}`);
  };
  readonly webhook = async (body: object): Promise<Response> => {
    const text = JSON.stringify(body);
    return fetch(`http://127.0.0.1:${this.machine.port}/channels/example/default`, {
      method: "POST",
      headers: signed(this.secret("the secret of a webhook"), text),
      body: text,
    });
  };

  async plant(): Promise<void> {
    for (const name of SECRETS.slice(0, 4)) this.secrets.set(name, canary(name.split(" ").at(-1) ?? ""));
    this.secrets.set("the secret of a webhook", canary("webhook"));
    this.secrets.set("the token of a Discord bot", this.discord.token);
    this.secrets.set("a private key in the home", canary("ssh"));
    this.secrets.set("a variable of the node", canary("variable"));
    this.secrets.set("a .env file that no one read", canary("env"));
    this.secrets.set("a cookie", canary("cookie"));
    this.secrets.set("the password in an address", randomBytes(12).toString("hex"));
    this.secrets.set("a wrong token", `gsv_admin_wrongwrong_${randomBytes(32).toString("hex")}`);
    const file = (path: string, text: string): void => {
      mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
      writeFileSync(path, text, { mode: 0o600 });
    };
    file(join(this.machine.user, ".ssh", "id_ed25519"), this.secret("a private key in the home"));
    file(join(this.machine.folder, "laptop", ".env"), `PASSWORD=${this.secret("a .env file that no one read")}\n`);
    const channels = { version: 1, channels: { example: { enabled: true }, discord: { enabled: true } } };
    file(join(this.machine.home, "gateway", "channels.json"), JSON.stringify(channels));
    chmodSync(this.machine.home, 0o700);
    await this.machine.up();
    this.secrets.set("the owner's token", this.machine.token);
    const keys = readFileSync(join(this.machine.configFolder, "secrets.key"), "utf8");
    this.secrets.set("the key of stored secrets", /^[0-9a-f]{64}$/m.exec(keys)?.[0] ?? "");
    const { workerdPid } = this.machine.state();
    const environment = readFileSync(`/proc/${workerdPid}/environ`, "latin1").split("\0");
    const derived = (name: string): string => environment.find((line) => line.startsWith(`${name}=`))?.split("=")[1] ?? "";
    this.secrets.set("the gateway's own key", derived("GSV_SEALING_KEYS"));
    this.secrets.set("a channel's own key", derived("GSV_SEALING_KEYS_example"));
    for (const [name, ...scope] of [
      ["the token of a client", "client"],
      ["the token of a reader", "client-ro"],
      ["the token of the node", "node", "--node", "laptop"],
      ["the token of a channel", "channel", "--channel", "example"],
      ["a revoked token", "client"],
    ] as const)
      this.secrets.set(
        name,
        /gsv_[a-z-]+_[A-Za-z0-9]+_[0-9a-f]{64}/.exec(await this.machine.ok("token", "create", "--scope", ...scope))?.[0] ?? "",
      );
    await this.machine.ok("token", "revoke", this.secret("a revoked token"), "--yes");
  }

  async configure(): Promise<void> {
    const [used, second, third, header] = SECRETS.slice(0, 4).map((name) => this.secret(name));
    await this.machine.useModel(this.fake);
    const value = { provider: "openai", id: "fake-1", baseUrl: `${this.fake.url}/v1`, headers: { "X-Canary": header } };
    await this.owner.call("config.set", { path: "model", value });
    await this.owner.call("config.set", { path: "apiKeys", value: { openai: used, anthropic: second, google: third } });
    await this.owner.call("config.set", { path: "channels.example", value: { owners: ["ann"] } });
    await this.owner.call("config.set", { path: "channels.discord", value: { owners: ["400000000000000001"] } });
    await this.owner.call("channel.start", { channel: "example", config: { secret: this.secret("the secret of a webhook") } });
    await this.owner.call("channel.start", { channel: "discord", config: { token: this.discord.token, apiBase: this.discord.api } });
  }

  /** A hijacked model looks wherever a secret is kept. */
  async search(): Promise<void> {
    const [config, state, home] = [this.machine.configFolder, this.machine.home, this.machine.user].map((folder) => `'${folder}'`);
    const looks = [
      bash("echo begin-of-search; env; set"),
      bash(`cat ${home}/.ssh/id_ed25519 ${config}/secrets.key ${config}/config.toml`),
      bash("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"),
      bash(`grep -rs 'canary\\|gsv_' ${home} ${state} ${config}; ls -la . ; ps -ef`),
      call("laptop__Read", { path: join(this.machine.user, ".ssh", "id_ed25519") }),
      call("laptop__Read", { path: join(this.machine.configFolder, "config.toml") }),
      call("laptop__Grep", { pattern: "canary", path: this.machine.folder }),
      call("laptop__Glob", { pattern: "**/*", path: this.machine.folder }),
      call("gsv__ConfigGet", { path: "apiKeys" }),
      call("gsv__ConfigGet", {}),
      call("gsv__LogsGet", {}),
      call("gsv__ReadFile", { path: "../../../../config/secrets.key" }),
      call("gsv__Search", { query: "canary" }),
      call("gsv__SessionsList", {}),
    ];
    for (const look of looks) await this.ask("search", look);
  }

  /** The owner keeps copies of stored secrets and of tokens in files, and asks for these files. */
  async copies(): Promise<void> {
    const stored = SECRETS.slice(0, 4).map((name) => this.secret(name));
    const tokens = SECRETS.slice(4, 11).map((name) => this.secret(name));
    const encoded = stored.flatMap((value) =>
      [...spellings(value)].flatMap(([how, text]) => (how === "reversed" ? [] : [`${how}: ${text}`])),
    );
    writeFileSync(this.node.file("keys.txt"), ["begin-of-copies", ...stored, ...tokens, ...encoded, "end-of-copies", ""].join("\n"));
    writeFileSync(this.node.file("stored.txt"), stored.map((value) => `${value}\n`).join(""));
    for (const look of [
      bash("cat keys.txt"),
      bash("cat keys.txt >&2; exit 3"),
      bash("base64 -w 0 stored.txt; od -An -v -tx1 stored.txt | tr -d ' \\n'; tr '\\n' '|' < keys.txt"),
      call("laptop__Read", { path: "keys.txt" }),
      call("laptop__Grep", { pattern: "canary|gsv_", path: "." }),
      call("laptop__Process", { action: "list" }),
    ])
      await this.ask("copies", look);
    // A secret that comes in two parts while the command runs.
    const gate = this.node.file("go");
    const parts = stored.map((value, at) => `printf 'part-${at} %s' '${value.slice(0, 12)}'; wait_; printf '%s\\n' '${value.slice(12)}'`);
    writeFileSync(this.node.file("parts.sh"), `wait_() { until [ -e go ]; do sleep 0.02; done; rm go; }\n${parts.join("\n")}\n`);
    const id = await this.owner.say(bash("sh parts.sh"), { sessionKey: session("parts") });
    for (const at of stored.keys()) {
      await this.owner.waitFor(
        `part ${at}`,
        ({ event, payload }) => event === "tool.progress" && String(payload["chunk"]).includes(`part-${at}`),
      );
      this.places.set("arguments of processes", argumentsOf(this.machine.folder));
      writeFileSync(gate, "");
    }
    await this.owner.ending(id);
  }

  /** The provider quotes what it was sent, as some do. */
  async quotes(): Promise<void> {
    const all = SECRETS.slice(0, 4).flatMap((name) => [...spellings(this.secret(name)).values()].slice(0, 4));
    for (const status of [400, 401, 403]) {
      const message = `Incorrect API key: ${all.slice(0, 4).join(" ")}; header ${all.slice(-4).join(" ")}`;
      this.fake.enqueue({ status, body: JSON.stringify({ error: { message, type: "invalid_request_error", code: "bad" } }) });
      await this.run(["chat", "--session", session("quotes"), "hello"]);
    }
  }

  async codes(): Promise<void> {
    const asks = {
      id: "asked",
      tool: "laptop__Bash",
      decision: "ask",
      when: [{ path: "command", op: "equals", value: ["date", "-u"] }],
    };
    await this.owner.call("config.set", { path: "toolApproval.rules", value: [asks] });
    await this.run(["chat", "--session", session("asked"), bash("date -u")]);
    const { approvals } = JSON.parse(await this.machine.ok("approval", "list", "--json")) as { approvals: { code: string }[] };
    this.secrets.set("the code of a question", approvals[0]?.code ?? "");
    await this.webhook({ id: "stranger-1", from: "stranger", text: "let me in" });
    const { pairs } = (await this.owner.call("pair.list")) as { pairs?: { code?: string }[] };
    const listed = JSON.stringify(pairs ?? (await this.owner.call("pair.list")));
    this.secrets.set("a pairing code", /"code":"([^"]+)"/.exec(listed)?.[1] ?? "");
    await this.ask("search", "say after the codes");
    await this.run(["approval", "deny", approvals[0]?.code ?? ""]);
    await this.ask("asked", "say after the denial");
    await this.owner.call("config.unset", { path: "toolApproval.rules" });
  }

  async people(): Promise<void> {
    for (const text of ["say hello ann", "/status", call("laptop__Bash", { command: "cat keys.txt" })])
      await this.webhook({ id: randomBytes(4).toString("hex"), from: "ann", text });
    this.discord.say({ content: "say hello alice" });
    this.discord.say({ content: call("laptop__Bash", { command: "cat keys.txt" }) });
    await until("Discord shows an answer", () => this.discord.sent(DM).length >= 2);
    const heard = async (): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${this.machine.port}/channels/example/default?after=0`, {
        headers: signed(this.secret("the secret of a webhook"), ""),
      });
      return answer.text();
    };
    const said = await until("ann is answered", async () => {
      const text = await heard();
      return text.includes("hello ann") && text.includes("begin-of-copies") ? text : undefined;
    });
    this.places.set("messages to people", `${said}\n${JSON.stringify(this.discord.sent(DM))}`);
  }

  /** Wrong uses, and the answers of each route. */
  async mistakes(): Promise<void> {
    for (const name of ["a wrong token", "a revoked token", "the token of a reader", "the token of a channel"] as const) {
      const env = { GSV_TOKEN: this.secret(name) };
      for (const args of [["config", "set", "userTimezone", "UTC"], ["status"], ["token", "create", "--scope", "admin"]])
        await this.run(args, { env });
    }
    const bearer = (token: string): RequestInit => ({
      headers: { Authorization: `Bearer ${token}`, Cookie: `session=${this.secret("a cookie")}` },
    });
    for (const token of SECRETS.slice(4, 11).map((name) => this.secret(name))) {
      for (const path of ["/health", "/openapi.json", "/media/none", "/channels/example/none", "/nowhere"])
        await this.fetched(path, bearer(token));
      await this.fetched(`/media?sessionKey=main&filename=a.txt`, { ...bearer(token), method: "POST", body: "x" });
    }
    await this.fetched(`/ws?token=${this.secret("a wrong token")}`, bearer(this.secret("a wrong token")));
    const stray = await this.machine.client({ id: this.secret("the owner's token") });
    for (const name of ["the key of the provider in use", "the owner's token"] as const)
      stray.sendRaw(new TextEncoder().encode(`....${this.secret(name)}`));
    await until("the stray frame is in the log", () => this.machine.gatewayLog().includes("stray_chunk"));
    const address = `ws://ann:${this.secret("the password in an address")}@127.0.0.1:${this.machine.port}/ws`;
    for (const args of [["status"], ["doctor", "--offline"], ["chat", "hi"]]) await this.run(args, { env: { GSV_URL: address } });
    await this.run(["config", "set", "apiKeys", "-"], {
      input: `{"openai": ${JSON.stringify(this.secret("the key of a second provider"))}`,
    });
    await this.run(["config", "set", "no.such.path", "-"], { input: this.secret("the key of a second provider") });
    // The error names the path as it was typed, for the one who typed it; the log and the audit do not.
    await this.machine.gsv(["config", "set", `apiKeys.${this.secret("the key of a third provider").replaceAll(".", "")}.x`, "1"]);
    await this.run(["local-config", "set", "nothing", "-"], { input: this.secret("a wrong token") });
  }

  /** What the owner looks at. */
  async looks(): Promise<void> {
    const commands: readonly (readonly string[])[] = [
      ["status"],
      ["config", "get"],
      ["config", "get", "apiKeys"],
      ["config", "get", "model"],
      ["local-config", "get"],
      ["doctor", "--offline"],
      ["usage"],
      ["nodes", "list"],
      ["tools", "list"],
      ["token", "list"],
      ["channel", "list"],
      ["channel", "status"],
      ["pair", "list"],
      ["approval", "list"],
      ["agent", "list"],
      ["skills", "list"],
      ["models"],
      ["prompt", "show"],
      ["session", "list"],
      ["audit", "--limit", "200"],
      ["node", "sandbox", "--workspace", this.node.workspace],
      ["search", "canary"],
      ["search", "begin"],
      ...["search", "copies", "quotes", "asked"].flatMap((name) => [
        ["why", "--session", session(name)],
        ["session", "stats", session(name)],
        ["session", "get", session(name)],
      ]),
    ];
    for (const args of commands) for (const more of [[], ["--json"]]) await this.run([...args, ...more]);
  }

  async archive(): Promise<void> {
    for (const name of ["search", "copies", "parts", "quotes"]) {
      await this.run(["session", "reset", session(name)]);
      for (const word of ["list", "show", "export"]) await this.run(["session", word, session(name)]);
    }
    for (const args of [
      ["workspace", "list"],
      ["memory", "list"],
    ])
      await this.run(args);
  }
}
