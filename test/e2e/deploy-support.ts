/** Shared parts of the tests of `gsv deploy`: a machine with the real wrangler and a fake account, and runtimes that look like other versions. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { FakeCloudflare } from "../fakes/fake-cloudflare.ts";
import { BIN, Machine, type Ran, ROOT, RUNTIME } from "./support.ts";
import { within } from "./waiting.ts";

export const WRANGLER = join(ROOT, "node_modules", "wrangler", "bin", "wrangler.js");

interface Deployable {
  version: string;
  state: string;
  gateway: Record<string, unknown>;
}

/** Copies of the runtime that differ in what is deployed. */
export class Runtimes {
  readonly #folders: string[] = [];

  get version(): string {
    return (JSON.parse(readFileSync(join(RUNTIME, "deploy.json"), "utf8")) as Deployable).version;
  }

  with(change: (deployable: Deployable, folder: string) => void): string {
    const folder = mkdtempSync(join(tmpdir(), "gsv runtime "));
    this.#folders.push(folder);
    for (const name of readdirSync(RUNTIME)) if (name !== "deploy.json") symlinkSync(join(RUNTIME, name), join(folder, name));
    const deployable = JSON.parse(readFileSync(join(RUNTIME, "deploy.json"), "utf8")) as Deployable;
    change(deployable, folder);
    writeFileSync(join(folder, "deploy.json"), JSON.stringify(deployable));
    return folder;
  }

  end(): void {
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }
}

export class Deployer {
  readonly machine = new Machine();
  readonly fake: FakeCloudflare;

  private constructor(fake: FakeCloudflare) {
    this.fake = fake;
  }
  static async start(): Promise<Deployer> {
    return new Deployer(await FakeCloudflare.start());
  }
  async end(): Promise<void> {
    await this.fake.end();
    await this.machine.end();
  }

  /** With this Node, which may be newer than the machine's. */
  env(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
    return {
      ...this.fake.env(),
      PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`,
      GSV_WRANGLER: WRANGLER,
      XDG_CONFIG_HOME: join(this.machine.folder, "xdg"),
      ...more,
    };
  }
  run(args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return this.machine.gsv(["deploy", ...args], { env: this.env(more) });
  }
  up(args: readonly string[] = [], more: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return this.run(["up", "--address", this.fake.gatewayUrl, "--wait", "20s", "--yes", ...args], more);
  }
  /** The first output of a command that goes on; then it is interrupted, as Ctrl-C does. */
  async firstOutput(args: readonly string[]): Promise<string> {
    const child = spawn(BIN, ["deploy", ...args], { env: this.machine.env(this.env()), detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    child.stdout.setEncoding("utf8");
    const ended = once(child, "close");
    try {
      const [output] = (await within(() => `no output:\n${text}`, once(child.stdout, "data"), 60_000)) as [string];
      return output;
    } finally {
      // The whole group, as the terminal does.
      if (child.pid !== undefined) process.kill(-child.pid, "SIGINT");
      await ended;
    }
  }
  /** The local config. */
  config(): string {
    return readFileSync(join(this.machine.configFolder, "config.toml"), "utf8");
  }
  async ok(ran: Promise<Ran>): Promise<Ran> {
    const { code, stdout, stderr } = await ran;
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    return { code, stdout, stderr };
  }
}

/** A program in wrangler's place that writes down how it was started, and then is wrangler. */
export function recordingWrangler(folder: string, into: string): string {
  const bin = join(folder, "recorder", "bin");
  mkdirSync(bin, { recursive: true });
  cpSync(join(dirname(WRANGLER), "..", "package.json"), join(folder, "recorder", "package.json"));
  writeFileSync(
    join(bin, "wrangler.js"),
    `const { appendFileSync, readFileSync, readdirSync } = require("node:fs");
     const args = process.argv.slice(2);
     const files = readdirSync(".").filter((name) => !/\\.(mjs|wasm|js)$/.test(name));
     const content = files.map((name) => readFileSync(name, "utf8"));
     appendFileSync(${JSON.stringify(into)}, JSON.stringify({ args, env: process.env, content }) + "\\n");
     const { status } = require("node:child_process").spawnSync(process.execPath, [${JSON.stringify(WRANGLER)}, ...args], { stdio: "inherit" });
     process.exitCode = status;`,
  );
  return join(bin, "wrangler.js");
}
