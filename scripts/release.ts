/**
 * Makes a release in dist/release (gateway rules RE1 and RE2); `scripts/release --help` has the options. Never uses the network and publishes
 * nothing. The secret key is read, and written nowhere.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  createReadStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  isSigned,
  KeyProblem,
  newKey,
  parseSecretKey,
  publicKey,
  type SecretKey,
  secretKeyText,
  signature,
} from "./lib/release/minisign.ts";
import {
  archiveName,
  launcherPackage,
  platformPackage,
  type ReleasedFile,
  releaseFile,
  releaseManifest,
  type RuntimeManifest,
  runtimeFiles,
  shippedManifest,
} from "./lib/release/packages.ts";
import { type Platform, PLATFORMS, platformOf } from "./lib/release/platforms.ts";
import { bom, type CargoMetadata, cargoComponents, type Lock, npmComponents } from "./lib/release/sbom.ts";
import { type ArchiveFile, writeTarball } from "./lib/release/tarball.ts";
import { ROOT } from "./lib/root.ts";

class ReleaseProblem extends Error {}

const { values } = parseArgs({
  options: {
    key: { type: "string" },
    unsigned: { type: "boolean" },
    channel: { type: "string", default: "stable" },
    out: { type: "string" },
    oldest: { type: "string" },
    "new-key": { type: "string" },
    "print-public-key": { type: "boolean" },
  },
});
/** Paths are meant from where the command was typed. */
const path = (given: string): string => resolve(process.env["FROM"] ?? process.cwd(), given);
const OUT = values.out === undefined ? join(ROOT, "dist", "release") : path(values.out);
const RUNTIME = process.env["GSV_RUNTIME_DIR"] ?? join(ROOT, "dist", "runtime");
/** Workspaces whose packages are in what is shipped. */
const SHIPPED = ["gateway", "protocol", "channels/kit", "channels/discord", "channels/example"];
/** Tests pack without compression, which takes most of the time. */
const LEVEL = process.env["GSV_RELEASE_FAST"] === undefined ? 9 : 0;
/** One time for all files, so that a release can be made again with the same bytes. */
const SECONDS = Number(process.env["SOURCE_DATE_EPOCH"] ?? Math.floor(Date.now() / 1000));

const json = <T>(...names: string[]): T => JSON.parse(readFileSync(join(ROOT, ...names), "utf8")) as T;

function secretKey(): SecretKey | undefined {
  const file = values.key ?? process.env["GSV_RELEASE_KEY_FILE"];
  const text = file === undefined ? process.env["GSV_RELEASE_SECRET_KEY"] : readFileSync(path(file), "utf8");
  if (values.unsigned === true) return undefined;
  if (text === undefined || text === "")
    throw new ReleaseProblem(
      "A release is signed: give the key with --key FILE, or make none with --unsigned. A new key: ./scripts/release --new-key FILE",
    );
  return parseSecretKey(text);
}

function makeKey(file: string): void {
  const key = newKey();
  if (file.startsWith(`${ROOT}/`)) throw new ReleaseProblem("A secret key does not belong into the repository: choose a file elsewhere.");
  writeFileSync(file, secretKeyText(key), { mode: 0o600, flag: "wx" });
  writeFileSync(`${file}.pub`, `untrusted comment: minisign public key of GSV's releases\n${publicKey(key)}\n`, { flag: "wx" });
  console.error(`${file} is the secret key: keep it off this repository, with a copy in a safe place. ${file}.pub is public.`);
}

/** The version of the program and of the gateway, which must be one. */
function versionOf(): string {
  const cargo = /^\[workspace\.package\]\nversion = "([^"]+)"/m.exec(readFileSync(join(ROOT, "Cargo.toml"), "utf8"))?.[1];
  const { version } = json<{ version: string }>("gateway", "package.json");
  if (cargo !== version) throw new ReleaseProblem(`Cargo.toml has version ${cargo} and gateway/package.json ${version}: make them equal.`);
  return process.env["GSV_RELEASE_VERSION"] ?? version;
}

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

function sbom(version: string, { target }: Platform): string {
  const options = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", target];
  const metadata = execFileSync("cargo", options, { cwd: ROOT, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
  const components = [
    ...npmComponents(json<Lock>("package-lock.json"), [...SHIPPED, "node_modules/workerd"]),
    ...cargoComponents(JSON.parse(metadata.toString()) as CargoMetadata, "gsv"),
  ];
  return `${JSON.stringify(bom(version, SECONDS, components), null, 2)}\n`;
}

/** Writes the files that are made, and lists them with those that are copied. */
class Stage {
  readonly #dir: string;
  readonly files: ArchiveFile[] = [];
  constructor(dir: string) {
    this.#dir = dir;
  }
  text(name: string, content: string, isProgram = false): void {
    const file = join(this.#dir, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    this.copy(name, file, isProgram);
  }
  copy(name: string, from: string, isProgram = false): void {
    this.files.push({ path: name, from: realpathSync(from), isProgram });
  }
}

function runtime(stage: Stage, manifest: RuntimeManifest): void {
  stage.text("runtime/manifest.json", `${JSON.stringify(shippedManifest(manifest), null, 2)}\n`);
  for (const name of runtimeFiles(manifest)) stage.copy(`runtime/${name}`, join(RUNTIME, name));
}
function legal(stage: Stage): void {
  for (const name of ["LICENSE", "NOTICE"]) stage.copy(name, join(ROOT, name));
}

async function release(): Promise<void> {
  const key = secretKey();
  const version = versionOf();
  const platform = platformOf(process.platform, process.arch);
  if (platform === undefined)
    throw new ReleaseProblem(`Releases have no platform ${process.platform}-${process.arch}: docs/release.md lists them.`);
  if (values.channel !== "stable" && values.channel !== "beta") throw new ReleaseProblem("The channel is `stable` or `beta`.");
  const program = process.env["GSV_RELEASE_BINARY"] ?? join(ROOT, "target", "release", "gsv");
  const manifest = JSON.parse(readFileSync(join(RUNTIME, "manifest.json"), "utf8")) as RuntimeManifest;
  const workerd = json<{ version: string }>("node_modules", "workerd", "package.json").version;
  mkdirSync(OUT, { recursive: true });
  const scratch = mkdtempSync(join(OUT, ".making-"));
  try {
    const bill = sbom(version, platform);
    const archive = new Stage(join(scratch, "archive"));
    archive.copy("bin/gsv", program, true);
    runtime(archive, manifest);
    archive.copy("runtime/workerd", join(RUNTIME, "workerd"), true);
    archive.text("release.json", releaseFile(version, platform.name, "archive"));
    archive.text("sbom.cdx.json", bill);
    legal(archive);
    const name = archiveName(version, platform.name);
    const top = name.replace(/\.tar\.gz$/, "");
    await made(
      scratch,
      name,
      archive.files.map((file) => ({ ...file, path: `${top}/${file.path}` })),
    );

    const own = new Stage(join(scratch, "cli"));
    own.text("package.json", `${JSON.stringify(platformPackage(version, platform), null, 2)}\n`);
    own.copy("bin/gsv", program, true);
    own.text("release.json", releaseFile(version, platform.name, "npm"));
    legal(own);
    await npmPackage(scratch, `gsv-cli-${platform.name}-${version}.tgz`, own);

    const archives = readdirSync(OUT).filter((file) => file.startsWith(`gsv-${version}-`) && file.endsWith(".tar.gz"));
    const built = PLATFORMS.filter(({ name: known }) => archives.includes(archiveName(version, known)));
    const launcher = new Stage(join(scratch, "gsv"));
    launcher.text("package.json", `${JSON.stringify(launcherPackage(version, workerd, built), null, 2)}\n`);
    launcher.copy("bin/gsv.cjs", join(ROOT, "scripts", "lib", "release", "launcher.cjs"), true);
    runtime(launcher, manifest);
    launcher.text("sbom.cdx.json", bill);
    legal(launcher);
    await npmPackage(scratch, `gsv-${version}.tgz`, launcher);

    writeFileSync(join(OUT, "sbom.cdx.json"), bill);
    await describe(key, version, built);
    // A program that trusts a key was built for it.
    if (key !== undefined) console.error(`Signed with the key ${publicKey(key)}.`);
    console.error(`The release ${version} (${built.map(({ name: one }) => one).join(", ")}) is in ${OUT}.`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function made(scratch: string, name: string, files: readonly ArchiveFile[]): Promise<void> {
  await writeTarball(join(scratch, name), files, SECONDS, LEVEL);
  renameSync(join(scratch, name), join(OUT, name));
}
const npmPackage = (scratch: string, name: string, stage: Stage): Promise<void> =>
  made(
    scratch,
    name,
    stage.files.map((file) => ({ ...file, path: `package/${file.path}` })),
  );

/** The manifest, the sums, and the signatures of both. */
async function describe(key: SecretKey | undefined, version: string, built: readonly Platform[]): Promise<void> {
  const files: ReleasedFile[] = [];
  for (const { name: platform } of built) {
    const name = archiveName(version, platform);
    files.push({ platform, name, sizeBytes: statSync(join(OUT, name)).size, sha256: await sha256(join(OUT, name)) });
  }
  const oldest = values.oldest ?? version.replace(/\.\d+(?:-.*)?$/, ".0");
  const manifest = `${values.channel}.json`;
  writeFileSync(join(OUT, manifest), releaseManifest(values.channel, version, SECONDS * 1000, oldest, files));
  const isListed = (name: string): boolean =>
    (name.includes(version) && /\.(?:tar\.gz|tgz)$/.test(name)) || name === "sbom.cdx.json" || name === manifest;
  const sums = [];
  for (const name of readdirSync(OUT).filter(isListed).sort()) sums.push(`${await sha256(join(OUT, name))}  ${name}\n`);
  writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
  for (const name of [manifest, "SHA256SUMS"]) {
    const content = readFileSync(join(OUT, name));
    const file = join(OUT, `${name}.minisig`);
    rmSync(file, { force: true });
    if (key === undefined) continue;
    const text = signature(key, content, `GSV ${version} ${values.channel} ${name}`);
    if (!isSigned(publicKey(key), content, text)) throw new ReleaseProblem(`the signature of ${name} is wrong, which is a bug`);
    writeFileSync(file, text);
  }
}

try {
  const newKeyFile = values["new-key"];
  if (newKeyFile !== undefined) makeKey(path(newKeyFile));
  else if (values["print-public-key"] === true) {
    const key = secretKey();
    if (key !== undefined) console.log(publicKey(key));
  } else await release();
} catch (error) {
  console.error(error instanceof ReleaseProblem || error instanceof KeyProblem ? error.message : error);
  process.exitCode = 1;
}
