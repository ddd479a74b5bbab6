/** `gsv update` of a program that was unpacked from an archive of a release, with releases in a folder and on a server of this machine. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { seeded } from "../seeded.ts";
import { ran, Releases } from "./releases.ts";
import { inConstructor, runtimeVariant } from "./runtime-variant.ts";
import { withServices } from "./services.ts";
import { freePort, type Json, type Ran, until } from "./support.ts";

/** Each costs an update until the kill, and an answer afterwards. */
const KILLS = process.env["GSV_E2E_LONG"] === undefined ? 3 : 12;
const folder = mkdtempSync(join(tmpdir(), "gsv update "));
const releases = new Releases(join(folder, "releases"));
const install = join(folder, "apps", "gsv");
const program = join(install, "bin", "gsv");
const home = join(folder, "home");
const env: NodeJS.ProcessEnv = {
  PATH: process.env["PATH"],
  HOME: folder,
  SHELL: "/bin/sh",
  NO_COLOR: "1",
  GSV_HOME: home,
  GSV_CONFIG_DIR: join(folder, "config"),
  XDG_CACHE_HOME: join(folder, "cache"),
};
const gsv = (args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Ran> => ran(program, args, { ...env, ...more }, folder);
async function ok(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await gsv(args);
  assert.equal(code, 0, `gsv ${args.join(" ")}:\n${stdout}\n${stderr}`);
  return stdout;
}
const versionOf = (dir: string): string => (JSON.parse(readFileSync(join(dir, "release.json"), "utf8")) as { version: string }).version;
const running = (): string => (JSON.parse(readFileSync(join(home, "gateway", "state.json"), "utf8")) as { version: string }).version;
/** A runtime of a version, and the release with it. */
function release(version: string, at: number, patch?: (worker: string) => string): void {
  const runtime = runtimeVariant(join(folder, `runtime-${version}`), {
    version: `${version}+test`,
    ...(patch === undefined ? {} : { patch }),
  });
  releases.make({ version, runtime, at });
}
const in_ = (name: string): string => join(releases.folder, name);

describe("[UP8] [UP9] [UP10] [UP11] [UP13] [UP14] gsv update", () => {
  before(async () => {
    mkdirSync(join(folder, "apps"));
    releases.make({ at: 1000 });
    execFileSync("tar", ["-xzf", releases.archive(), "-C", join(folder, "apps")]);
    execFileSync("mv", [join(folder, "apps", `gsv-0.1.0-${process.platform}-${process.arch}`), install]);
    await ok("up", "--port", String(await freePort()));
    await ok("chat", "say before the update");
  });
  after(async () => {
    await gsv(["down"]);
    rmSync(folder, { recursive: true, force: true });
  });

  it("needs an address and a key, and says how they are set", async () => {
    const none = await gsv(["update"]);
    assert.equal(none.code, 1);
    assert.match(none.stderr, /no public place for releases[\s\S]*gsv local-config set update\.url/);
    await ok("local-config", "set", "update.url", releases.folder);
    assert.match((await gsv(["update"])).stderr, /whose releases to trust[\s\S]*gsv local-config set update\.key/);
    await ok("local-config", "set", "update.key", releases.publicKey);
    assert.match(await ok("update", "--check"), /This is version 0\.1\.0/);
    const same = JSON.parse(await ok("update", "--json")) as Json;
    assert.deepEqual([same["changed"], same["from"]], [false, "0.1.0"]);
  });

  it("refuses what is not signed, changed, shorter, of another channel, older or replayed; nothing is replaced", async () => {
    release("0.2.0", 2000);
    const good = new Map(["stable.json", "stable.json.minisig"].map((name) => [name, readFileSync(in_(name))]));
    const archive = releases.archive("0.2.0");
    const content = readFileSync(archive);
    const refused = async (what: string, says: RegExp, ...args: string[]): Promise<void> => {
      const { code, stderr } = await gsv(["update", ...args]);
      assert.equal(code, 1, `${what}: ${stderr}`);
      assert.match(stderr, says, what);
      assert.equal(versionOf(install), "0.1.0", what);
      assert.deepEqual(readdirSync(join(folder, "apps")).sort(), [".gsv.update-lock", "gsv"], what);
      for (const [name, bytes] of good) writeFileSync(in_(name), bytes);
      writeFileSync(archive, content);
    };
    writeFileSync(in_("stable.json"), good.get("stable.json")?.toString().replace("0.2.0", "0.2.1") ?? "");
    await refused("a changed manifest", /signature of stable\.json is not one of the keys/);
    const other = new Releases(join(folder, "others", "releases"));
    other.make({ at: 9000, isHollow: true });
    copyFileSync(join(other.folder, "stable.json.minisig"), in_("stable.json.minisig"));
    copyFileSync(join(other.folder, "stable.json"), in_("stable.json"));
    await refused("a manifest of someone else", /signature/);
    rmSync(in_("stable.json.minisig"));
    await refused("no signature", /stable\.json\.minisig/);
    copyFileSync(in_("stable.json"), in_("beta.json"));
    copyFileSync(in_("stable.json.minisig"), in_("beta.json.minisig"));
    await refused("a manifest of another channel", /manifest of the channel `stable`/, "--channel", "beta");
    const changed = Buffer.from(content);
    changed.writeUInt8(changed.readUInt8(changed.length - 1000) ^ 1, changed.length - 1000);
    writeFileSync(archive, changed);
    await refused("a changed byte of the archive", /its content is another/);
    writeFileSync(archive, content.subarray(0, content.length - 1));
    await refused("a shorter archive", /it is shorter/);
    writeFileSync(archive, Buffer.concat([content, Buffer.alloc(1)]));
    await refused("a longer archive", /it is larger/);
    releases.make({ at: 1500, isHollow: true });
    await refused("a replayed manifest", /older release manifest \(version 0\.1\.0\) than the last one that was seen/);
    assert.match(await ok("update", "--check"), /Version 0\.2\.0 is available/);
    writeFileSync(join(install, "notes.txt"), "mine");
    const mine = await gsv(["update"]);
    assert.match(mine.stderr, /holds more than GSV \(notes\.txt\)/);
    rmSync(join(install, "notes.txt"));
  });

  it("takes the release from a server, restarts the gateway, and keeps the previous program", async () => {
    const server = createServer((request, response) => {
      const file = in_((request.url ?? "").replace("/moved/", "/").slice(1));
      if (request.url?.startsWith("/moved/") === false) response.writeHead(302, { Location: `/moved${request.url}` }).end();
      else if (existsSync(file)) response.end(readFileSync(file));
      else response.writeHead(404).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const from = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
      const { code, stderr } = await gsv(["update"], { GSV_RELEASE_URL: from });
      assert.equal(code, 0, stderr);
    } finally {
      server.closeAllConnections();
      server.close();
    }
    assert.equal(versionOf(install), "0.2.0");
    assert.equal(versionOf(`${install}.previous`), "0.1.0");
    assert.equal(running(), "0.2.0+test");
    assert.match(await ok("session", "show", "agent:main:cli:dm:main"), /before the update/);
    assert.match(await ok("chat", "say after the update"), /^after the update/);
  });

  it("[UP3] a version with which the gateway does not start is taken back, with the state", async () => {
    release("0.3.0", 3000, inConstructor("Gateway", 'throw new Error("no such column: planet: SQLITE_ERROR")'));
    const { code, stderr } = await gsv(["update"]);
    assert.equal(code, 1);
    assert.match(stderr, /does not start with version 0\.3\.0\. Version 0\.2\.0 is back and runs/);
    assert.match(stderr, /no such column: planet/);
    assert.equal(versionOf(install), "0.2.0");
    assert.equal(running(), "0.2.0+test");
    assert.match(await ok("session", "show", "agent:main:cli:dm:main"), /after the update/);
  });

  it("[UP7] --rollback brings the previous program back, and with --with-state the state from before", async () => {
    // After the failed update, the program that is kept beside this one is the newer one.
    assert.match((await gsv(["update", "--rollback"])).stderr, /no earlier version/);
    release("0.4.0", 4000);
    await ok("update");
    await ok("chat", "say only in the newest");
    const back = JSON.parse(await ok("update", "--rollback", "--with-state", "--json")) as Json;
    assert.deepEqual([back["from"], back["to"]], ["0.4.0", "0.2.0"]);
    assert.equal(versionOf(install), "0.2.0");
    assert.equal(running(), "0.2.0+test");
    assert.doesNotMatch(await ok("session", "show", "agent:main:cli:dm:main"), /only in the newest/);
    assert.ok(existsSync(join(home, "gateway", "rolled-back-1", "do")), "what came since is kept");
    assert.match((await gsv(["update", "--rollback", "--with-state"])).stderr, /no earlier version|no copy of the state/);
  });

  it("[UP4] [UP11] killed at any instant, it leaves the old program or the new one, and the next one completes", async () => {
    const random = seeded(11);
    for (let kill = 0; kill < KILLS; kill++) {
      const child = spawn(program, ["update"], { env, cwd: folder, stdio: "ignore", detached: true });
      const ended = once(child, "close");
      // A step that shows from outside, then some more or less of what follows.
      const steps = [
        (): boolean => existsSync(join(folder, "apps", ".gsv.update")),
        (): boolean => existsSync(join(folder, "apps", ".gsv.update", "new")),
        (): boolean => existsSync(join(folder, "apps", ".gsv.update", "new", "bin", "gsv")),
        (): boolean => versionOf(install) === "0.4.0",
      ];
      const step = steps[Math.floor(random() * steps.length)] ?? (() => true);
      await until("the update gets there", () => step() || child.exitCode !== null);
      child.kill("SIGKILL");
      await ended;
      assert.match(versionOf(install), /^0\.[24]\.0$/);
      assert.equal((await gsv(["version"])).stdout.trim(), `gsv ${versionOf(install)}`);
      assert.match(await ok("chat", "say alive"), /^alive/);
      if (versionOf(install) === "0.4.0") break;
    }
    await ok("update");
    assert.equal(versionOf(install), "0.4.0");
    assert.equal(running(), "0.4.0+test");
    assert.match(await ok("session", "show", "agent:main:cli:dm:main"), /before the update/);
    assert.deepEqual(readdirSync(join(folder, "apps")).sort(), [".gsv.update-lock", "gsv", "gsv.previous"]);
  });

  it("[UP13] the node of a machine without a gateway, which runs as a service, is restarted with the new program", async () => {
    const desk = join(folder, "desk");
    mkdirSync(join(desk, "work"), { recursive: true });
    const { port } = JSON.parse(readFileSync(join(home, "gateway", "state.json"), "utf8")) as { port: number };
    const { token } = JSON.parse(await ok("token", "create", "--scope", "admin", "--json")) as { token: string };
    const there = {
      ...withServices({ folder: desk }),
      GSV_HOME: join(desk, "home"),
      GSV_CONFIG_DIR: join(desk, "config"),
      GSV_URL: `ws://127.0.0.1:${port}/ws`,
      GSV_TOKEN: token,
    };
    const onDesk = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await gsv(args, there);
      assert.equal(code, 0, `gsv ${args.join(" ")}:\n${stdout}\n${stderr}`);
      return stdout;
    };
    const pid = async (): Promise<number> => (JSON.parse(await onDesk("node", "status", "--id", "desk", "--json")) as { pid: number }).pid;
    await onDesk("local-config", "set", "update.key", releases.publicKey);
    await onDesk("node", "install", "--id", "desk", "--workspace", join(desk, "work"));
    try {
      const before = await pid();
      release("0.5.0", 5000);
      const { to, restarted } = JSON.parse(await onDesk("update", "--from", releases.folder, "--json")) as Json;
      assert.deepEqual([to, restarted], ["0.5.0", { gateway: false, nodes: ["desk"] }]);
      const after = await pid();
      assert.notEqual(after, before);
      assert.equal(existsSync(join(desk, "home", "gateway", "state.json")), false);
      await until("the machine is connected", async () => /desk/.test(await ok("nodes", "list")));
    } finally {
      await onDesk("node", "uninstall", "--id", "desk");
    }
  });
});
