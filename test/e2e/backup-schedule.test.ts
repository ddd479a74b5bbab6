/** Scheduled backups: the gateway makes them by itself, checks them, removes older ones, and says when they fail. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Machine, processesWith, type Ran, until } from "./support.ts";

const PASSPHRASE = "five words for the nights";
const ENV = { GSV_BACKUP_PASSPHRASE: PASSPHRASE };
const DAY_MS = 86_400_000;

interface Kept {
  readonly name: string;
  beganAt: number;
  endedAt: number;
}
interface Recorded {
  kept: Kept[];
  trouble?: { count: number; message: string };
  making?: { name: string; beganAt: number };
}
const recordFile = (machine: Machine): string => join(machine.home, "backups", "record.json");
const record = (machine: Machine): Recorded =>
  existsSync(recordFile(machine)) ? (JSON.parse(readFileSync(recordFile(machine), "utf8")) as Recorded) : { kept: [] };
/** As if all backups had been made so long ago. */
function age(machine: Machine, ms: number): void {
  const aged = record(machine);
  for (const kept of aged.kept) {
    kept.beganAt -= ms;
    kept.endedAt -= ms;
  }
  writeFileSync(recordFile(machine), JSON.stringify(aged), { mode: 0o600 });
}
/** The supervisor looks at the schedule again. */
function looks(machine: Machine): void {
  const { supervisorPid } = JSON.parse(readFileSync(join(machine.home, "gateway", "state.json"), "utf8")) as { supervisorPid: number };
  process.kill(supervisorPid, "SIGUSR2");
}
const backups = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".backup"))
    .sort();
const schedule = (machine: Machine, ...args: string[]): Promise<Ran> => machine.gsv(["backup", "schedule", ...args], { env: ENV });
async function scheduled(machine: Machine, ...args: string[]): Promise<Ran> {
  const ran = await schedule(machine, ...args);
  assert.equal(ran.code, 0, `${args.join(" ")}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}
const made = (machine: Machine, count: number): Promise<unknown> =>
  until(`${count} backups were made`, () => record(machine).kept.length === count && record(machine).trouble === undefined);

/** Holds the process, unless it has the lock that `gsv down` waits for: then it goes on. */
function heldWithoutTurn(machine: Machine, pid: number): boolean {
  process.kill(pid, "SIGSTOP");
  const { ino } = statSync(join(machine.home, "gateway", "turn.lock"));
  const locks = existsSync("/proc/locks") ? readFileSync("/proc/locks", "utf8").split("\n") : [];
  const hasTurn = locks.some((line) => line.includes(` ${pid} `) && line.includes(`:${ino} `));
  if (hasTurn) process.kill(pid, "SIGCONT");
  return !hasTurn;
}

describe("backups on a schedule", () => {
  const machine = new Machine();
  const folder = join(machine.folder, "disk");
  const making = (): number[] =>
    processesWith("__make-scheduled-backup").filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(machine.home);
      } catch {
        // It has ended.
        return false;
      }
    });
  const unfinished = (): string[] => readdirSync(folder).filter((name) => name.startsWith(".gsv-unfinished"));
  before(async () => {
    mkdirSync(folder);
    await machine.up();
    await machine.ok("chat", "say kept by night");
  });
  after(() => machine.end());

  it("[BK14] [BK15] [BK17] the first one is made at once, is sound, opens with the passphrase, and the passphrase stands nowhere", async () => {
    const set = await scheduled(machine, "--to", folder, "--every", "day", "--keep", "2");
    assert.match(set.stderr, /first backup is being made now/);
    await made(machine, 1);
    const [name = ""] = backups(folder);
    assert.match(name, /^gsv-[a-z0-9-]+-\d{4}-\d\d-\d\d-\d{6}\.backup$/);
    const verified = await machine.gsv(["backup", "verify", join(folder, name)], { env: ENV });
    assert.match(verified.stdout, /is sound: \d+ files/, verified.stderr);
    for (const place of [machine.home, machine.configFolder])
      for (const file of readdirSync(place, { recursive: true, withFileTypes: true }))
        if (file.isFile()) assert.ok(!readFileSync(join(file.parentPath, file.name)).includes(PASSPHRASE), file.name);
    const shown = await scheduled(machine);
    assert.match(shown.stdout, /every +day\n[\s\S]*keep +2 \(1 there\)[\s\S]*last +gsv-.*\nnext +in (?:2[34] h|1 d)/);
    assert.match(await machine.ok("status"), /backups +every day to .*disk, the last/);
    const doctor = await machine.gsv(["doctor", "--offline"]);
    assert.match(doctor.stdout, /ok +backups +every day, the last: gsv-/);
  });

  it("[BK17] the oldest is removed when a newer one is complete, and another file of the folder never", async () => {
    writeFileSync(join(folder, "gsv-host-2020-01-01-000000.backup"), "of another schedule");
    const [first = ""] = record(machine).kept.map(({ name }) => name);
    for (const count of [2, 2]) {
      const before = record(machine).kept.at(-1)?.name;
      age(machine, 2 * DAY_MS);
      await scheduled(machine, "--keep", "2");
      await until("another one was made", () => record(machine).kept.at(-1)?.name !== before);
      await made(machine, count);
    }
    const names = backups(folder);
    assert.equal(names.length, 3, names.join());
    assert.ok(!names.includes(first) && names.includes("gsv-host-2020-01-01-000000.backup"), names.join());
  });

  it("[BK14] one that was due while the machine was off is made after the next start", async () => {
    await machine.ok("down");
    age(machine, 2 * DAY_MS);
    const before = record(machine).kept.at(-1)?.name;
    await machine.up();
    await until("it was made", () => record(machine).kept.at(-1)?.name !== before);
    await made(machine, 2);
    assert.match(await machine.ok("chat", "say on and on"), /on and on/);
  });

  it("[BK16] [BK18] a disk that is gone is a failure that is told, and over with the next backup; nothing is written in its place", async () => {
    const [usb, away] = [join(machine.folder, "usb"), join(machine.folder, "in a drawer")];
    mkdirSync(usb);
    await scheduled(machine, "--to", usb);
    await made(machine, 1);
    renameSync(usb, away);
    age(machine, 2 * DAY_MS);
    looks(machine);
    await until("it has failed", () => record(machine).trouble?.count === 1);
    assert.match(record(machine).trouble?.message ?? "", /^The folder .*usb does not exist\.$/);
    assert.equal(existsSync(usb), false);
    assert.match(await machine.ok("status"), /The scheduled backup failed: The folder .* does not exist\. Is its disk/);
    const doctor = await machine.gsv(["doctor", "--offline"]);
    assert.match(doctor.stdout, /fail +backups +The scheduled backup failed/);
    await until("the owner is told", async () => /scheduled backup failed/.test(await machine.ok("notifications")));
    assert.match(machine.gatewayLog(), /backup +no backup was made: The folder/);
    // The place where the disk was mounted.
    mkdirSync(usb);
    const { trouble } = record(machine);
    writeFileSync(recordFile(machine), JSON.stringify({ ...record(machine), trouble: { ...trouble, at: 0 } }), { mode: 0o600 });
    looks(machine);
    await until("it has failed again", () => record(machine).trouble?.count === 2);
    assert.match(record(machine).trouble?.message ?? "", /is not the folder that was chosen/);
    assert.deepEqual(readdirSync(usb), []);
    rmSync(usb, { recursive: true });
    const missing = await schedule(machine, "--every", "day");
    assert.deepEqual([missing.code, /does not exist[\s\S]*mkdir/.test(missing.stderr)], [2, true], missing.stderr);
    renameSync(away, usb);
    await scheduled(machine, "--every", "day");
    await made(machine, 2);
    assert.doesNotMatch(await machine.ok("status"), /scheduled backup failed/);
    await until("the notification is over", async () => /over since/.test(await machine.ok("notifications")));
    const moved = await scheduled(machine, "--to", folder);
    assert.match(moved.stderr, /stay in .*usb, and none of them is removed any more/);
    await made(machine, 1);
  });

  it("[BK18] a backup that is killed is a failure at once, and the owner is told although the next attempt is killed, too", async () => {
    interface Told {
      readonly text: string;
      readonly overAt?: number;
    }
    const told = async (): Promise<Told | undefined> => {
      const { notifications } = JSON.parse(await machine.ok("--json", "notifications")) as { notifications: readonly Told[] };
      return notifications.find(({ text }) => text.includes("by a kill"));
    };
    const kill = async (pid: number): Promise<void> => {
      process.kill(pid, "SIGKILL");
      await until("it has ended", () => making().length === 0);
    };
    age(machine, 2 * DAY_MS);
    looks(machine);
    await kill(
      await until(
        "a backup is being made",
        () => (record(machine).making && unfinished().length > 0 ? making()[0] : undefined),
        undefined,
        1,
      ),
    );
    assert.match(await machine.ok("status"), /The scheduled backup failed: .*by a kill/);
    assert.deepEqual([record(machine).trouble, await told()], [undefined, undefined]);
    /** The next attempt comes now. */
    const retry = (): void => {
      const { making: killed, trouble, ...rest } = record(machine);
      const changed = { ...rest, making: { ...killed, beganAt: 0 }, ...(trouble && { trouble: { ...trouble, at: 0 } }) };
      writeFileSync(recordFile(machine), JSON.stringify(changed), { mode: 0o600 });
      looks(machine);
    };
    retry();
    await kill(
      await until(
        "it is made again",
        () => (record(machine).trouble && (record(machine).making?.beganAt ?? 0) > 0 ? making()[0] : undefined),
        undefined,
        1,
      ),
    );
    assert.equal(typeof (await told())?.text, "string");
    const count = record(machine).kept.length;
    retry();
    await until("one was made", () => record(machine).kept.length >= count && record(machine).trouble === undefined);
    await until("the notification is over", async () => (await told())?.overAt !== undefined);
    assert.deepEqual(unfinished(), []);
    assert.doesNotMatch(await machine.ok("status"), /scheduled backup failed/);
  });

  it("[BK19] a backup under way ends with the gateway and leaves no file, and --off ends the schedule and keeps the backups", async () => {
    const count = backups(folder).length;
    age(machine, 2 * DAY_MS);
    await scheduled(machine, "--every", "2d");
    // It is held at its beginning, so that it can't be complete before the gateway stops.
    const pid = await until("a backup is being made", () => (unfinished().length > 0 ? making()[0] : undefined), undefined, 1);
    await until("it is held", () => heldWithoutTurn(machine, pid), undefined, 1);
    await machine.ok("down");
    process.kill(pid, "SIGCONT");
    await until("no process of it is left", () => making().length === 0);
    assert.deepEqual([unfinished(), backups(folder).length], [[], count]);
    const off = await scheduled(machine, "--off");
    assert.match(off.stderr, /No backups are scheduled any more\. \d+ backups? stays? in/);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith(".gsv")),
      [],
    );
    assert.ok(backups(folder).length >= count);
    assert.match((await scheduled(machine)).stderr, /No backups are scheduled\./);
  });
});

describe("the schedule of another gateway", () => {
  const machine = new Machine();
  after(() => machine.end());

  it("[BK21] is refused with a code, also for a gateway in a Cloudflare account", async () => {
    const folder = join(machine.folder, "disk");
    mkdirSync(folder);
    const ran = await machine.gsv(["--url", "https://gsv.example.workers.dev", "--json", "backup", "schedule", "--to", folder], {
      env: ENV,
    });
    assert.equal(ran.code, 2, ran.stderr);
    assert.match(`${ran.stdout}${ran.stderr}`, /backup\.not_here/);
    assert.match(`${ran.stdout}${ran.stderr}`, /gsv deploy export/);
    assert.deepEqual(readdirSync(folder), []);
    const none = await schedule(machine, "--to", folder);
    assert.deepEqual([none.code, /There is no gateway in/.test(none.stderr)], [2, true], none.stderr);
  });
});
