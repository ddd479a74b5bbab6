/** `gsv up --cluster`: two homes of this machine with one state in a fake of S3, the loss of one, and what is refused. */
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FakeS3 } from "../fakes/fake-s3.ts";
import { freePort, type Json, Machine, type Ran } from "./support.ts";
import { until } from "./waiting.ts";

const BUCKET = "s3://gsvb/home";
/** Shorter than the lease of an instance, which is 20 s. */
const AT_ONCE_MS = 15_000;
const PASSPHRASE = { GSV_BACKUP_PASSPHRASE: "five words for a backup" };

/** Variables that must have no effect: workerd would use them. */
const MISLEADING = { AWS_ENDPOINT_URL: "http://127.0.0.1:1", AWS_ACCESS_KEY_ID: "AKIAWRONG", AWS_SECRET_ACCESS_KEY: "wrong" };

describe("a cluster of gateways", () => {
  const [one, two] = [new Machine(), new Machine()];
  let s3: FakeS3;
  const key = (machine: Machine, name: string): string => join(machine.configFolder, name);
  const writeKeys = (machine: Machine): void => {
    mkdirSync(machine.configFolder, { recursive: true, mode: 0o700 });
    const lines = { AWS_ACCESS_KEY_ID: s3.accessKeyId, AWS_SECRET_ACCESS_KEY: s3.secretAccessKey, AWS_ENDPOINT_URL: s3.url };
    const text = Object.entries(lines).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(key(machine, "cluster.env"), text.join(""), { mode: 0o600 });
  };
  const up = async (machine: Machine, ...args: string[]): Promise<Ran> => {
    if (machine.port === 0) machine.port = await freePort();
    return machine.gsv(["up", "--port", String(machine.port), ...args], { env: MISLEADING });
  };
  const refused = (ran: Ran, code: number, says: RegExp): void => {
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stderr, says);
  };
  const stored = (machine: Machine): string => join(machine.home, "gateway", "cluster.json");
  const filesBelow = (folder: string): readonly string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  before(async () => {
    s3 = await FakeS3.start();
  });
  after(async () => {
    await one.end();
    await two.end();
    await s3.end();
  });

  it("[CL1] [CL3] [CL4] [CL6] refuses a bad address, a public one for instances, keys that are missing or open to others, and another first token; nothing is stored", async () => {
    refused(await up(one, "--cluster", "https://example.org/b"), 2, /s3:\/\/BUCKET\/PREFIX/);
    refused(await up(one, "--cluster", BUCKET, "--cluster-listen", "0.0.0.0:7000"), 2, /not encrypted[\s\S]*10\.0\.0\.7:7000/);
    refused(await up(one, "--cluster", BUCKET, "--cluster-listen", "8.8.8.8:7000"), 2, /not encrypted/);
    refused(await up(one, "--cluster", BUCKET, "--cluster-listen", "10.0.0.7"), 2, /with a port/);
    refused(await up(one, "--cluster", BUCKET), 2, /cluster\.env does not exist[\s\S]*AWS_ACCESS_KEY_ID/);
    writeKeys(one);
    chmodSync(key(one, "cluster.env"), 0o644);
    refused(await up(one, "--cluster", BUCKET), 2, /cluster\.env[\s\S]*chmod 600/);
    chmodSync(key(one, "cluster.env"), 0o600);
    refused(await up(one, "--cluster", BUCKET, "--new-token"), 1, /secrets\.key/);
    refused(await up(one, "--cluster", BUCKET, "--listen", "192.0.2.1:7443"), 1, /192\.0\.2\.1/);
    assert.deepEqual(s3.seen, []);
    assert.ok(!existsSync(stored(one)));
  });

  it("[CL1] [CL5] starts an instance, whose conversations and files are in the bucket and in no folder", async () => {
    const started = await up(one, "--cluster", BUCKET, "--json");
    assert.equal(started.code, 0, started.stderr);
    assert.deepEqual((JSON.parse(started.stdout) as Json)["cluster"], { bucket: BUCKET, listen: "127.0.0.1:0" });
    assert.match(await one.ok("chat", "say it is remembered"), /it is remembered/);
    const note = join(one.folder, "note.md");
    writeFileSync(note, "the note of the test");
    await one.ok("workspace", "put", "notes.md", note);
    assert.deepEqual(filesBelow(join(one.home, "workspace")), []);
    const contents = s3.keys("gsvb/home/v1/services/files/").map((name) => s3.objects.get(name)?.body.toString());
    assert.ok(contents.includes("the note of the test"), `${contents.length} files`);
  });

  it("[CL1] [CL2] [CL4] [CL8] makes no backup of the local copies, schedules none, makes no other first token, and joins no other cluster", async () => {
    const backup = await one.gsv(["backup", join(one.folder, "b.gsv")], { env: PASSPHRASE });
    refused(backup, 1, /belongs to the cluster[\s\S]*gsv deploy export/);
    const schedule = await one.gsv(["backup", "schedule", "--to", one.folder], { env: PASSPHRASE });
    refused(schedule, 1, /No backups are scheduled: this home belongs to the cluster[\s\S]*gsv deploy export/);
    assert.ok(!existsSync(join(one.home, "backups")));
    refused(await up(one, "--cluster", "s3://gsvb/other"), 1, /joins a cluster only when it starts/);
    await one.ok("down");
    refused(await up(one, "--cluster", "s3://gsvb/other"), 1, /belongs to the cluster s3:\/\/gsvb\/home/);
    refused(await up(one, "--new-token"), 1, /secrets\.key/);
    // As after an update: on one machine, the next start copies the state before it begins.
    const version = join(one.home, "gateway", "last-start");
    assert.ok(existsSync(version));
    writeFileSync(version, "0.0.1");
    const again = await up(one);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /an instance of the cluster s3:\/\/gsvb\/home/);
    assert.ok(!existsSync(join(one.home, "gateway", "before-upgrade")));
    assert.match(await one.ok("session", "preview"), /it is remembered/);
  });

  it("[CL4] [CL5] [CL6] [CL7] answers on a second machine with the same keys, there at once after the first was stopped, and on the first after the second was killed", async () => {
    writeKeys(two);
    copyFileSync(key(one, "secrets.key"), key(two, "secrets.key"));
    const listen = `127.0.0.1:${await freePort()}`;
    const started = await up(two, "--cluster", BUCKET, "--cluster-listen", listen);
    assert.equal(started.code, 0, started.stderr);
    const socket = connect({ host: "127.0.0.1", port: Number(listen.split(":")[1]) });
    await once(socket, "connect");
    socket.destroy();
    assert.equal((JSON.parse(readFileSync(stored(two), "utf8")) as Json)["listen"], listen);
    assert.equal(two.token, one.token);
    assert.match(await two.ok("session", "preview"), /it is remembered/);
    assert.match(await two.ok("workspace", "cat", "notes.md"), /the note of the test/);
    assert.match(await two.ok("chat", "say from the second"), /from the second/);
    assert.match(await one.ok("session", "preview"), /from the second/);
    // What the first has run is handed over: no request waits for the end of a lease.
    await one.ok("down");
    await until("the second answers", async () => (await two.gsv(["session", "preview"])).code === 0, AT_ONCE_MS);
    assert.match(await two.ok("chat", "say after the stop"), /after the stop/);
    const again = await up(one);
    assert.equal(again.code, 0, again.stderr);
    assert.match(await one.ok("session", "preview"), /after the stop/);
    const { supervisorPid, workerdPid } = JSON.parse(readFileSync(join(two.home, "gateway", "state.json"), "utf8")) as Json;
    for (const pid of [supervisorPid, workerdPid]) process.kill(Number(pid), "SIGKILL");
    // Until the lease of the second has ended, requests to what it ran fail or wait.
    await until("the first has taken over", async () => (await one.gsv(["session", "preview"])).code === 0);
    assert.match(await one.ok("chat", "say after the loss"), /after the loss/);
    assert.match(await one.ok("session", "preview"), /it is remembered[\s\S]*from the second[\s\S]*after the loss/);
    assert.match(await one.ok("workspace", "cat", "notes.md"), /the note of the test/);
    // A start waits for the lease of what was killed, and the address for the others is kept.
    const back = await up(two, "--json");
    assert.equal(back.code, 0, back.stderr);
    assert.deepEqual((JSON.parse(back.stdout) as Json)["cluster"], { bucket: BUCKET, listen });
  });

  it("[CL3] [CL4] has no secret of the cluster in the state folder, in a log or in a request", () => {
    const secrets = [s3.secretAccessKey, readFileSync(key(one, "cluster.key"), "utf8"), two.token];
    assert.ok(secrets.every((secret) => secret.length > 20));
    for (const machine of [one, two])
      for (const file of filesBelow(machine.home)) {
        const content = readFileSync(file);
        for (const secret of secrets) assert.ok(!content.includes(secret), file);
      }
    for (const line of s3.seen) for (const secret of secrets) assert.ok(!line.includes(secret), line.slice(0, 200));
    assert.equal(readFileSync(key(one, "cluster.key"), "utf8"), readFileSync(key(two, "cluster.key"), "utf8"));
  });

  it("[CL2] a home with conversations is not taken into a cluster", async () => {
    const used = new Machine();
    try {
      await used.up();
      await used.ok("chat", "say mine");
      await used.ok("down");
      writeKeys(used);
      refused(await up(used, "--cluster", BUCKET), 1, /has conversations or files[\s\S]*gsv deploy export/);
      await used.up();
      assert.match(await used.ok("session", "preview"), /mine/);
    } finally {
      await used.end();
    }
  });

  it("[CL2] [CL8] a home that was never ready leaves its cluster or takes another bucket, and says that its scheduled backups fail", async () => {
    const fresh = new Machine();
    try {
      s3.missing.add("typo");
      writeKeys(fresh);
      const failed = await up(fresh, "--cluster", "s3://typo/home");
      assert.notEqual(failed.code, 0, failed.stdout);
      assert.ok(existsSync(stored(fresh)));
      rmSync(stored(fresh));
      const disk = join(fresh.folder, "disk");
      mkdirSync(disk);
      const schedule = await fresh.gsv(["backup", "schedule", "--to", disk], { env: PASSPHRASE });
      assert.equal(schedule.code, 0, schedule.stderr);
      assert.notEqual((await up(fresh, "--cluster", "s3://typo/home")).code, 0);
      const started = await up(fresh, "--cluster", "s3://gsvb/fresh");
      assert.equal(started.code, 0, started.stderr);
      assert.match(started.stderr, /scheduled backups of this home fail[\s\S]*gsv backup schedule --off/);
      await fresh.ok("backup", "schedule", "--off");
    } finally {
      await fresh.end();
    }
  });
});
