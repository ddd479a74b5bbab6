/** A release that is installed by npm from its packed files: into a clean folder, with an empty cache, from a registry on this machine alone. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after, before, describe, it } from "node:test";
import { isSigned } from "../../scripts/lib/release/minisign.ts";
import { type ArchiveFile, writeTarball } from "../../scripts/lib/release/tarball.ts";
import { ran, Releases } from "./releases.ts";
import { freePort, ROOT, type Ran } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "gsv release "));
const releases = new Releases(join(folder, "release"));
const PLATFORM = `${process.platform}-${process.arch}`;

/** An npm registry of a few packed files. */
class Registry {
  readonly #packages = new Map<string, { readonly manifest: { name: string; version: string }; readonly file: string }>();
  readonly asked: string[] = [];
  readonly #server: Server = createServer((request, response) => {
    const url = decodeURIComponent(request.url ?? "").slice(1);
    this.asked.push(url);
    const found = this.#packages.get(url.replace(/\/-\/package\.tgz$/, ""));
    if (found === undefined) return void response.writeHead(404, { "Content-Type": "application/json" }).end("{}");
    const content = readFileSync(found.file);
    if (url.endsWith(".tgz")) return void response.writeHead(200).end(content);
    const { manifest } = found;
    const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
    const dist = { tarball: `${this.url}/${manifest.name}/-/package.tgz`, integrity };
    const document = {
      name: manifest.name,
      "dist-tags": { latest: manifest.version },
      versions: { [manifest.version]: { ...manifest, dist } },
    };
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(document));
  });
  url = "";
  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }
  /** `manifest`: of the packed file. */
  add(manifest: { name: string; version: string }, file: string): void {
    this.#packages.set(manifest.name, { manifest, file });
  }
  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Packs a package that is installed here, as its publisher has. */
async function pack(packageFile: string): Promise<{ manifest: { name: string; version: string }; file: string }> {
  const dir = dirname(realpathSync(packageFile));
  const manifest = JSON.parse(readFileSync(packageFile, "utf8")) as { name: string; version: string };
  const files = readdirSync(dir, { recursive: true, encoding: "utf8" }).flatMap((name): ArchiveFile[] => {
    const from = join(dir, name);
    const meta = statSync(from);
    if (!meta.isFile() || name.startsWith("node_modules")) return [];
    return [{ path: `package/${relative(dir, from)}`, from, isProgram: (meta.mode & 0o100) !== 0 }];
  });
  const file = join(folder, `${manifest.name.replace("/", "-")}.tgz`);
  await writeTarball(file, files, 0, 0);
  return { manifest, file };
}
/** The `package.json` of a packed file. */
async function manifestOf(file: string): Promise<{ name: string; version: string; [field: string]: unknown }> {
  const { stdout } = await ran("tar", ["-xzOf", file, "package/package.json"], process.env, folder);
  return JSON.parse(stdout) as { name: string; version: string };
}

describe("[RE1] [RE2] a release", () => {
  const registry = new Registry();
  const clean = join(folder, "clean");
  const env: NodeJS.ProcessEnv = {
    PATH: process.env["PATH"],
    HOME: clean,
    SHELL: "/bin/sh",
    NO_COLOR: "1",
    GSV_HOME: join(clean, "home"),
    GSV_CONFIG_DIR: join(clean, "config"),
    XDG_CACHE_HOME: join(clean, "cache"),
    npm_config_cache: join(clean, "npm-cache"),
  };
  const gsv = (...args: string[]): Promise<Ran> => ran(join(clean, "node_modules", ".bin", "gsv"), args, env, clean);
  before(async () => {
    mkdirSync(clean);
    releases.make();
    await registry.start();
  });
  after(async () => {
    if (existsSync(join(clean, "home"))) await gsv("down");
    registry.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const inRelease = (name: string): string => join(releases.folder, name);

  it("has signed sums of all its files, and a signed manifest", () => {
    const sums = readFileSync(inRelease("SHA256SUMS"), "utf8").trim().split("\n");
    const names = sums.map((line) => line.slice(66));
    assert.deepEqual(
      names,
      [`gsv-0.1.0-${PLATFORM}.tar.gz`, "gsv-0.1.0.tgz", `gsv-cli-${PLATFORM}-0.1.0.tgz`, "sbom.cdx.json", "stable.json"].sort(),
    );
    for (const line of sums) {
      const hash = createHash("sha256")
        .update(readFileSync(inRelease(line.slice(66))))
        .digest("hex");
      assert.equal(line.slice(0, 64), hash, line);
    }
    for (const name of ["SHA256SUMS", "stable.json"]) {
      const text = readFileSync(inRelease(`${name}.minisig`), "utf8");
      assert.ok(isSigned(releases.publicKey, readFileSync(inRelease(name)), text), name);
      assert.ok(!isSigned(releases.publicKey, Buffer.from("another content"), text), name);
    }
  });

  it("lists what is in it, and has nothing of the WhatsApp channel", async () => {
    const { bomFormat, components } = JSON.parse(readFileSync(inRelease("sbom.cdx.json"), "utf8")) as {
      bomFormat: string;
      components: { purl: string; licenses?: { expression: string }[] }[];
    };
    assert.equal(bomFormat, "CycloneDX");
    const purls = components.map(({ purl }) => purl.replace(/@[^@]*$/, ""));
    for (const purl of [
      "pkg:npm/%40earendil-works/pi-ai",
      "pkg:npm/unpdf",
      "pkg:npm/workerd",
      "pkg:cargo/tokio",
      "pkg:cargo/minisign-verify",
    ])
      assert.ok(purls.includes(purl), purl);
    for (const purl of ["pkg:npm/%40whiskeysockets/baileys", "pkg:npm/vitest", "pkg:cargo/proptest"])
      assert.ok(!purls.includes(purl), purl);
    assert.deepEqual(
      components.filter(({ licenses }) => licenses?.some(({ expression }) => /GPL/.test(expression) && !/OR|MIT/.test(expression))),
      [],
    );
    for (const archive of [releases.archive(), inRelease("gsv-0.1.0.tgz")]) {
      const { stdout } = await ran("tar", ["-tzf", archive], process.env, folder);
      assert.match(stdout, /channels\/discord\.js/);
      assert.doesNotMatch(stdout, /whatsapp/i);
    }
  });

  it("is installed by npm without a network, and chats", async () => {
    for (const name of ["gsv-0.1.0.tgz", `gsv-cli-${PLATFORM}-0.1.0.tgz`]) registry.add(await manifestOf(inRelease(name)), inRelease(name));
    const workerd = join(ROOT, "node_modules", "workerd", "package.json");
    const binary = `@cloudflare/workerd-${process.platform}-${process.arch === "x64" ? "64" : process.arch}`;
    for (const file of [workerd, createRequire(realpathSync(workerd)).resolve(`${binary}/package.json`)]) {
      const { manifest, file: packed } = await pack(file);
      registry.add(manifest, packed);
    }
    // Whatever is not on this machine has no way out.
    const offline = {
      ...env,
      npm_config_registry: registry.url,
      npm_config_https_proxy: "http://127.0.0.1:9",
      npm_config_proxy: "http://127.0.0.1:9",
      npm_config_noproxy: "127.0.0.1",
    };
    const installed = await ran(
      "npm",
      ["install", "--prefix", clean, "--no-audit", "--no-fund", "--fetch-retries=0", "gsv"],
      offline,
      clean,
    );
    assert.equal(installed.code, 0, installed.stderr);

    const port = String(await freePort());
    const up = await gsv("up", "--port", port);
    assert.equal(up.code, 0, up.stderr);
    const chat = await gsv("chat", "say hi");
    assert.match(chat.stdout, /^hi\b/, chat.stderr);
    assert.match((await gsv("version")).stdout, /^gsv 0\.1\.0$/m);
    const update = await gsv("update", "--rollback");
    assert.match(update.stderr, /installed by npm[\s\S]*packages with npm/, "[UP12]");
    assert.equal((await gsv("no-such-command")).code, 2, "the status is the program's");
    const down = await gsv("down");
    assert.equal(down.code, 0, down.stderr);
    assert.deepEqual(readdirSync(clean).includes("npm-cache"), true);
  });
});
