/** Releases of the built program for tests: made by scripts/release.ts in a temporary folder, also under other versions, and signed with a key of the test. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newKey, publicKey, secretKeyText } from "../../scripts/lib/release/minisign.ts";
import { BIN, type Ran, ROOT, RUNTIME } from "./support.ts";
import { within } from "./waiting.ts";

const BUILT = (JSON.parse(readFileSync(join(ROOT, "gateway", "package.json"), "utf8")) as { version: string }).version;
const PROGRAM = process.env["GSV_BIN"] === undefined ? BIN : process.env["GSV_BIN"];

export interface Wanted {
  readonly version?: string;
  /** A runtime of another version. */
  readonly runtime?: string;
  readonly channel?: "stable" | "beta";
  /** Seconds since the epoch. */
  readonly at?: number;
  readonly oldest?: string;
  /** Its program and its workerd are empty: only what stands beside the archive is looked at. */
  readonly isHollow?: boolean;
}

export class Releases {
  readonly folder: string;
  readonly #keyFile: string;
  readonly publicKey: string;
  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    const key = newKey();
    this.#keyFile = join(folder, "..", "release.key");
    this.publicKey = publicKey(key);
    writeFileSync(this.#keyFile, secretKeyText(key), { mode: 0o600 });
  }
  make({
    version = BUILT,
    runtime = RUNTIME,
    channel = "stable",
    at = 1_800_000_000,
    oldest = BUILT,
    isHollow = false,
  }: Wanted = {}): void {
    const program = join(this.folder, "..", isHollow ? "gsv-hollow" : `gsv-${version}`);
    if (isHollow) writeFileSync(program, "", { mode: 0o755 });
    if (!existsSync(program)) {
      writeFileSync(program, programOf(version), { mode: 0o755 });
      // As the program of a release is: without names for a debugger, which are half of it to pack, hash and unpack. Where there is no
      // `strip`, they stay. On macOS it would break the signature.
      if (process.platform === "linux") spawnSync("strip", [program]);
    }
    const script = join(ROOT, "scripts", "release.ts");
    execFileSync(process.execPath, [script, "--key", this.#keyFile, "--out", this.folder, "--channel", channel, "--oldest", oldest], {
      cwd: ROOT,
      stdio: "pipe",
      env: {
        ...process.env,
        FROM: ROOT,
        GSV_RUNTIME_DIR: isHollow ? this.#hollow() : runtime,
        GSV_RELEASE_BINARY: program,
        GSV_RELEASE_VERSION: version,
        GSV_RELEASE_FAST: "1",
        SOURCE_DATE_EPOCH: String(at),
      },
    });
  }
  /** A runtime of the same files, without workerd's content. */
  #hollow(): string {
    const folder = join(this.folder, "..", "runtime-hollow");
    if (existsSync(folder)) return folder;
    mkdirSync(folder);
    for (const name of readdirSync(RUNTIME)) if (name !== "workerd") symlinkSync(join(RUNTIME, name), join(folder, name));
    writeFileSync(join(folder, "workerd"), "", { mode: 0o755 });
    return folder;
  }
  archive(version = BUILT): string {
    return join(this.folder, `gsv-${version}-${process.platform}-${process.arch}.tar.gz`);
  }
}

/** The built program under another version of the same length: it says the version in one place. */
function programOf(version: string): Buffer {
  const program = readFileSync(PROGRAM);
  const own = Buffer.from(`gsv ${BUILT}`);
  const at = program.indexOf(own);
  assert.equal(version.length, BUILT.length);
  assert.ok(at > 0 && program.indexOf(own, at + 1) === -1, "the program says its version in one place");
  program.write(`gsv ${version}`, at);
  return program;
}

/** Runs a program of an installation. */
export async function ran(program: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Ran> {
  const child = spawn(program, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = within(() => `${program} ${args.join(" ")} did not end:\n${stdout}\n${stderr}`, once(child, "close"), 180_000);
  const [code] = (await ended.catch((error: unknown) => {
    child.kill("SIGKILL");
    throw error;
  })) as [number | null];
  return { code: code ?? -1, stdout, stderr };
}
