/** A home moves between gateways by `gsv deploy export` and `gsv deploy import`: all of it, also after kills, and never over another home. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { after, before, describe, it } from "node:test";
import { BIN, Machine, type Ran, until } from "./support.ts";

const ENV = { GSV_BACKUP_PASSPHRASE: "five words for a move" };
const CANARY = "sk-canary-of-the-move-5b1e77";
const MAIN = "agent:main:main";
const SESSIONS = [MAIN, "agent:main:cli:dm:long", "agent:work:cli:dm:other"];
const BIG_FILES = 40;

const gsv = (machine: Machine, ...args: string[]): Promise<Ran> => machine.gsv(args, { env: ENV });
async function done(machine: Machine, ...args: string[]): Promise<Ran> {
  const ran = await gsv(machine, ...args);
  assert.equal(ran.code, 0, `gsv ${args.join(" ")}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}
/** The files of a bucket by their paths; each gateway has its own copies of its audit. */
function files(machine: Machine): Map<string, Buffer> {
  const root = join(machine.home, "workspace");
  const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = found.map((entry) => join(entry.parentPath, entry.name)).filter((path) => !relative(root, path).startsWith("audit/"));
  return new Map(paths.sort().map((path) => [relative(root, path), readFileSync(path)]));
}
function assertSameFiles(left: Machine, right: Machine): void {
  const [one, other] = [files(left), files(right)];
  assert.deepEqual([...other.keys()], [...one.keys()]);
  for (const [path, bytes] of one) assert.ok(bytes.equals(other.get(path) ?? Buffer.alloc(0)), path);
}
async function histories(machine: Machine): Promise<unknown[]> {
  const client = await machine.client();
  const all = await Promise.all(SESSIONS.map((sessionKey) => client.call("session.preview", { sessionKey, limit: 100 })));
  client.close();
  return all;
}
const bytesOf = (seed: number, length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 7) * seed) & 255));

async function furnish(machine: Machine): Promise<void> {
  await machine.up();
  await machine.ok("agent", "new", "work");
  assert.equal((await machine.gsv(["config", "set", "apiKeys.openai", "-"], { input: CANARY })).code, 0);
  await machine.ok("config", "set", "userTimezone", "Europe/Amsterdam");
  const picture = join(machine.folder, "picture.png");
  writeFileSync(picture, Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), bytesOf(3, 2000)]));
  await machine.ok("chat", "--session", MAIN, "--attach", picture, "say a picture");
  for (const session of SESSIONS)
    for (const word of ["first", "second", "third"]) await machine.ok("chat", "--session", session, `say ${word} of ${session}`);
  await machine.ok("session", "compact", SESSIONS[1] ?? "", "--keep", "2");
  await machine.ok("session", "reset", SESSIONS[2] ?? "");
  await machine.ok("chat", "--session", SESSIONS[2] ?? "", "say after the reset");
  const note = join(machine.folder, "note.md");
  for (const text of ["one", "two"]) {
    writeFileSync(note, text);
    await machine.ok("workspace", "put", "notes.md", note);
  }
  await machine.ok("memory", "add", "The cat is called Minoes.");
  await machine.ok("cron", "add", "say good morning", "--cron", "0 7 * * *");
  const folder = join(machine.home, "workspace", "agents", "main", "data");
  mkdirSync(folder, { recursive: true });
  for (let at = 0; at < BIG_FILES; at++) writeFileSync(join(folder, `part-${String(at).padStart(2, "0")}.bin`), bytesOf(at, 450_000));
  writeFileSync(join(folder, "zero.bin"), "");
}

describe("a home that moves", () => {
  const [source, target, third] = [new Machine(), new Machine(), new Machine()];
  const file = join(source.folder, "home.gsv");
  let told: unknown[];
  before(async () => {
    await furnish(source);
    told = await histories(source);
  });
  after(async () => {
    for (const machine of [source, target, third]) await machine.end();
  });

  it("[MV4] a gateway that is not stopped is not exported", async () => {
    const ran = await gsv(source, "deploy", "export", file);
    assert.deepEqual([ran.code, /is not stopped[\s\S]*gsv stop --all/.test(ran.stderr)], [1, true], ran.stderr);
    assert.equal(existsSync(file), false);
  });

  it("[MV15] an export that is killed leaves no file, and the next one is whole", async () => {
    await source.ok("stop", "--all");
    const scratch = join(source.folder, "scratch");
    mkdirSync(scratch);
    const child = spawn(BIN, ["deploy", "export", file], { env: source.env({ ...ENV, TMPDIR: scratch }), stdio: "ignore" });
    await until("some pages are read", () =>
      readdirSync(scratch).some((name) => existsSync(join(scratch, name, "page-00000003")) || child.exitCode !== null),
    );
    const ended = once(child, "close");
    child.kill("SIGKILL");
    assert.deepEqual(await ended, [null, "SIGKILL"]);
    assert.equal(existsSync(file), false);
    const ran = await machineWith(source, scratch, "deploy", "export", file);
    assert.deepEqual(readdirSync(scratch), [], "also what the killed one left is removed");
    assert.match(ran.stderr, /stays stopped/);
    assert.match(ran.stderr, /its admin token in GSV_TOKEN: `gsv --url URL deploy import /);
    assert.match((await done(source, "backup", "verify", file)).stdout, /is sound/);
    const again = await gsv(source, "deploy", "export", file);
    assert.deepEqual([again.code, /already exists/.test(again.stderr)], [1, true], again.stderr);
    const folder = join(source.folder, "exports");
    mkdirSync(folder);
    const named = (await done(source, "deploy", "export", folder)).stdout.trim();
    assert.match(named, /exports\/gsv-home-\d{4}-\d\d-\d\d\.gsv$/);
    assert.ok(existsSync(named));
  });

  it("[MV8] [MV10] [MV13] arrives whole after a kill of the command and of the gateway", async () => {
    await target.up();
    const first = join(target.home, "workspace", "agents", "main", "data", "part-00.bin");
    const child = spawn(BIN, ["deploy", "import", file], { env: target.env(ENV), stdio: "ignore" });
    await until("the first file is there", () => existsSync(first) || child.exitCode !== null);
    const ended = once(child, "close");
    child.kill("SIGKILL");
    assert.deepEqual(await ended, [null, "SIGKILL"], "it was killed before its end");
    const refused = await target.gsv(["chat", "say hi"]);
    assert.deepEqual([refused.code, /is being imported/.test(refused.stderr)], [1, true], refused.stderr);

    const going = gsv(target, "deploy", "import", file);
    const later = join(target.home, "workspace", "agents", "main", "data", `part-${BIG_FILES / 2}.bin`);
    await until("half of the files are there", () => existsSync(later));
    await target.killWorkerd();
    assert.notEqual((await going).code, 0, "the gateway was killed before the end");

    const ran = await done(target, "deploy", "import", file);
    assert.match(ran.stderr, /goes on with page \d+ of \d+/);
    assert.match(ran.stderr, /must enter again[^\n]*apiKeys\.openai/);
    assert.match(ran.stderr, /stays stopped. Do not resume it/);
    assertSameFiles(source, target);
    assert.ok([...files(target).keys()].some((path) => path.startsWith("media/")));
    assert.ok([...files(target).keys()].some((path) => path.startsWith("versions/main/notes.md/@")));
    assert.ok([...files(target).keys()].some((path) => /^agents\/main\/sessions\/.*-part\d+\.jsonl\.gz$/.test(path)));
    assert.deepEqual(await histories(target), told);
  });

  it("[MV1] [MV11] the agent answers there and remembers", async () => {
    assert.match(await target.ok("chat", "--session", MAIN, "say still here"), /still here/);
    assert.match(await target.ok("memory", "search", "cat"), /Minoes/);
    assert.match(await target.ok("cron", "list"), /good morning/);
    assert.match(await target.ok("agent", "list"), /work/);
    assert.match(await target.ok("workspace", "log", "notes.md"), /\d/);
    assert.match(await target.ok("config", "get", "userTimezone"), /Europe\/Amsterdam/);
    assert.match(await target.ok("search", "second"), /second/);
  });

  it("[MV8] the same import again changes nothing", async () => {
    assert.match((await done(target, "deploy", "import", file)).stderr, /imported before/);
  });

  it("[MV14] the source stays stopped until it is resumed by one who knows of the export", async () => {
    assert.match(await source.ok("status"), /stopped since[\s\S]*Its home was exported at[\s\S]*`gsv resume --exported`/);
    const refused = await source.gsv(["resume"]);
    assert.deepEqual([refused.code, /home of this gateway was exported/.test(refused.stderr)], [1, true], refused.stderr);
    assert.match(await source.ok("status"), /stopped since/);
  });

  it("[MV13] exported there and imported once more, it is byte-identical", async () => {
    const second = join(target.folder, "second.gsv");
    const before = await histories(target);
    await target.ok("stop", "--all");
    await done(target, "deploy", "export", second);
    await third.up();
    await done(third, "deploy", "import", second);
    assertSameFiles(target, third);
    assert.deepEqual(await histories(third), before);
  });
});

async function machineWith(machine: Machine, scratch: string, ...args: string[]): Promise<Ran> {
  const ran = await machine.gsv(args, { env: { ...ENV, TMPDIR: scratch } });
  assert.equal(ran.code, 0, ran.stderr);
  return ran;
}

describe("a move that is refused", () => {
  const [source, target] = [new Machine(), new Machine()];
  const file = join(source.folder, "home.gsv");
  before(async () => {
    await source.up();
    assert.equal((await source.gsv(["config", "set", "apiKeys.openai", "-"], { input: CANARY })).code, 0);
    await source.ok("chat", "say hello");
    await source.ok("stop", "--all");
    await done(source, "deploy", "export", file);
    await target.up();
  });
  after(async () => {
    await source.end();
    await target.end();
  });

  it("[MV3] [MV15] the file has no plain text, and no export of it has the secret", async () => {
    assert.equal(readFileSync(file).includes(CANARY), false);
    const client = await source.client();
    for (let cursor: unknown; ; ) {
      const page = await client.call("move.read", cursor === undefined ? {} : { cursor });
      assert.doesNotMatch(JSON.stringify(page), new RegExp(`${CANARY}|gsv-sealed`));
      cursor = page["next"];
      if (cursor === undefined) break;
    }
    client.close();
  });

  it("[MV15] with a wrong passphrase, a damaged file, and a backup in its place", async () => {
    const wrong = await target.gsv(["deploy", "import", file], { env: { GSV_BACKUP_PASSPHRASE: "another passphrase" } });
    assert.deepEqual([wrong.code, /passphrase does not open/.test(wrong.stderr)], [3, true], wrong.stderr);
    const bad = join(target.folder, "bad.gsv");
    const bytes = readFileSync(file);
    bytes[bytes.length - 40] = (bytes[bytes.length - 40] ?? 0) ^ 1;
    writeFileSync(bad, bytes);
    const damaged = await gsv(target, "deploy", "import", bad);
    assert.deepEqual([damaged.code, /is damaged/.test(damaged.stderr)], [1, true], damaged.stderr);
    const backup = join(source.folder, "a.backup");
    await done(source, "backup", backup);
    const other = await gsv(target, "deploy", "import", backup);
    assert.deepEqual([other.code, /is a backup of a state folder/.test(other.stderr)], [2, true], other.stderr);
    const restored = await gsv(target, "restore", file, "--into", join(target.folder, "never"));
    assert.deepEqual([restored.code, /is an export of a home/.test(restored.stderr)], [2, true], restored.stderr);
    assert.equal(existsSync(join(target.folder, "never")), false);
  });

  it("[MV16] with the token of a client", async () => {
    const { token } = JSON.parse(await source.ok("token", "create", "--scope", "client", "--json")) as { token: string };
    const ran = await source.gsv(["deploy", "export", join(source.folder, "no.gsv")], { env: { ...ENV, GSV_TOKEN: token } });
    assert.equal(ran.code, 3, ran.stderr);
  });

  it("[MV17] a key of the target is not sent to an address of the export: it is removed, and named", async () => {
    const [other, fresh] = [new Machine(), new Machine()];
    try {
      await other.up();
      await other.ok("config", "set", "transcription.baseUrl", "http://127.0.0.1:9/v1");
      await other.ok("stop", "--all");
      const export_ = join(other.folder, "other.gsv");
      await done(other, "deploy", "export", export_);
      await fresh.up();
      for (const name of ["openai", "anthropic"])
        assert.equal((await fresh.gsv(["config", "set", `apiKeys.${name}`, "-"], { input: `sk-of-the-target-${name}` })).code, 0);
      const ran = await done(fresh, "deploy", "import", export_);
      assert.match(ran.stderr, /were removed[^\n]*apiKeys\.openai\. Look at the addresses/);
      assert.doesNotMatch(ran.stderr, /apiKeys\.anthropic/);
      assert.doesNotMatch(await fresh.ok("config", "get", "apiKeys.openai"), /redacted/);
      assert.match(await fresh.ok("config", "get", "apiKeys.anthropic"), /redacted/);
      const again = await done(fresh, "deploy", "import", export_, "--json");
      assert.deepEqual((JSON.parse(again.stdout) as { removedSecrets: unknown }).removedSecrets, ["apiKeys.openai"]);
    } finally {
      await other.end();
      await fresh.end();
    }
  });

  it("[MV6] [MV12] into a gateway that was used; a fresh one can be given back", async () => {
    assert.match((await done(target, "deploy", "import", "--cancel")).stderr, /No import was begun/);
    await target.ok("chat", "say mine");
    const used = await gsv(target, "deploy", "import", file);
    assert.deepEqual([used.code, /has been used: it has/.test(used.stderr)], [1, true], used.stderr);
    assert.match(await target.ok("chat", "say still mine"), /still mine/);
  });
});
