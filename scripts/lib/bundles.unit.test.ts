import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { PACKS } from "../../gateway/packs/index.ts";
import { Inputs } from "./inputs.ts";
import { ROOT } from "./root.ts";
import { migrationsOf, stateDigest } from "./state-digest.ts";
import { bundleWorker, modulesAtStart, overBudget } from "./worker-bundle.ts";
import { bucketOf, channelFacts, compatibility, ConfigProblem, deployConfig, queueFacts, withoutComments } from "./wrangler-config.ts";

const good = {
  name: "gsv-channel-x",
  compatibility_date: "2026-11-01",
  compatibility_flags: ["nodejs_compat", "other_flag"],
  workers_dev: false,
  durable_objects: { bindings: [{ name: "ACCOUNT", class_name: "XAccount" }] },
  services: [{ binding: "GATEWAY", service: "gsv", entrypoint: "GatewayEntrypoint", props: { channel: "x" } }],
};
const factsOf = (config: object) => channelFacts(JSON.stringify(config), "x.jsonc", "x");

describe("wrangler.jsonc", () => {
  it("comments and trailing commas are removed, strings are not", () => {
    const text = '{\n // a "comment"\n "url": "https://x/*y*/", /* two\n lines */ "list": ["a\\"//b",],\n}';
    assert.deepEqual(JSON.parse(withoutComments(text)), { url: "https://x/*y*/", list: ['a"//b'] });
  });

  it("gives the facts that the embedded gateway needs of a channel", () => {
    assert.deepEqual(factsOf(good), {
      compatibilityDate: "2026-11-01",
      compatibilityFlags: ["other_flag"],
      durableObject: "XAccount",
    });
    assert.deepEqual(compatibility('{"compatibility_date": "2026-01-01", "compatibility_flags": ["nodejs_compat"]}', "f"), {
      compatibilityDate: "2026-01-01",
      compatibilityFlags: ["nodejs_compat"],
    });
  });

  it("[X17] [F12] a channel with an address, another binding or another name is refused", () => {
    const { compatibility_date: _, ...dateless } = good;
    const bad: readonly (readonly [object, RegExp])[] = [
      [{ ...good, workers_dev: true }, /workers_dev must be false/],
      [{ ...good, workers_dev: undefined }, /workers_dev must be false/],
      [{ ...good, routes: ["x.example/*"] }, /no address of its own/],
      [{ ...good, name: "x" }, /gsv-channel-x/],
      [{ ...good, durable_objects: {} }, /bound as ACCOUNT/],
      [{ ...good, services: [...good.services, { binding: "OTHER", service: "x" }] }, /GatewayEntrypoint/],
      [{ ...good, services: [{ binding: "GATEWAY", service: "gsv" }] }, /GatewayEntrypoint/],
      [{ ...good, services: [{ ...good.services[0], props: { channel: "y" } }] }, /props/],
      [{ ...good, services: [{ ...good.services[0], props: undefined }] }, /props/],
      [{ ...good, r2_buckets: [{ binding: "STORAGE", bucket_name: "gsv-storage" }] }, /no access to the storage/],
      [dateless, /compatibility_date/],
    ];
    for (const [config, why] of bad)
      assert.throws(
        () => factsOf(config),
        (error) => error instanceof ConfigProblem && why.test(error.message),
      );
    assert.throws(() => channelFacts("{", "x.jsonc", "x"), ConfigProblem);
  });
});

describe("gateway/wrangler.jsonc", () => {
  interface Gateway {
    readonly name: string;
    readonly env: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  }
  const text = readFileSync(join(ROOT, "gateway", "wrangler.jsonc"), "utf8");
  const config = JSON.parse(withoutComments(text)) as Gateway & Readonly<Record<string, unknown>>;

  it("[PK4] each pack with a queue of its own has a binding to it, a consumer and a dead-letter queue", () => {
    const queues = new Map(queueFacts(text, "gateway/wrangler.jsonc").map((queue) => [queue.name, queue]));
    for (const { queue } of PACKS) {
      if (queue === undefined) continue;
      assert.equal(queues.get(queue)?.binding, `EVENTS_${queue.toUpperCase().replaceAll("-", "_")}`);
      assert.equal(queues.get(queue)?.deadLetterQueue, `${queue}-dead-letter`);
    }
    assert.deepEqual(queues.get("domain-events"), {
      ...{ name: "domain-events", binding: "EVENTS", maxBatchSize: 10, maxBatchTimeout: 0, maxRetries: 10 },
      deadLetterQueue: "domain-events-dead-letter",
    });
    const dead = { queue: "a", max_batch_size: 1, max_batch_timeout: 1, max_retries: 1, dead_letter_queue: "b" };
    for (const bad of [{ producers: [{ binding: "A", queue: "a" }] }, { consumers: [dead] }])
      assert.throws(() => queueFacts(JSON.stringify({ queues: bad }), "f"), ConfigProblem);
  });

  it("the environment with channels has the same Worker and bindings, plus the channels", () => {
    const { services, name, ...repeated } = config.env["channels"] ?? {};
    assert.equal(name, config.name);
    assert.deepEqual(Object.keys(repeated).sort(), [
      "ai",
      "d1_databases",
      "durable_objects",
      "kv_namespaces",
      "queues",
      "r2_buckets",
      "vars",
    ]);
    for (const [key, value] of Object.entries(repeated)) assert.deepEqual(value, config[key], key);
    // A new key that environments do not inherit must be repeated there.
    const bundling = ["main", "build", "no_bundle", "find_additional_modules", "rules"];
    const inherited = ["$schema", "name", ...bundling, "compatibility_date", "workers_dev", "send_metrics", "exports", "env"];
    assert.deepEqual(
      Object.keys(config).filter((key) => !inherited.includes(key) && !(key in repeated)),
      [],
    );
    for (const { binding, service } of services as { binding: string; service: string }[]) {
      const folder = service.replace(/^gsv-channel-/, "");
      assert.equal(binding, `CHANNEL_${folder.toUpperCase()}`);
      const file = `channels/${folder}/wrangler.jsonc`;
      assert.equal(typeof channelFacts(readFileSync(join(ROOT, file), "utf8"), file, folder).durableObject, "string");
    }
  });
});

describe("deploy.json", () => {
  const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

  it("[DE1] has each binding of the gateway and of its channels, and nothing of how they are built", () => {
    const gateway = deployConfig(read("gateway/wrangler.jsonc"), "gateway/wrangler.jsonc", "channels");
    for (const key of [
      "name",
      "compatibility_date",
      "durable_objects",
      "exports",
      "r2_buckets",
      "kv_namespaces",
      "d1_databases",
      "queues",
      "ai",
      "vars",
    ])
      assert.ok(key in gateway, key);
    // Which channels there are is known when it is deployed.
    for (const key of ["main", "build", "env", "services", "no_bundle", "$schema"]) assert.ok(!(key in gateway), key);
    const discord = deployConfig(read("channels/discord/wrangler.jsonc"), "channels/discord/wrangler.jsonc", "");
    assert.deepEqual(Object.keys(discord).sort(), [
      "compatibility_date",
      "compatibility_flags",
      "durable_objects",
      "exports",
      "name",
      "send_metrics",
      "services",
      "workers_dev",
    ]);
    assert.throws(() => deployConfig("{}", "x.jsonc", "channels"), ConfigProblem);
    assert.equal(bucketOf(gateway, "STORAGE"), "gsv-storage");
    assert.throws(() => bucketOf(gateway, "OTHER"), ConfigProblem);
  });

  it("[DE12] the digest of stored data changes with a migration, a statement of the channels or a class, and with nothing else", () => {
    const root = mkdtempSync(join(tmpdir(), "gsv-digest-"));
    try {
      for (const folder of ["gateway/src", "gateway/packs", "channels/kit/src"]) mkdirSync(join(root, folder), { recursive: true });
      const write = (file: string, text: string): void => writeFileSync(join(root, file), text);
      const list = (...names: string[]): string =>
        `const M: readonly Migration[] = [\n${names.map((name) => `{ name: ${JSON.stringify(name)}, up },\n`).join("")}];\n`;
      const kit = 'const MIGRATIONS: readonly (readonly string[])[] = [\n  ["CREATE TABLE a(b)"],\n];\n';
      const classes = [{ Gateway: { storage: "sqlite" } }];
      write("gateway/src/tables.ts", list("one"));
      write("channels/kit/src/database.ts", kit);
      const first = stateDigest(root, classes);
      assert.match(first, /^[0-9a-f]{8}$/);
      write("gateway/src/other.ts", "export const name: string = 'x';");
      write("gateway/src/tables.test.ts", list("of a test"));
      write("gateway/src/tables.ts", `// A comment.\n${list("one")}`);
      assert.equal(stateDigest(root, classes), first);
      const seen = new Set([first]);
      write("gateway/src/tables.ts", list("one", "two"));
      seen.add(stateDigest(root, classes));
      write("channels/kit/src/database.ts", kit.replace("a(b)", "a(b, c)"));
      seen.add(stateDigest(root, classes));
      seen.add(stateDigest(root, [...classes, { Account: {} }]));
      assert.equal(seen.size, 4);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  it("[DE12] finds the migrations of this repository", () => {
    const found = (file: string): number => migrationsOf(read(file)).length;
    for (const file of ["gateway/src/kernel/tables.ts", "gateway/src/session/store/schema.ts", "channels/kit/src/database.ts"])
      assert.ok(found(file) > 0, file);
    // A list of migrations that has another type would not be seen.
    const sources = readdirSync(join(ROOT, "gateway", "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const lines = sources.flatMap(
      (file) => read(join("gateway", "src", file)).match(/^export const [A-Z_]*(?:MIGRATIONS|HISTORY|ROWS): .*/gm) ?? [],
    );
    assert.ok(lines.length > 15, lines.join("\n"));
    for (const line of lines) assert.match(line, /: readonly (?:Historical|Row)?Migration\[\] = \[/);
  });
});

describe("bundles", () => {
  it("[M10] [PK3] readers of documents and images, the engine of patterns, the reader of deletions, the reader of YAML, the routes of the HTTP contract, what runs in a session, what works on schedules, hooks, tasks and jobs of other programs, packs, transfers, invitations, moves, calls of models, and the model clients are modules of their own, and the start contains none of them", () => {
    const folder = mkdtempSync(join(tmpdir(), "gsv-bundle-"));
    try {
      execFileSync(process.execPath, [join(ROOT, "scripts", "bundle-gateway.ts"), folder]);
      const modules = [
        "answers.mjs",
        "anthropic.mjs",
        "bedrock.mjs",
        "command-look.mjs",
        "deletion-reader.mjs",
        "documents.mjs",
        "dots.wasm",
        "embeddings.mjs",
        "events.mjs",
        "feature-tables.mjs",
        "front-matter.mjs",
        "google.mjs",
        "hooks.mjs",
        "images.mjs",
        "invites.mjs",
        "jobs.mjs",
        "memory.mjs",
        "mistral.mjs",
        "model-call.mjs",
        "moved-state.mjs",
        "moves.mjs",
        "openai.mjs",
        "pdf.mjs",
        "photon_rs_bg.wasm",
        "read-definition.mjs",
        "regex.mjs",
        "routes.mjs",
        "runs.mjs",
        "schedule.mjs",
        "search.mjs",
        "session.mjs",
        "telemetry.mjs",
        "transfers.mjs",
        "word-places.wasm",
        ...PACKS.map(({ name }) => `${name}.mjs`),
      ].sort();
      // What parts share is in modules that are named by their content.
      const found = readdirSync(folder).sort();
      const isShared = (name: string): boolean => /-[A-Z0-9]{8}\.mjs$/.test(name);
      assert.deepEqual(
        found.filter((name) => !isShared(name)),
        [...modules, "worker.js"],
      );
      const textOf = (name: string): string => readFileSync(join(folder, name), "utf8");
      const text = (name: string): string => modulesAtStart(folder, name).map(textOf).join("\n");
      const start = text("worker.js");
      // The start or another part loads it.
      const all = found
        .filter((name) => name.endsWith("js"))
        .map(textOf)
        .join("\n");
      for (const name of modules.filter((module) => module.endsWith(".mjs"))) assert.ok(all.includes(`("./${name}")`), name);
      // Each of them is the only module of an isolate.
      for (const name of ["documents.mjs", "images.mjs", "pdf.mjs"]) assert.deepEqual(modulesAtStart(folder, name).filter(isShared), []);
      // The table of errors, which most parts use, is there once.
      assert.equal(found.filter((name) => name.endsWith("js") && textOf(name).includes("nothing runs until its owner resumes")).length, 1);
      // Words of the clients, PDF.js, fflate, Photon, RE2JS, yaml, ts-rest and croner.
      for (const [name, word] of [
        ["anthropic.mjs", "anthropic-version"],
        ["openai.mjs", "OpenAI-Organization"],
        ["pdf.mjs", "PasswordException"],
        ["documents.mjs", "invalid zip data"],
        ["images.mjs", "photonimage_new"],
        ["deletion-reader.mjs", "GIT_CONFIG_("],
        ["regex.mjs", "RE2JSCompileException"],
        ["front-matter.mjs", "BAD_COLLECTION_TYPE"],
        ["read-definition.mjs", "BAD_COLLECTION_TYPE"],
        ["routes.mjs", "ts-rest"],
        ["jobs.mjs", "job_not_indexed"],
        ["commerce.mjs", "refundCreate"],
        ["schedule.mjs", "CronPattern: "],
        ["telemetry.mjs", "gen_ai.operation.name"],
        ["answers.mjs", "and says neither an ETag"],
        ["moves.mjs", "move_page_failed"],
        ["session.mjs", "session_alarm_not_set"],
        ["model-call.mjs", "I am GSV's demo model"],
        ["command-look.mjs", "does not take commands that only read"],
      ] as const) {
        assert.ok(text(name).includes(word), name);
        assert.ok(!start.includes(word), word);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
  it("one byte over the budget fails", () => {
    assert.equal(overBudget("x", { bytes: 9, gzipBytes: 1000 }, 1000), null);
    assert.match(overBudget("x", { bytes: 9, gzipBytes: 1001 }, 1000) ?? "", /Worker x is 1.0 KiB gzipped, more than its budget/);
  });

  it("a change of an input changes only the hashes that depend on it; tests and the order of paths do not matter", () => {
    const root = mkdtempSync(join(tmpdir(), "gsv-inputs-"));
    try {
      for (const name of ["a", "b"]) {
        mkdirSync(join(root, name));
        writeFileSync(join(root, name, "code.ts"), name);
      }
      const hashes = () => {
        const inputs = new Inputs(root);
        return [inputs.hash(["a", "none"]), inputs.hash(["b"]), inputs.hash(["a", "b"]), inputs.hash(["b", "a"])];
      };
      const before = hashes();
      assert.equal(before[2], before[3]);
      writeFileSync(join(root, "a", "code.unit.test.ts"), "test");
      assert.deepEqual(hashes(), before);
      writeFileSync(join(root, "a", "code.ts"), "other");
      const after = hashes();
      assert.notEqual(after[0], before[0]);
      assert.equal(after[1], before[1]);
      assert.notEqual(after[2], before[2]);
      assert.notEqual(new Inputs(root).hash(["a"], "salt"), after[0]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});

it("wrangler writes nothing into the user's configuration", async () => {
  const home = mkdtempSync(join(tmpdir(), "gsv-home-"));
  const { HOME: before, XDG_CONFIG_HOME: config } = process.env;
  try {
    process.env["HOME"] = home;
    delete process.env["XDG_CONFIG_HOME"];
    await bundleWorker("channels/example/wrangler.jsonc", "", join(home, "example.js"));
    assert.deepEqual(readdirSync(home), ["example.js"]);
  } finally {
    process.env["HOME"] = before;
    if (config !== undefined) process.env["XDG_CONFIG_HOME"] = config;
    rmSync(home, { recursive: true, force: true });
  }
});
