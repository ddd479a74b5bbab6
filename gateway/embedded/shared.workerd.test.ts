/** The bucket of a cluster on raw workerd with a fake of S3: R2's contract, a machine that is lost, and kills in the middle of a put. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { FakeS3 } from "../../test/fakes/fake-s3.ts";
import { bucketCases } from "../test/support/bucket-contract.ts";
import { layoutCases } from "../test/support/layout-contract.ts";
import { RawWorkerd, bundle } from "../test/support/raw-workerd.ts";

const here = dirname(fileURLToPath(import.meta.url));
const KEY = "0123456789abcdef".repeat(4);
const FILES = "gsvb/c/v1/services/files/";
/** Times of workerd are shorter by this. */
const DIVISOR = 2;

const config = (endpoint: string, fs: "files" | "hanging"): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = .app), (name = "r2", worker = .r2), (name = "hanging", worker = .hanging),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", bucket = (path = "files"))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "app")],
  cluster = (
    bucket = "s3://gsvb/c", bucketOptions = ["aws_endpoint=${endpoint}", "aws_credentials_file=keys.env"], address = "127.0.0.1:0",
    key = embed "cluster.key", unsafeTimeDivisor = ${DIVISOR}
  )
);
const app :Workerd.Worker = (modules = [(name = "app.js", esModule = embed "app.js")], compatibilityDate = "2026-11-01", bindings = [(name = "STORAGE", r2Bucket = "r2")]);
const hanging :Workerd.Worker = (modules = [(name = "hanging.js", esModule = embed "hanging.js")], compatibilityDate = "2026-11-01", bindings = [(name = "FILES", service = "files")]);
const r2 :Workerd.Worker = (
  modules = [(name = "r2.js", esModule = embed "r2.js")], compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "${fs}"), (name = "SHARED", text = "1")]
);
`;
/** Stores a file of this content and never says so. */
const HANGING = `export default { async fetch(request, env) {
  const hangs = request.method === "PUT" && (await request.clone().text()) === "hang";
  const response = await env.FILES.fetch(request);
  if (hangs) await new Promise(() => setInterval(() => {}, 1000));
  return response;
} };`;

class Instance {
  readonly folder = mkdtempSync(join(tmpdir(), "gsv-shared-"));
  #workerd: RawWorkerd | undefined;

  async start(s3: FakeS3, fs: "files" | "hanging" = "files"): Promise<void> {
    mkdirSync(join(this.folder, "do"), { recursive: true });
    writeFileSync(join(this.folder, "cluster.key"), KEY);
    writeFileSync(
      join(this.folder, "keys.env"),
      `AWS_ACCESS_KEY_ID=${s3.accessKeyId}\nAWS_SECRET_ACCESS_KEY=${s3.secretAccessKey}\nAWS_ENDPOINT_URL=${s3.url}\n`,
    );
    const [app, r2] = await Promise.all([bundle(join(here, "test-worker.ts")), bundle(join(here, "r2.ts"))]);
    const files = { "app.js": app, "r2.js": r2, "hanging.js": HANGING };
    this.#workerd = await RawWorkerd.start(this.folder, config(s3.url, fs), files, ["http"], {}, ["--experimental"]);
  }
  kill = async (signal: NodeJS.Signals = "SIGKILL"): Promise<void> => this.#workerd?.kill(signal);
  get log(): string {
    return this.#workerd?.log ?? "";
  }
  async end(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
  async ask(path: string, key: string, body?: string | Uint8Array<ArrayBuffer>): Promise<Response> {
    assert(this.#workerd);
    const url = `${this.#workerd.url}/${path}${path.includes("?") ? "&" : "?"}key=${encodeURIComponent(key)}`;
    const asked = fetch(url, { method: "POST", ...(body === undefined ? {} : { body }) });
    return asked.catch((error: unknown) => assert.fail(`${String(error)}\n${this.log}`));
  }
  async text(key: string): Promise<string | undefined> {
    const response = await this.ask("get", key);
    const text = await response.text();
    assert.equal(response.status, 200, `${text}\n${this.log}`);
    return (JSON.parse(text) as { text: string } | null)?.text;
  }
  async put(key: string, body: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const response = await this.ask("put", key, body);
    assert.equal(response.status, 200, await response.text());
  }
}

/** Until the lease of an instance that was killed has ended, a request may be lost on its way there. */
async function takenOver(instance: Instance): Promise<void> {
  const answer = async (): Promise<string> => (await instance.ask("get", "a")).text();
  for (const end = Date.now() + 60_000; (await answer()).includes("Network connection lost"); )
    assert.ok(Date.now() < end, "the instance answers");
}

describe("[CL5] the bucket of a cluster", () => {
  let s3: FakeS3;
  const [one, two] = [new Instance(), new Instance()];
  before(async () => {
    s3 = await FakeS3.start();
    await one.start(s3);
  });
  after(async () => {
    await one.end();
    await two.end();
    await s3.end();
  });

  for (const [index, { name }] of bucketCases.entries())
    it(`keeps R2's contract: ${name}`, async () => {
      assert.equal(await (await one.ask(`case?index=${index}`, "")).text(), "ok");
    });
  for (const [index, { name }] of layoutCases.entries())
    it(`holds the storage layout: ${name}`, async () => {
      assert.equal(await (await one.ask(`layout?index=${index}`, "")).text(), "ok");
    });

  it("keeps one file for each object, and removes those of replaced and deleted ones", async () => {
    const before = new Set(s3.keys(FILES));
    await one.put("kept/a", "first");
    await one.put("kept/a", "second");
    await one.put("kept/b", "gone");
    await one.ask("delete", "kept/b");
    const now = s3.keys(FILES).filter((key) => !before.has(key));
    assert.deepEqual(
      now.map((key) => s3.objects.get(key)?.body.toString()),
      ["second"],
    );
  });

  it("gives a large object as it was put", async () => {
    // Made at once: the fake is in this process, and workerd gives up its lease when a request waits too long.
    const bytes = Buffer.alloc(6 << 20, "a pattern of a length that is no power of two, ");
    await one.put("large", new Uint8Array(bytes));
    assert.ok(bytes.equals(Buffer.from((await one.text("large")) ?? "")));
  });

  it("answers on another instance as on the first, and goes on there when the first is killed", async () => {
    await one.put("agents/main/SOUL.md", "be kind");
    await two.start(s3);
    assert.equal(await two.text("agents/main/SOUL.md"), "be kind");
    await two.put("agents/main/USER.md", "Sam");
    assert.equal(await one.text("agents/main/USER.md"), "Sam");
    await one.kill();
    await takenOver(two);
    assert.equal(await two.text("agents/main/SOUL.md"), "be kind");
    assert.equal(await two.text("agents/main/USER.md"), "Sam");
  });

  it("[CL4] neither the key of the bucket nor that of the instances is in a request, the configuration or a log", () => {
    assert.ok(s3.seen.length > 100);
    const written = readFileSync(join(one.folder, "config.capnp"), "utf8");
    for (const secret of [s3.secretAccessKey, KEY])
      for (const text of [...s3.seen, written, one.log, two.log]) assert.ok(!text.includes(secret), text.slice(0, 200));
  });
});

describe("[CL5] a put into the bucket of a cluster that a kill interrupts", () => {
  it("leaves the object as it was, and its file is removed later", async () => {
    const s3 = await FakeS3.start();
    const instance = new Instance();
    try {
      await instance.start(s3, "hanging");
      await instance.put("a", "before");
      const hanging = instance.ask("put", "a", "hang").catch(() => undefined);
      for (const end = Date.now() + 30_000; s3.keys(FILES).length < 2; await new Promise((resolve) => setImmediate(resolve)))
        assert.ok(Date.now() < end, "the file is there");
      await instance.kill();
      await hanging;
      await instance.start(s3);
      await takenOver(instance);
      assert.equal(await instance.text("a"), "before");
      await instance.put("b", "next");
      assert.deepEqual(
        s3
          .keys(FILES)
          .map((key) => s3.objects.get(key)?.body.toString())
          .sort(),
        ["before", "next"],
      );
    } finally {
      await instance.end();
      await s3.end();
    }
  });
});
