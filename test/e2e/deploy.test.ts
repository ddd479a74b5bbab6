/** `gsv deploy`: the built program and the real wrangler against a fake of Cloudflare's API. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { RawWorkerd } from "../../gateway/test/support/raw-workerd.ts";
import { ACCOUNT, OTHER_ACCOUNT } from "../fakes/fake-cloudflare.ts";
import { Deployer, recordingWrangler, Runtimes, WRANGLER } from "./deploy-support.ts";
import { ROOT } from "./support.ts";
import { until } from "./waiting.ts";

const GOLDEN = join(ROOT, "test", "fixtures", "deploy-requests.txt");
/** wrangler reads and sets consumers in parallel, in no fixed order: between two uploads or makings, the order says nothing. */
function ordered(requests: readonly string[]): readonly string[] {
  const all: string[] = [];
  let between: string[] = [];
  for (const request of requests) {
    if (request.startsWith("GET ") || request.includes("/consumers")) {
      between.push(request);
      continue;
    }
    all.push(...between.sort(), request);
    between = [];
  }
  return [...all, ...between.sort()];
}
const tokenIn = (text: string): string => /gsv_admin_[a-z2-7]{10}_[0-9a-f]{64}/.exec(text)?.[0] ?? assert.fail(`no token in:\n${text}`);

/** In the real runtime, a stopped Worker has each class of Durable Objects, and answers that it is stopped. */
async function answersStopped(source: string, classes: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gsv-stopped-"));
  const namespaces = classes.map((name) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`).join(", ");
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "gsv", worker = .gsv)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "gsv")]
);
const gsv :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")], compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [${namespaces}], durableObjectStorage = (inMemory = void)
);
`;
  const workerd = await RawWorkerd.start(folder, config, { "worker.js": source });
  try {
    const response = await fetch(`${workerd.url}/health`);
    assert.equal(response.status, 503);
    assert.match(await response.text(), /gsv deploy up/);
  } finally {
    await workerd.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("gsv deploy", () => {
  let deployer: Deployer;
  const runtimes = new Runtimes();
  before(async () => {
    deployer = await Deployer.start();
  });
  after(async () => {
    await deployer.end();
    runtimes.end();
  });

  it("[DE1] [DE3] [DE7] [DE8] [DE16] the first deployment makes everything, in the requests of the golden file", async () => {
    const started = join(deployer.machine.folder, "started.ndjson");
    const recorder = recordingWrangler(deployer.machine.folder, started);
    const { stdout, stderr } = await deployer.ok(
      deployer.up(["--channels", "example"], { GSV_WRANGLER: recorder, GSV_TOKEN: "gsv_admin_of_another" }),
    );
    const { requests, scripts } = deployer.fake;
    const text = `${ordered(requests).join("\n")}\n`;
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(GOLDEN, text);
    assert.equal(text, readFileSync(GOLDEN, "utf8"), "UPDATE_GOLDEN=1 writes the file");
    // The gateway has only the hash of the token, and keys that are not those of a channel.
    const token = tokenIn(stdout);
    const hash = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(token))).toString("hex");
    const secrets = deployer.fake.script("gsv").secrets;
    assert.equal(secrets.get("BOOTSTRAP_TOKEN_HASH"), hash);
    const keys = [...scripts.values()].map((script) => script.secrets.get("SEALING_KEYS"));
    for (const key of keys) assert.match(key ?? "", /^[0-9a-f]{64}$/);
    assert.equal(new Set(keys).size, 2);
    // The local config had no gateway, so it has this one.
    const config = readFileSync(join(deployer.machine.configFolder, "config.toml"), "utf8");
    assert(config.includes(token) && config.includes(`ws://127.0.0.1:${deployer.fake.port}/ws`), config);
    // Every module goes as it was built.
    const modules = deployer.fake.active("gsv")?.modules ?? [];
    assert(modules.includes("worker.js") && modules.includes("photon_rs_bg.wasm") && modules.length > 20, modules.join(" "));
    assert(!modules.some((name) => name.endsWith("embeddings.bin")));
    assert.deepEqual([...(deployer.fake.buckets.get("gsv-storage") ?? [])], ["gsv/embeddings.bin"]);
    // No start of wrangler had a secret in its arguments, its environment or its files.
    const starts = readFileSync(started, "utf8");
    assert.equal(starts.trim().split("\n").length, 3);
    for (const secret of [token, hash, ...keys, "gsv_admin_of_another"]) assert(!starts.includes(secret ?? ""), secret);
    for (const line of starts.trim().split("\n")) {
      const { args, env } = JSON.parse(line) as { args: string[]; env: Record<string, string> };
      assert.equal(args[0], "deploy");
      assert.equal(env["WRANGLER_SEND_METRICS"], "false");
      assert.equal(env["CLOUDFLARE_ACCOUNT_ID"], ACCOUNT);
    }
    assert.doesNotMatch(stderr, /gsv_admin_[a-z2-7]{10}/);
  });

  it("[DE13] the record has the account and no secret", async () => {
    const path = join(deployer.machine.configFolder, "deploy.json");
    assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), {
      accountId: ACCOUNT,
      accountName: "Ada",
      address: deployer.fake.gatewayUrl,
      isOwnAddress: true,
    });
    assert.equal(statSync(path).mode & 0o777, 0o600);
    // It decides between several accounts, and nothing else would.
    deployer.fake.accounts = [{ id: OTHER_ACCOUNT, name: "Bob" }, ...deployer.fake.accounts];
    assert.match((await deployer.ok(deployer.run(["check"]))).stdout, new RegExp(ACCOUNT));
    assert.match((await deployer.ok(deployer.run(["check", "--account", "Bob"]))).stdout, new RegExp(OTHER_ACCOUNT));
    deployer.fake.accounts = deployer.fake.accounts.slice(1);
  });

  it("[DE5] [DE6] a second deployment changes nothing but versions, and keeps token and keys", async () => {
    const before = deployer.fake.inventory();
    const secrets = [...deployer.fake.scripts.values()].map((script) => [...script.secrets]);
    deployer.fake.forgetRequests();
    const newer = runtimes.with((deployable) => {
      deployable.version = "0.2.0+other";
    });
    const { stdout } = await deployer.ok(deployer.run(["up", "--yes", "--wait", "20s", "--json"], { GSV_RUNTIME_DIR: newer }));
    const result = JSON.parse(stdout) as { version: string; channels: string[]; token: string | null };
    assert.deepEqual([result.version, result.channels, result.token], ["0.2.0+other", ["example"], null]);
    assert.deepEqual(deployer.fake.inventory(), before);
    assert.deepEqual(
      [...deployer.fake.scripts.values()].map((script) => [...script.secrets]),
      secrets,
    );
    assert(deployer.fake.requests.every((line) => !/^POST .*\/(buckets|database|namespaces|queues|indexes) /.test(line)));
    assert.match(deployer.fake.script("gsv").versions.at(-1)?.message ?? "", /^gsv up [0-9A-Z]{26} 0\.2\.0\+other [0-9a-f]{8}$/);
  });

  it("[DE15] status has versions, address and health; a gateway that does not answer is an error", async () => {
    const { stdout } = await deployer.ok(deployer.run(["status", "--json"]));
    const status = JSON.parse(stdout) as { address: string; health: object; workers: { worker: string; version: string; state: string }[] };
    assert.equal(status.address, deployer.fake.gatewayUrl);
    assert.deepEqual(status.health, { ok: true, version: "0.2.0+other", problem: null });
    assert.deepEqual(
      status.workers.map(({ worker, version, state }) => [worker, version, state]),
      [
        ["gsv", "0.2.0+other", "active"],
        ["gsv-channel-example", "0.2.0+other", "active"],
      ],
    );
    deployer.fake.health = { status: 500, body: {} };
    const { code, stderr } = await deployer.run(["status"]);
    deployer.fake.health = undefined;
    assert.equal(code, 4);
    assert.match(stderr, /does not answer[\s\S]*gsv deploy logs/);
  });

  it("[DE15] logs follow the gateway until they are interrupted", async () => {
    const line = await deployer.firstOutput(["logs", "--json"]);
    assert.match(line, /a line of the gateway's log/);
    assert(deployer.fake.requests.some((request) => request.startsWith("POST /accounts/ID/workers/scripts/gsv/tails")));
    const { code, stderr } = await deployer.run(["logs", "--channel", "discord"]);
    assert.equal(code, 1);
    assert.match(stderr, /the channel discord is not deployed/);
  });

  it("[DE15] [TH19] lines of the log never reach the terminal as they are", async () => {
    const folder = join(deployer.machine.folder, "talking");
    mkdirSync(join(folder, "bin"), { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "wrangler", version: "4.164.0" }));
    const nasty = "\u001b]52;c;ZXZpbA==\u0007a \u001b[2Jline\u202e of 日本\r\n";
    writeFileSync(
      join(folder, "bin", "wrangler.js"),
      `process.stdout.write(${JSON.stringify(nasty)}); process.stderr.write(${JSON.stringify(nasty)});`,
    );
    const talking = { GSV_WRANGLER: join(folder, "bin", "wrangler.js") };
    const { stdout, stderr } = await deployer.ok(deployer.run(["logs"], talking));
    assert.equal(stdout, "a line of 日本\n");
    assert.equal(stderr, "Following the log; Ctrl-C ends.\na line of 日本\n");
    assert.equal((await deployer.ok(deployer.run(["logs", "--json"], talking))).stdout, nasty);
  });

  it("[DE11] rollback activates the versions of the run before, of every Worker", async () => {
    const before = deployer.fake.inventory();
    const { stderr } = await deployer.ok(deployer.run(["rollback", "--yes", "--wait", "20s"]));
    assert.match(stderr, /is active again/);
    for (const name of ["gsv", "gsv-channel-example"]) assert(deployer.fake.active(name)?.message.includes(` ${runtimes.version} `), name);
    assert.deepEqual(deployer.fake.inventory(), before);
    const again = await deployer.run(["rollback", "--yes"]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /no earlier version/);
  });

  it("[DE12] a rollback over a change of the stored data is refused, and changes nothing", async () => {
    const migrated = runtimes.with((deployable) => {
      deployable.version = "0.3.0+migrated";
      deployable.state = "00000000";
    });
    await deployer.ok(deployer.run(["up", "--yes", "--wait", "20s"], { GSV_RUNTIME_DIR: migrated }));
    deployer.fake.forgetRequests();
    const { code, stderr } = await deployer.run(["rollback", "--yes"]);
    assert.equal(code, 1);
    assert.match(stderr, /0\.3\.0\+migrated has changed[\s\S]*can't read them\. Nothing was changed/);
    assert(deployer.fake.requests.every((line) => line.startsWith("GET ")));
  });

  it("[DE9] down keeps all data and stops queues; up continues with it", async () => {
    const before = deployer.fake.inventory();
    const classes = [...deployer.fake.script("gsv").namespaces];
    await deployer.ok(deployer.run(["down", "--yes"]));
    assert.deepEqual([...deployer.fake.script("gsv").namespaces], classes);
    assert.deepEqual(deployer.fake.active("gsv")?.bindings, []);
    assert.deepEqual(deployer.fake.buckets.size, 1);
    for (const { consumers } of deployer.fake.queues) assert.deepEqual(consumers, []);
    await answersStopped(deployer.fake.active("gsv")?.source ?? "", classes);
    assert.match((await deployer.ok(deployer.run(["status"]))).stdout, /stopped; start it with `gsv deploy up`/);
    const { code, stderr } = await deployer.run(["rollback", "--yes"]);
    assert.equal(code, 1);
    assert.match(stderr, /is stopped/);
    await deployer.ok(deployer.run(["up", "--yes", "--wait", "20s"]));
    assert.deepEqual(deployer.fake.inventory(), before);
  });

  it("[DE10] a purge with another name is refused; with the right one it deletes all of the deployment, and nothing else", async () => {
    deployer.fake.buckets.set("photos", new Set(["mine"]));
    for (const key of ["agents/main/SOUL.md", "media/a b", "x"]) deployer.fake.buckets.get("gsv-storage")?.add(key);
    const refused = await deployer.run(["down", "--purge", "other", "--yes"]);
    assert.equal(refused.code, 2);
    const asked = await deployer.run(["down", "--purge", "gsv"]);
    assert.equal(asked.code, 2);
    assert.match(asked.stderr, /--yes/);
    assert.equal(deployer.fake.scripts.size, 2);
    await deployer.ok(deployer.run(["down", "--purge", "gsv", "--yes"]));
    assert.deepEqual(deployer.fake.inventory(), {
      workers: [],
      bindings: [],
      buckets: ["photos mine"],
      databases: [],
      namespaces: [],
      queues: [],
      indexes: [],
    });
    assert(!existsSync(join(deployer.machine.configFolder, "deploy.json")));
    assert.match((await deployer.ok(deployer.run(["down", "--purge", "gsv", "--yes"]))).stderr, /nothing to delete/);
  });
});

describe("gsv deploy, before anything is made", () => {
  let deployer: Deployer;
  const runtimes = new Runtimes();
  before(async () => {
    deployer = await Deployer.start();
  });
  after(async () => {
    await deployer.end();
    runtimes.end();
  });
  const untouched = (): void => {
    assert(
      deployer.fake.requests.every((line) => line.startsWith("GET ")),
      deployer.fake.requests.join("\n"),
    );
  };

  it("[DE2] check has a line for each product, and up refuses an account that lacks one", async () => {
    deployer.fake.lacks = [
      { product: "r2", status: 403, code: 10042, message: "Please enable R2 through the Cloudflare Dashboard." },
      { product: "queues", status: 403, code: 10000, message: "Authentication error" },
    ];
    deployer.fake.subdomain = undefined;
    deployer.fake.plan = "free";
    const { code, stdout, stderr } = await deployer.run(["check", "--json"]);
    assert.equal(code, 1, stderr);
    const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: { what: string; verdict: string; next: string }[] };
    assert.equal(ok, false);
    const missing = findings.filter(({ verdict }) => verdict === "missing");
    assert.deepEqual(
      missing.map(({ what }) => what),
      ["address at workers.dev", "R2", "Queues"],
    );
    assert.match(missing.map(({ next }) => next).join("\n"), /workers-and-pages[\s\S]*Enable R2[\s\S]*`Queues: Edit`/);
    assert.equal(findings.find(({ what }) => what === "plan")?.verdict, "note");
    const up = await deployer.up();
    assert.equal(up.code, 1);
    assert.match(up.stderr, /lacks something[\s\S]*Enable R2/);
    untouched();
    deployer.fake.lacks = [];
    deployer.fake.subdomain = "ada";
    deployer.fake.plan = undefined;
    assert.match((await deployer.ok(deployer.run(["check"]))).stdout, /note\s+plan\s+The token may not read the plan/);
  });

  it("[DE2] a wrong token is exit status 3, and several accounts are a question", async () => {
    const wrong = await deployer.run(["check"], { CLOUDFLARE_API_TOKEN: "token-of-4711" });
    assert.equal(wrong.code, 3);
    assert.match(wrong.stderr, /did not accept the token[\s\S]*wrangler login/);
    assert(!wrong.stderr.includes("4711"), "the token is not repeated");
    const none = await deployer.run(["check"], { CLOUDFLARE_API_TOKEN: "" });
    assert.equal(none.code, 3, none.stderr);
    assert.match(none.stderr, /wrangler login/);
    deployer.fake.accounts = [...deployer.fake.accounts, { id: OTHER_ACCOUNT, name: "Bob" }];
    const several = await deployer.up();
    deployer.fake.accounts = deployer.fake.accounts.slice(0, 1);
    assert.equal(several.code, 2);
    assert.match(several.stderr, new RegExp(`${ACCOUNT}  Ada\\n  ${OTHER_ACCOUNT}  Bob[\\s\\S]*--account`));
    untouched();
  });

  it("[DE3] without a terminal and without --yes it shows the plan and does nothing", async () => {
    const { code, stderr } = await deployer.run(["up", "--address", deployer.fake.gatewayUrl]);
    assert.equal(code, 2);
    assert.match(stderr, /create the bucket gsv-storage[\s\S]*deploy the gateway as gsv[\s\S]*--yes/);
    untouched();
    assert(!existsSync(join(deployer.machine.configFolder, "deploy.json")));
  });

  it("[DE5] of two runs at once, the second one is told to wait", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    deployer.fake.gate = promise;
    const first = deployer.run(["up", "--address", deployer.fake.gatewayUrl]);
    try {
      // A waiting request means that the first run holds the lock; the lock's file exists earlier.
      await until("the first run asks", () => deployer.fake.waiting > 0);
      const second = await deployer.run(["down", "--yes"]);
      assert.equal(second.code, 4, second.stderr);
      assert.match(second.stderr, /Another `gsv deploy` is running/);
    } finally {
      deployer.fake.gate = undefined;
      resolve();
    }
    assert.equal((await first).code, 2);
  });

  it("[DE7] without wrangler, or with an old one, it says what to install", async () => {
    // Not in a source checkout, as a released program.
    const released = { GSV_RUNTIME_DIR: runtimes.with(() => undefined), GSV_WRANGLER: "", PATH: deployer.machine.folder };
    const none = await deployer.run(["check"], released);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /Node 22 or newer[\s\S]*npm install -g wrangler@4\.164\.0[\s\S]*GSV_WRANGLER/);
    const old = join(deployer.machine.folder, "old", "bin", "wrangler.js");
    mkdirSync(join(old, ".."), { recursive: true });
    writeFileSync(old, "");
    writeFileSync(join(old, "..", "..", "package.json"), '{"name":"wrangler","version":"4.100.0"}');
    const stale = await deployer.run(["check"], { GSV_WRANGLER: old });
    assert.match(stale.stderr, /wrangler 4\.100\.0 .* is tested with 4\.164\.0/);
    const no = await deployer.run(["check"], { GSV_WRANGLER: join(deployer.machine.folder, "nowhere") });
    assert.equal(no.code, 2);
    const noNode = await deployer.run(["check"], { ...released, GSV_WRANGLER: WRANGLER });
    assert.match(noNode.stderr, /wrangler needs Node/);
  });

  it("[DE14] a Worker that another program has deployed is not touched, unless it is adopted", async () => {
    deployer.fake.scripts.set("gsv", {
      versions: [
        {
          id: "11111111-1111-4111-8111-111111111111",
          number: 1,
          message: "by hand",
          bindings: [],
          exports: ["Gateway"],
          modules: [],
          source: "",
        },
      ],
      deployments: [{ version: "11111111-1111-4111-8111-111111111111", message: "by hand" }],
      secrets: new Map([
        ["BOOTSTRAP_TOKEN_HASH", "of the owner"],
        ["SEALING_KEYS", "of the owner"],
      ]),
      subdomain: { enabled: true, previews_enabled: false },
      namespaces: new Set(["Gateway"]),
    });
    for (const args of [
      ["up", "--yes"],
      ["down", "--yes"],
      ["down", "--purge", "gsv", "--yes"],
    ]) {
      const { code, stderr } = await deployer.run(args);
      assert.equal(code, 1);
      assert.match(stderr, /--adopt/);
    }
    untouched();
    const { stdout } = await deployer.ok(deployer.up(["--adopt", "--json"]));
    assert.equal((JSON.parse(stdout) as { token: string | null }).token, null);
    assert.equal(deployer.fake.script("gsv").secrets.get("SEALING_KEYS"), "of the owner");
  });

  it("[DE1] [DE8] --vectorize makes the index, assets of the bundle are uploaded, and --new-token replaces the token", async () => {
    const runtime = runtimes.with((deployable, folder) => {
      mkdirSync(join(folder, "assets"));
      writeFileSync(join(folder, "assets", "index.html"), "<!doctype html>");
      deployable.gateway["assets"] = { directory: "assets", binding: "ASSETS" };
    });
    const before = deployer.fake.script("gsv").secrets.get("BOOTSTRAP_TOKEN_HASH");
    // Another gateway is configured here, so the token is only shown.
    await deployer.machine.ok("local-config", "set", "url", "ws://127.0.0.1:1/ws");
    const { stdout, stderr } = await deployer.ok(deployer.up(["--vectorize", "768", "--new-token"], { GSV_RUNTIME_DIR: runtime }));
    assert.match(stderr, /only time that the token is shown/);
    const config = readFileSync(join(deployer.machine.configFolder, "config.toml"), "utf8");
    assert(!config.includes(tokenIn(stdout)), config);
    assert.notEqual(deployer.fake.script("gsv").secrets.get("BOOTSTRAP_TOKEN_HASH"), before);
    assert.deepEqual(deployer.fake.inventory()["indexes"], ["gsv-memories: agent model"]);
    assert.equal(deployer.fake.assets.size, 1);
    const bindings = deployer.fake.active("gsv")?.bindings.map(({ name }) => name) ?? [];
    assert(bindings.includes("ASSETS") && bindings.includes("VECTORS"), bindings.join(" "));
  });
});
