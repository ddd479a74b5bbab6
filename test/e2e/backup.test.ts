/** Backups of a gateway that works, restored elsewhere: what was acknowledged is there once, and secrets are there only when asked for. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { BIN, type Client, Machine, type Ran, transcript, until } from "./support.ts";

const PASSPHRASE = "five words for a backup";
const ENV = { GSV_BACKUP_PASSPHRASE: PASSPHRASE };
const CANARY = "canary-of-the-provider-77b1e2";

const gsv = (machine: Machine, ...args: string[]): Promise<Ran> => machine.gsv(args, { env: ENV });
async function done(machine: Machine, ...args: string[]): Promise<Ran> {
  const ran = await gsv(machine, ...args);
  assert.equal(ran.code, 0, `gsv ${args.join(" ")}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}
const copies = (machine: Machine): string[] => readdirSync(join(machine.home, "gateway")).filter((name) => name.startsWith("backup-"));
/** The letter for what a process does: `T` is stopped. */
const stateOf = (pid: number): string => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] ?? "";

interface Accepted {
  readonly session: string;
  readonly message: string;
}

/** Sends messages without a pause; each is answered before the next. A conversation has at most 50, so that all can be read at once. */
class Talker {
  readonly accepted: Accepted[] = [];
  #goesOn = true;
  readonly #ended: Promise<void>;
  constructor(client: Client, name: string) {
    this.#ended = this.#talk(client, name);
  }
  async #talk(client: Client, name: string): Promise<void> {
    for (let number = 1; this.#goesOn; number++) {
      const session = `agent:main:cli:dm:${name}-${Math.floor(number / 50)}`;
      const message = `say ${name}-${number}.`;
      const runId = await client.say(message, { sessionKey: session });
      this.accepted.push({ session, message });
      await client.ending(runId);
    }
  }
  async end(): Promise<void> {
    this.#goesOn = false;
    await this.#ended;
  }
}

describe("a backup of a gateway under load", () => {
  const [machine, other] = [new Machine(), new Machine()];
  const file = join(machine.folder, "gsv.backup");
  after(async () => {
    await other.end();
    await machine.end();
  });

  it("[BK1] [BK3] [BK5] [BK7] restored elsewhere, it has each message that was acknowledged before once, and answers", async () => {
    await machine.up();
    // Makes the agent's files.
    await machine.ok("chat", "say first");
    writeFileSync(join(machine.home, "workspace", "agents", "main", "by-hand.md"), "written by hand");
    symlinkSync("/etc/hostname", join(machine.home, "workspace", "agents", "main", "link"));
    const clients = await Promise.all(["a", "b", "c"].map((id) => machine.client({ id })));
    const talkers = clients.map((client, at) => new Talker(client, `talk${at}`));
    await until("each has talked", () => talkers.every(({ accepted }) => accepted.length > 3));
    const before = talkers.map(({ accepted }) => [...accepted]);
    const made = await done(machine, "backup", file, "--json");
    const after = talkers.map(({ accepted }) => accepted.length);
    await until("they talk on", () => talkers.every(({ accepted }, at) => accepted.length > (after[at] ?? 0)));
    await Promise.all(talkers.map((talker) => talker.end()));
    const report = JSON.parse(made.stdout) as { heldMs: number; hasSecrets: boolean; databases: number; leftOut: string[] };
    assert.ok(report.heldMs < 8_000 && !report.hasSecrets && report.databases > 10, made.stdout);
    assert.match(report.leftOut.join(), /agents\/main\/link/);
    assert.deepEqual(copies(machine), []);
    assert.match((await done(machine, "backup", "verify", file)).stdout, /is sound: \d+ files/);

    const restored = await done(other, "restore", file);
    assert.match(restored.stderr, /The first token is not in the backup/);
    await other.up();
    assert.equal(readFileSync(join(other.home, "workspace", "agents", "main", "by-hand.md"), "utf8"), "written by hand");
    const client = await other.client();
    const sessions = new Set(before.flat().map(({ session }) => session));
    for (const session of sessions) {
      const sent = talkers.flatMap(({ accepted }) => accepted.filter((each) => each.session === session).map(({ message }) => message));
      const texts = await until("the last message is answered", async () => {
        const log = await transcript(client, session);
        return log.at(-1)?.role === "assistant"
          ? log.filter(({ role }) => role === "user").map(({ content }) => shown(content))
          : undefined;
      });
      const acknowledged = before.flat().filter((each) => each.session === session);
      assert.ok(texts.length >= acknowledged.length, `${texts.length} of ${acknowledged.length}`);
      // Each once, in order; what was sent during the backup is in it up to the moment of the copy, without a gap.
      assert.deepEqual(texts, sent.slice(0, texts.length));
    }
    const list = JSON.parse(await other.ok("session", "list", "--json")) as { sessions: readonly { sessionKey: string }[] };
    const listed = new Set(list.sessions.map(({ sessionKey }) => sessionKey));
    for (const session of sessions) assert.ok(listed.has(session), `${session} is in the gateway's list`);
    assert.match(await other.ok("chat", "say all is well"), /all is well/);
  });

  it("[BK8] an existing file and a place in the state folder are refused", async () => {
    const again = await gsv(machine, "backup", file);
    assert.deepEqual([again.code, /already exists[\s\S]*--force/.test(again.stderr)], [1, true], again.stderr);
    await done(machine, "backup", file, "--force");
    const inside = await gsv(machine, "backup", join(machine.home, "x"));
    assert.deepEqual([inside.code, /in the state folder/.test(inside.stderr)], [2, true], inside.stderr);
    const short = await machine.gsv(["backup", `${file}2`], { env: { GSV_BACKUP_PASSPHRASE: "short" } });
    assert.equal(short.code, 2, short.stderr);
    const none = await machine.gsv(["backup", `${file}2`, "--passphrase-stdin"], { input: "" });
    assert.equal(none.code, 2, none.stderr);
    assert.equal(existsSync(`${file}2`), false);
    const typed = await machine.gsv(["backup", "verify", file, "--passphrase-stdin"], { input: `${PASSPHRASE}\n` });
    assert.equal(typed.code, 0, typed.stderr);
  });

  it("[BK2] [BK8] killed while it holds the gateway, it lets the gateway go on, and the next backup cleans up", async () => {
    const { workerdPid, restarts } = machine.state();
    assert(workerdPid !== undefined);
    let isCaught = false;
    for (let attempt = 0; attempt < 20 && !isCaught; attempt++) {
      const child = spawn(BIN, ["backup", join(machine.folder, `killed-${attempt}`)], { env: machine.env(ENV), stdio: "ignore" });
      const ended = once(child, "close");
      while (child.exitCode === null && child.signalCode === null) {
        // Without a pause: the hold is short.
        for (let look = 0; look < 200 && !isCaught; look++) isCaught = stateOf(workerdPid) === "T";
        if (isCaught) {
          child.kill("SIGKILL");
          break;
        }
        await new Promise((wake) => setImmediate(wake));
      }
      await ended;
      if (isCaught) assert.equal(existsSync(join(machine.folder, `killed-${attempt}`)), false);
    }
    assert.ok(isCaught, "no backup was killed during its hold");
    await until("the gateway goes on", () => stateOf(workerdPid) !== "T");
    assert.match(await machine.ok("chat", "say it works"), /it works/);
    assert.deepEqual([machine.state().workerdPid, machine.state().restarts], [workerdPid, restarts]);
    assert.equal(copies(machine).length, 1, "what the killed backup has left");
    await done(machine, "backup", file, "--force");
    assert.deepEqual(copies(machine), []);
  });
});

describe("the secrets of a backup", () => {
  const [machine, plain, whole] = [new Machine(), new Machine(), new Machine()];
  const file = join(machine.folder, "gsv.backup");
  before(async () => {
    await machine.up();
    const { code } = await machine.gsv(["config", "set", "apiKeys.openai", "-"], { input: CANARY });
    assert.equal(code, 0);
  });
  after(async () => {
    for (const each of [plain, whole, machine]) await each.end();
  });

  it("[BK4] [BK13] without --with-secrets it has none of them, and the restored gateway has a new token and says what is missing", async () => {
    const made = await done(machine, "backup", file);
    assert.match(made.stderr, /their key is not: keep a copy of .*secrets\.key/);
    const restored = await done(plain, "restore", file);
    assert.match(restored.stderr, /the key of the stored secrets is neither in the backup nor in .*gsv doctor/);
    assert.equal(existsSync(join(plain.home, "gateway", "bootstrap.json")), false);
    assert.equal(existsSync(join(plain.configFolder, "secrets.key")), false);
    for (const name of readdirSync(plain.home, { recursive: true, encoding: "utf8" })) {
      const path = join(plain.home, name);
      if (name.endsWith(".sqlite")) assert.ok(!readFileSync(path).includes(CANARY), name);
    }
    await plain.up();
    assert.notEqual(plain.token, machine.token);
    assert.match((await gsv(plain, "doctor", "--offline")).stdout, /apiKeys\.openai/);
  });

  it("[BK4] [BK13] with --with-secrets the restored gateway opens its secrets and takes the old token", async () => {
    await done(machine, "backup", `${file}.secret`, "--with-secrets");
    await done(whole, "restore", `${file}.secret`);
    assert.equal(existsSync(join(whole.home, "secrets")), false);
    assert.equal(whole.token, machine.token);
    const key = (folder: string): string => /^[0-9a-f]{64}$/m.exec(readFileSync(join(folder, "secrets.key"), "utf8"))?.[0] ?? "";
    assert.equal(key(whole.configFolder), key(machine.configFolder));
    await machine.ok("down");
    await whole.up();
    assert.doesNotMatch((await gsv(whole, "doctor", "--offline")).stdout, /apiKeys\.openai.*(?:opened|sealed)/);
    assert.match(await whole.ok("chat", "say hello"), /hello/);
  });

  it("[BK10] [BK12] a state that is there is replaced only with --replace, kept, and never under a gateway that runs", async () => {
    const running = await gsv(whole, "restore", file, "--replace");
    assert.deepEqual([running.code, /A gateway runs[\s\S]*gsv down/.test(running.stderr)], [1, true], running.stderr);
    await whole.ok("down");
    const occupied = await gsv(whole, "restore", file);
    assert.deepEqual([occupied.code, /has files already[\s\S]*--replace/.test(occupied.stderr)], [1, true], occupied.stderr);
    writeFileSync(join(whole.home, "history"), "a line\n");
    const replaced = JSON.parse((await done(whole, "restore", file, "--replace", "--json")).stdout) as {
      before: string;
      opensSecrets: boolean;
    };
    assert.ok(existsSync(join(replaced.before, "gateway", "bootstrap.json")), "the old state is whole");
    assert.equal(replaced.opensSecrets, true, "the machine still has the key");
    assert.equal(readFileSync(join(whole.home, "history"), "utf8"), "a line\n");
    await whole.up();
    assert.match(await whole.ok("chat", "say here"), /here/);
    const elsewhere = join(whole.folder, "elsewhere");
    assert.match((await done(whole, "restore", file, "--into", elsewhere)).stderr, /GSV_HOME=.*elsewhere.* gsv up/);
    assert.ok(existsSync(join(elsewhere, "gateway", "do")));
  });
});

describe("a copy that is restored beside its gateway", () => {
  const machine = new Machine();
  const file = join(machine.folder, "gsv.backup");
  const copy = join(machine.folder, "copy");
  const there = (...args: string[]): Promise<Ran> => machine.gsv(args, { env: { ...ENV, GSV_HOME: copy } });
  const config = (): string => readFileSync(join(copy, "gateway", "config.capnp"), "utf8");
  before(async () => {
    await machine.usePort();
    const channels = { version: 1, channels: { example: { enabled: true } } };
    writeFileSync(join(machine.home, "gateway", "channels.json"), JSON.stringify(channels), { mode: 0o600 });
    await machine.up();
    await machine.ok("chat", "say it is kept");
    await done(machine, "backup", file);
  });
  after(async () => {
    await there("down");
    await machine.end();
  });

  it("[BK23] [BK24] it starts stopped on a free port, and no channel runs", async () => {
    const { stderr } = await done(machine, "restore", file, "--into", copy);
    assert.match(stderr, /It starts stopped, so that nothing is done twice[\s\S]*gsv resume/);
    const port = /GSV_HOME=.+ gsv up --port (\d+)/.exec(stderr)?.[1];
    assert(port !== undefined && port !== String(machine.port), stderr);
    const taken = await there("up");
    assert.equal(taken.code, 1);
    assert.ok(taken.stderr.includes(`in use by the gateway of ${machine.home}.`), taken.stderr);
    const up = await there("up", "--port", port);
    assert.deepEqual([up.code, /a restored copy, so nothing runs by itself/.test(up.stderr)], [0, true], up.stderr);
    assert.match((await there("status")).stdout, /a restored copy, stopped since/);
    assert.match((await there("doctor", "--offline")).stdout, /GSV is a restored copy, stopped since/);
    assert.doesNotMatch(config(), /channel-example/);
    const held = await there("chat", "say it waited");
    assert.deepEqual([held.code, /GSV is stopped[\s\S]*`GSV_HOME=.+ gsv resume`/.test(held.stderr)], [4, true], held.stderr);
    const inChat = await there("chat", "/resume");
    assert.match(inChat.stdout + inChat.stderr, /nothing was resumed[\s\S]*GSV_HOME=.+ gsv resume/);
    assert.match((await there("status")).stdout, /a restored copy, stopped since[\s\S]*GSV_HOME=.+ gsv resume/);
  });

  it("[BK25] the own gateway, which still runs, takes its login back", async () => {
    const back = await machine.gsv(["up"]);
    assert.match(back.stderr, /already running[\s\S]*Address and token are stored/);
    assert.match(await machine.ok("chat", "say own"), /own/);
    assert.doesNotMatch(await machine.ok("status"), /stopped since/);
    const other = await there("resume");
    assert.deepEqual([other.code, /the local config is for the gateway at[\s\S]*gsv up/.test(other.stderr)], [1, true], other.stderr);
  });

  it("[BK25] a token that the gateway rejects is replaced by the one that it had", async () => {
    const own = machine.token;
    await machine.ok("local-config", "set", "token", `${own.slice(0, -1)}${own.endsWith("0") ? "1" : "0"}`);
    assert.equal((await machine.gsv(["session", "list"])).code, 3);
    assert.match((await machine.gsv(["up"])).stderr, /Address and token are stored/);
    assert.equal(machine.token, own);
  });

  it("[ST10] the stop of a conversation that does not exist is an error, and names the one that is meant", async () => {
    const stop = async (name: string): Promise<Ran> => machine.gsv(["stop", name]);
    const unknown = await stop("nothing");
    assert.deepEqual([unknown.code, /There is no conversation .*nothing/.test(unknown.stderr)], [1, true], unknown.stderr);
    assert.match((await stop("ain")).stderr, /Did you mean agent:main:cli:dm:main\?/);
    assert.match((await machine.gsv(["stop"])).stderr, /Nothing was running\. To stop the gateway itself: `gsv down`/);
  });

  it("[BK23] a resume starts its channels and answers what waited, also after one that was killed", async () => {
    assert.equal((await there("up")).code, 0);
    const mark = join(copy, "gateway", "start-stopped");
    // Exported itself: a resume that the gateway would refuse changes nothing (rule MV14).
    assert.equal((await there("deploy", "export", join(copy, "home.gsv"))).code, 0);
    const refused = await there("resume");
    assert.deepEqual([refused.code, /was exported[\s\S]*resume --exported/.test(refused.stderr)], [1, true], refused.stderr);
    assert.ok(existsSync(mark));
    // As a resume leaves it that was killed before it had told the gateway.
    rmSync(mark);
    const resumed = await there("resume", "--exported");
    assert.deepEqual([resumed.code, /Resumed\.[\s\S]*both act now/.test(resumed.stderr)], [0, true], resumed.stderr);
    assert.match(config(), /channel-example/);
    assert.doesNotMatch(config(), /START_STOPPED/);
    await until("what waited is answered", async () => /^.*it waited/m.test((await there("session", "preview")).stdout));
    assert.match((await there("chat", "say it acts")).stdout, /it acts/);
    await there("down");
    assert.equal((await there("up")).code, 0);
    assert.doesNotMatch((await there("status")).stdout, /stopped since/);
  });
});

function shown(content: unknown): string {
  if (typeof content === "string") return content;
  return (content as { text?: string }[]).map(({ text }) => text ?? "").join("");
}
