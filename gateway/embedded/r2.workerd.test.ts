/** The embedded bucket on raw workerd: R2's contract, what a person does to the files, and kills in the middle of a put. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { bucketCases } from "../test/support/bucket-contract.ts";
import { layoutCases } from "../test/support/layout-contract.ts";
import { RawWorkerd, bundle } from "../test/support/raw-workerd.ts";

const here = dirname(fileURLToPath(import.meta.url));
const md5 = (text: string): string => createHash("md5").update(text).digest("hex");

/**
 * `FS` of the bucket is `files`, or a service that never answers before or after a write of a key with `hang-...` in it, and breaks at a look at
 * one with `once` that was read before.
 */
const config = (fs: "files" | "hanging"): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "app", worker = .app), (name = "r2", worker = .r2), (name = "hanging", worker = .hanging),
    (name = "do", disk = (path = "do", writable = true)), (name = "files", disk = (path = "files", writable = true, allowDotfiles = true))
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "app")]
);
const app :Workerd.Worker = (modules = [(name = "app.js", esModule = embed "app.js")], compatibilityDate = "2026-11-01", bindings = [(name = "STORAGE", r2Bucket = "r2")]);
const hanging :Workerd.Worker = (modules = [(name = "hanging.js", esModule = embed "hanging.js")], compatibilityDate = "2026-11-01", bindings = [(name = "FILES", service = "files")]);
const r2 :Workerd.Worker = (
  modules = [(name = "r2.js", esModule = embed "r2.js")], compatibilityDate = "2026-11-01",
  durableObjectNamespaces = [(className = "R2", uniqueKey = "R2", enableSql = true)], durableObjectStorage = (localDisk = "do"),
  bindings = [(name = "NS", durableObjectNamespace = "R2"), (name = "FS", service = "${fs}")]
);
`;
const HANGING = `const read = new Set();
export default { async fetch(request, env) {
  if (request.method === "HEAD" && read.has(request.url)) throw new Error("looked at again");
  if (request.method === "GET" && request.url.includes("once")) read.add(request.url);
  const write = request.method === "PUT";
  if (write && request.url.includes("hang-before")) await new Promise(() => setInterval(() => {}, 1000));
  const response = await env.FILES.fetch(request);
  if (write && request.url.includes("hang-after")) await new Promise(() => setInterval(() => {}, 1000));
  return response;
} };`;

type Shown = { key: string; size: number; etag: string; version: string; custom: Record<string, string>; text: string };

class Bucket {
  readonly folder = mkdtempSync(join(tmpdir(), "gsv-r2-"));
  #workerd: RawWorkerd | undefined;

  async start(fs: "files" | "hanging" = "files"): Promise<void> {
    for (const name of ["do", "files"]) mkdirSync(join(this.folder, name), { recursive: true });
    const [app, r2] = await Promise.all([bundle(join(here, "test-worker.ts")), bundle(join(here, "r2.ts"))]);
    this.#workerd = await RawWorkerd.start(this.folder, config(fs), { "app.js": app, "r2.js": r2, "hanging.js": HANGING });
  }
  async kill(): Promise<void> {
    await this.#workerd?.kill();
  }
  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
  file(name: string): string {
    return join(this.folder, "files", name);
  }
  async ask(path: string, key: string, body?: string): Promise<Response> {
    assert(this.#workerd);
    return fetch(`${this.#workerd.url}/${path}${path.includes("?") ? "&" : "?"}key=${encodeURIComponent(key)}`, {
      method: "POST",
      ...(body === undefined ? {} : { body }),
    });
  }
  async #json<T>(response: Response): Promise<T> {
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as T;
  }
  put = async (key: string, body: string): Promise<Shown> => this.#json(await this.ask("put", key, body));
  get = async (key: string): Promise<Shown | null> => this.#json(await this.ask("get", key));
  list = async (prefix = ""): Promise<Shown[]> => this.#json(await this.ask("list", prefix));
}

describe("the embedded bucket", () => {
  const bucket = new Bucket();
  before(() => bucket.start());
  after(() => bucket.remove());

  describe("keeps R2's contract", () => {
    for (const [index, { name }] of bucketCases.entries()) {
      it(name, async () => {
        const response = await bucket.ask(`case?index=${index}`, "");
        assert.equal(await response.text(), "ok");
      });
    }
  });

  describe("holds the storage layout", () => {
    for (const [index, { name }] of layoutCases.entries()) {
      it(name, async () => {
        const response = await bucket.ask(`layout?index=${index}`, "");
        assert.equal(await response.text(), "ok");
      });
    }
  });

  it("says that it does no multipart uploads", async () => {
    const response = await bucket.ask("multipart", "m");
    assert.match(await response.text(), /does not do createMultipartUpload.*10000/);
  });

  it("stores objects as plain files of the same name", async () => {
    await bucket.put("agents/main/SOUL.md", "be kind");
    assert.equal(readFileSync(bucket.file("agents/main/SOUL.md"), "utf8"), "be kind");
  });

  it("[TF8] removes the folders of a copy with its last part, and no other folder", async () => {
    const [first, second] = ["transfers/ab/0/000000", "transfers/ab/1/000064"];
    for (const key of [first, second, "agents/empty/a.md"]) await bucket.put(key, "part");
    await bucket.ask("delete", first);
    assert.deepEqual([existsSync(bucket.file("transfers/ab/0")), existsSync(bucket.file(second))], [false, true]);
    for (const key of [second, "agents/empty/a.md"]) await bucket.ask("delete", key);
    assert.equal(existsSync(bucket.file("transfers/ab")), false);
    assert.equal(existsSync(bucket.file("agents/empty")), true);
  });

  it("keeps keys inside its folder", async () => {
    for (const key of ["../escape", "a/../../escape", "/etc/escape", ".hidden"]) await bucket.put(key, "x");
    assert.equal(existsSync(join(bucket.folder, "escape")), false);
    assert.equal(existsSync(bucket.file("%2E./escape")), true);
    assert.equal(existsSync(bucket.file("%2Ehidden")), true);
  });

  it("refuses a key that needs a folder where a file is, and the other way round", async () => {
    await bucket.put("clash/file", "x");
    assert.match(await (await bucket.ask("put", "clash/file/below", "y")).text(), /needs a folder.*10020/);
    assert.match(await (await bucket.ask("put", "clash", "y")).text(), /a folder of this name.*10020/);
    assert.equal((await bucket.get("clash/file"))?.text, "x");
  });

  it("[WF7] a name that was a folder can be a file again, also with empty folders of an older home in it", async () => {
    await bucket.put("was/folder/x", "x");
    await bucket.ask("delete", "was/folder/x");
    mkdirSync(bucket.file("was/folder/deep/deeper"), { recursive: true });
    assert.equal((await bucket.put("was/folder", "y")).etag, md5("y"));
    assert.equal((await bucket.get("was/folder"))?.text, "y");
    await bucket.ask("delete", "was/folder");
    await bucket.put("was/folder/x", "again");
    assert.deepEqual(
      (await bucket.list("was/")).map(({ key }) => key),
      ["was/folder/x"],
    );
  });

  it("[WF7] a folder with a dotfile, a link or an object in it stays", async () => {
    for (const name of ["held/dot", "held/link", "held/object"]) mkdirSync(bucket.file(`${name}/in`), { recursive: true });
    mkdirSync(bucket.file("held/dot/.git"));
    writeFileSync(bucket.file("held/dot/.git/config"), "mine");
    symlinkSync(bucket.folder, bucket.file("held/link/in/away"));
    await bucket.put("held/object/in/x", "x");
    // Beside it, and looked at first or last: empty folders that a person has made.
    const empty = ["held/object/a", "held/object/z/deep"].map((name) => bucket.file(name));
    for (const folder of empty) mkdirSync(folder, { recursive: true });
    for (const name of ["held/dot", "held/link", "held/object"])
      assert.match(await (await bucket.ask("put", name, "y")).text(), /a folder of this name.*10020/, name);
    assert.equal(readFileSync(bucket.file("held/dot/.git/config"), "utf8"), "mine");
    assert.deepEqual(empty.map(existsSync), [true, true]);
    assert.deepEqual([existsSync(bucket.file("held/link/in/away")), existsSync(bucket.file("held/object/in/x"))], [true, true]);
    assert.deepEqual(
      (await bucket.list("held/")).map(({ key }) => key),
      ["held/object/in/x"],
    );
  });

  it("[WF7] of a file and files below it that are put at the same time, what was stored stays", async () => {
    for (let round = 0; round < 30; round++) {
      const name = `race/${round}`;
      mkdirSync(bucket.file(name), { recursive: true });
      const [file, ...below] = await Promise.all([name, `${name}/a`, `${name}/b/c`].map((key) => bucket.ask("put", key, key)));
      const stored = below.filter(({ status }) => status === 200).length;
      assert.equal((await bucket.list(name)).length, (file?.status === 200 ? 1 : 0) + stored, name);
      assert(file?.status !== 200 || stored === 0, "a file and files below it can't both be there");
    }
  });

  describe("sees what a person does to the files", () => {
    it("a new file is an object", async () => {
      mkdirSync(bucket.file("person"), { recursive: true });
      writeFileSync(bucket.file("person/new.md"), "by hand");
      const object = await bucket.get("person/new.md");
      assert.deepEqual([object?.text, object?.etag, object?.custom], ["by hand", md5("by hand"), {}]);
      assert.deepEqual(
        (await bucket.list("person/")).map(({ key, etag }) => [key, etag]),
        [["person/new.md", md5("by hand")]],
      );
    });

    it("an edited file has a new etag and version, even at once and with the same length", async () => {
      const put = await bucket.put("person/edit.md", "aaaa");
      for (const text of ["bbbb", "cccc", "dddd"]) {
        writeFileSync(bucket.file("person/edit.md"), text);
        const object = await bucket.get("person/edit.md");
        assert.deepEqual([object?.text, object?.etag, object?.custom], [text, md5(text), {}]);
        assert.notEqual(object?.version, put.version);
      }
    });

    it("an old unchanged file keeps version and metadata; touching it changes nothing", async () => {
      const put = await bucket.put("person/old.md", "same");
      const long = new Date(Date.now() - 3_600_000);
      utimesSync(bucket.file("person/old.md"), long, long);
      for (let i = 0; i < 2; i++) {
        const object = await bucket.get("person/old.md");
        assert.deepEqual([object?.version, object?.etag, object?.custom], [put.version, put.etag, { by: "test" }]);
      }
    });

    it("an edit that keeps size but not time is seen once the file has settled", async () => {
      await bucket.put("person/settled.md", "aaaa");
      const long = new Date(Date.now() - 3_600_000);
      utimesSync(bucket.file("person/settled.md"), long, long);
      assert.equal((await bucket.get("person/settled.md"))?.text, "aaaa");
      writeFileSync(bucket.file("person/settled.md"), "bbbb");
      assert.deepEqual(
        (await bucket.list("person/settled")).map(({ etag }) => etag),
        [md5("bbbb")],
      );
    });

    it("a deleted file is gone, and a put creates it again", async () => {
      await bucket.put("person/gone.md", "x");
      rmSync(bucket.file("person/gone.md"));
      assert.equal(await bucket.get("person/gone.md"), null);
      assert.deepEqual(await bucket.list("person/gone"), []);
      assert.equal((await bucket.put("person/gone.md", "y")).etag, md5("y"));
    });

    it("[S11] links and dotfiles are no objects", async () => {
      const secret = join(bucket.folder, "secret.txt");
      writeFileSync(secret, "outside");
      mkdirSync(join(bucket.folder, "outside"));
      writeFileSync(join(bucket.folder, "outside", "f"), "outside");
      mkdirSync(bucket.file("links"));
      symlinkSync(secret, bucket.file("links/file"));
      symlinkSync(join(bucket.folder, "outside"), bucket.file("links/folder"));
      writeFileSync(bucket.file("links/.dot"), "x");
      for (const key of ["links/file", "links/folder/f", "links/.dot"]) assert.equal(await bucket.get(key), null, key);
      assert.deepEqual(await bucket.list("links/"), []);
      assert.match(await (await bucket.ask("put", "links/folder/f", "overwritten")).text(), /10020/);
      await bucket.ask("delete", "links/folder/f");
      assert.equal(readFileSync(join(bucket.folder, "outside", "f"), "utf8"), "outside");
    });

    it("[S11] a file that was replaced by a link is gone", async () => {
      await bucket.put("links/replaced", "mine");
      writeFileSync(join(bucket.folder, "secret2.txt"), "their secret");
      rmSync(bucket.file("links/replaced"));
      symlinkSync(join(bucket.folder, "secret2.txt"), bucket.file("links/replaced"));
      assert.equal(await bucket.get("links/replaced"), null);
    });
  });
});

it("a file that has settled is opened without a look at it before", async () => {
  const bucket = new Bucket();
  try {
    await bucket.start("hanging");
    writeFileSync(bucket.file("once.md"), "first");
    const then = new Date(Date.now() - 60_000);
    utimesSync(bucket.file("once.md"), then, then);
    const first = await bucket.get("once.md");
    assert.equal(first?.text, "first");
    assert.deepEqual(await bucket.get("once.md"), first);
    // Another file is seen as one, which needs a look.
    writeFileSync(bucket.file("once.md"), "other");
    assert.equal((await bucket.ask("get", "once.md")).status, 500);
  } finally {
    await bucket.remove();
  }
});

describe("[P12] a kill in the middle of a put", () => {
  for (const [place, outcome] of [
    ["before", "the old object, whole"],
    ["after", "the new object, whole"],
  ] as const) {
    for (const size of [10, 2 << 20]) {
      it(`${place} the file of ${size} bytes is in place leaves ${outcome}`, async () => {
        const bucket = new Bucket();
        try {
          const key = `hang-${place}.txt`;
          const [old, fresh] = ["o".repeat(size), "n".repeat(size)];
          await bucket.start("files");
          const first = await bucket.put(key, old);
          await bucket.kill();

          await bucket.start("hanging");
          const hanging = bucket.ask("put?by=second", key, fresh).then(
            () => assert.fail("the put should not end"),
            () => undefined,
          );
          // The write is under way when the intent is in the table; after it, when the file has its new content.
          await until(() =>
            place === "after" ? readFileSync(bucket.file(key), "utf8") === fresh : walOf(bucket.folder).includes("second"),
          );
          await bucket.kill();
          await hanging;

          await bucket.start("files");
          const object = await bucket.get(key);
          const expected = place === "before" ? old : fresh;
          assert.equal(object?.text === expected, true);
          assert.deepEqual([object?.etag, object?.custom], [md5(expected), { by: place === "before" ? "test" : "second" }]);
          assert.equal(object?.version === first.version, place === "before");
          assert.deepEqual(
            (await bucket.list()).map(({ etag }) => etag),
            [md5(expected)],
          );
        } finally {
          await bucket.remove();
        }
      });
    }
  }

  it("of a new object leaves no object, or a whole one", async () => {
    for (const place of ["before", "after"] as const) {
      const bucket = new Bucket();
      try {
        await bucket.start("hanging");
        const hanging = bucket.ask("put?by=second", `new/hang-${place}`, "content").then(
          () => assert.fail("the put should not end"),
          () => undefined,
        );
        await until(() =>
          place === "after"
            ? existsSync(bucket.file(`new/hang-after`)) && statSync(bucket.file("new/hang-after")).size === 7
            : walOf(bucket.folder).includes("second"),
        );
        await bucket.kill();
        await hanging;
        await bucket.start("files");
        const object = await bucket.get(`new/hang-${place}`);
        assert.deepEqual(
          object && [object.text, object.etag, object.custom],
          place === "before" ? null : ["content", md5("content"), { by: "second" }],
        );
      } finally {
        await bucket.remove();
      }
    }
  });
});

/** What the table's write-ahead log holds, as text. */
function walOf(folder: string): string {
  return readdirDeep(join(folder, "do"))
    .filter((file) => file.endsWith("-wal"))
    .map((file) => readFileSync(file, "latin1"))
    .join("");
}
function readdirDeep(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
}
async function until(condition: () => boolean, deadlineMs = 10_000): Promise<void> {
  for (const deadline = Date.now() + deadlineMs; !condition(); await new Promise((resolve) => setImmediate(resolve))) {
    if (Date.now() > deadline) throw new Error(`the condition did not come true within ${deadlineMs} ms`);
  }
}
