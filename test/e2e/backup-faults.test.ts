/** Backups that are damaged, and restores and backups that fail or are killed: nothing half done is ever in place. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { BIN, Machine, type Ran, transcript } from "./support.ts";

const ENV = { GSV_BACKUP_PASSPHRASE: "five words for a backup" };
const gsv = (machine: Machine, ...args: string[]): Promise<Ran> => machine.gsv(args, { env: ENV });
async function done(machine: Machine, ...args: string[]): Promise<Ran> {
  const ran = await gsv(machine, ...args);
  assert.equal(ran.code, 0, `gsv ${args.join(" ")}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}
const HEADER_BYTES = 80;
const canMount = spawnSync("unshare", ["--mount", "true"]).status === 0;
const canTrace = spawnSync("strace", ["-f", "-e", "inject=getpid:signal=SIGKILL:when=99", "true"]).status === 0;

/** System calls with a path, and the sync before the switch. */
const WATCHED = "%file,sync";
const CHANGES = /^(rename|unlink|rmdir|sync)/;

const machine = new Machine();
const file = join(machine.folder, "gsv.backup");
const mark = (home: string): string => join(home, "workspace", "agents", "main", "mark.md");

before(async () => {
  await machine.up();
  await machine.ok("chat", "say first");
  writeFileSync(mark(machine.home), "of the backup");
  await done(machine, "backup", file);
  writeFileSync(mark(machine.home), "later");
});
after(() => machine.end());

describe("a damaged backup", () => {
  const bad = join(machine.folder, "bad.backup");
  const target = join(machine.folder, "never");
  async function refused(code: number, sentence: RegExp): Promise<void> {
    const verified = await gsv(machine, "backup", "verify", bad);
    assert.deepEqual([verified.code, sentence.test(verified.stderr)], [code, true], verified.stderr);
    const restored = await gsv(machine, "restore", bad, "--into", target);
    assert.deepEqual([restored.code, sentence.test(restored.stderr)], [code, true], restored.stderr);
    assert.equal(existsSync(target), false);
    assert.deepEqual(
      readdirSync(machine.folder).filter((name) => name.includes("restore")),
      [],
      "nothing is left beside it",
    );
  }

  it("[BK6] [BK7] [BK10] one changed byte anywhere is found, and nothing is restored", async () => {
    const whole = readFileSync(file);
    assert.ok(whole.length > 20 * HEADER_BYTES);
    const samples = Array.from({ length: 10 }, (_, at) => HEADER_BYTES + Math.floor(((whole.length - HEADER_BYTES - 1) * at) / 9));
    for (const at of [0, 9, 13, 17, 25, 41, 60, ...samples]) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      writeFileSync(bad, bytes);
      const verified = await gsv(machine, "backup", "verify", bad);
      assert.ok(verified.code !== 0, `byte ${at}: ${verified.stdout}`);
      assert.match(verified.stderr, /is damaged|is not a backup|passphrase does not open|not whole/, `byte ${at}`);
    }
    await refused(1, /bad\.backup is damaged/);
  });

  it("[BK7] a file that is cut off, a wrong passphrase, a newer version and another file have sentences of their own", async () => {
    copyFileSync(file, bad);
    truncateSync(bad, readFileSync(file).length - 1_000);
    await refused(1, /bad\.backup is not whole: it has \d+ of \d+ bytes/);
    const bytes = readFileSync(file);
    bytes[10] = 2;
    writeFileSync(bad, bytes);
    await refused(1, /made by a newer version of GSV[\s\S]*Update GSV/);
    writeFileSync(bad, "PK no backup");
    await refused(2, /is not a backup of GSV/);
    const wrong = await machine.gsv(["backup", "verify", file], { env: { GSV_BACKUP_PASSPHRASE: "another passphrase" } });
    assert.deepEqual([wrong.code, /passphrase does not open/.test(wrong.stderr)], [3, true], wrong.stderr);
  });
});

describe("a disk that is full", { skip: canMount ? false : "no disk can be mounted here" }, () => {
  const disk = join(machine.folder, "disk");
  before(() => {
    mkdirSync(disk);
    const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=16k,mode=0700", "none", disk], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
  after(() => spawnSync("umount", ["--lazy", disk]));

  it("[BK8] [BK9] ends a backup and a restore with a plain sentence, and nothing is left", async () => {
    writeFileSync(join(disk, "filler"), Buffer.alloc(12 * 1024));
    const backup = await gsv(machine, "backup", join(disk, "gsv.backup"));
    assert.deepEqual([backup.code, /The disk is full[\s\S]*Free some space/.test(backup.stderr)], [1, true], backup.stderr);
    assert.deepEqual(readdirSync(disk), ["filler"]);
    assert.deepEqual(
      readdirSync(join(machine.home, "gateway")).filter((name) => name.startsWith("backup-")),
      [],
    );
    rmSync(join(disk, "filler"));
    const restore = await gsv(machine, "restore", file, "--into", join(disk, "home"));
    assert.deepEqual([restore.code, /The disk is too full: the restored state has/.test(restore.stderr)], [1, true], restore.stderr);
    assert.deepEqual(readdirSync(disk), []);
    assert.match(await machine.ok("chat", "say still here"), /still here/);
  });
});

describe("a restore that is killed", { skip: canTrace ? false : "no system call can be traced here" }, () => {
  const other = new Machine();
  after(() => other.end());

  /** Runs `gsv restore` and kills it as it enters a system call for the nth time; strace counts each call in each thread. */
  const killedAt = (call: string, nth: number, log: string): boolean => {
    const traced = ["-e", `trace=${WATCHED}`, "-e", `inject=${call}:signal=SIGKILL:when=${nth}`];
    const { signal, status } = spawnSync("strace", ["-f", "-qq", "-o", log, ...traced, BIN, "restore", file, "--replace"], {
      env: other.env(ENV),
      cwd: other.folder,
      timeout: 60_000,
    });
    if (status === 0) return false;
    assert.ok(signal === "SIGKILL" || readFileSync(log, "utf8").includes("killed by SIGKILL"), `${call} ${nth}: ${status} ${signal}`);
    return true;
  };
  const replaced = (): string[] => readdirSync(other.folder).filter((name) => name.startsWith("home.before-"));

  it("[BK10] [BK11] leaves the old state or the new one at every step, and the next one cleans up", async () => {
    const log = join(other.folder, "strace");
    await done(other, "restore", file);
    const isWhole = (home: string, text: string): boolean =>
      readFileSync(mark(home), "utf8") === text && existsSync(join(home, "gateway", "do"));
    writeFileSync(mark(other.home), "old");
    assert.equal(killedAt(WATCHED, 65_535, log), false);
    const counts = new Map<string, number>();
    for (const line of readFileSync(log, "utf8").split("\n")) {
      const called = /^(\d+ +\w+)\(/.exec(line)?.[1];
      if (called !== undefined) counts.set(called, (counts.get(called) ?? 0) + 1);
    }
    let [switched, kills] = [0, 0];
    for (const [called, count] of counts) {
      const call = called.split(/ +/)[1] ?? "";
      if (call === "execve") continue;
      const steps = CHANGES.test(call)
        ? Array.from({ length: Math.min(count, 12) }, (_, at) => count - at)
        : [...new Set([1, Math.ceil(count / 2), count])];
      for (const nth of steps) {
        writeFileSync(mark(other.home), "old");
        if (!killedAt(call, nth, log)) continue;
        kills += 1;
        const isNew = isWhole(other.home, "of the backup");
        assert.ok(isNew || isWhole(other.home, "old"), `${call} ${nth}: neither state is in place`);
        if (isNew) switched += 1;
      }
    }
    assert.ok(kills > 12 && switched > 0 && switched < kills, `${kills} kills, ${switched} after the switch`);
    await done(other, "restore", file, "--replace");
    assert.deepEqual(
      readdirSync(other.folder).filter((name) => name.includes(".restore-")),
      [],
      "nothing half done is left",
    );
    for (const name of replaced()) assert.ok(existsSync(join(other.folder, name, "gateway", "do")), name);
    assert.ok(replaced().length > switched, "each state that was replaced is kept");
    await other.up();
    const messages = await transcript(await other.client());
    assert.equal(messages.filter(({ role }) => role === "user").length, 1);
    assert.match(await other.ok("chat", "say again"), /again/);
  });
});
