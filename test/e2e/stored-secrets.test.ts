/** Secrets at rest: nothing in the state folder shows them, and they can't be used without the key in the configuration folder. */
import assert from "node:assert/strict";
import { chmodSync, cpSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { serialize } from "node:v8";
import { startFakeModel } from "../fakes/fake-model.ts";
import { Machine, until } from "./support.ts";

const CANARY = "canary-of-the-provider-5d0c7b1e";
const HEADER = "canary-of-a-header-91ab34cd";

/** Files of a folder that have the text in any byte, by their names. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => {
      const file = join(folder, name);
      return statSync(file, { throwIfNoEntry: false })?.isFile() === true && readFileSync(file).includes(text);
    })
    .sort();
}
const keyFile = (machine: Machine): string => join(machine.configFolder, "secrets.key");

/** The keys that requests to the model had, while the gateway answers one message. */
async function keysOfAnAnswer(machine: Machine): Promise<Set<string | undefined>> {
  const fake = await startFakeModel();
  try {
    await machine.ok(
      "config",
      "set",
      "model",
      JSON.stringify({ provider: "openai", id: "fake-1", baseUrl: `${fake.url}/v1`, headers: { "X-Canary": HEADER } }),
    );
    await machine.ok("chat", "hello");
    return new Set(fake.requests.map(({ headers }) => headers["authorization"]?.toString()));
  } finally {
    await fake.close();
  }
}

/** The gateway has no key for the provider, and says how to give it one; the provider is not asked. */
async function withoutKey(machine: Machine): Promise<void> {
  await machine.ok("config", "set", "model", '{"provider":"openai","id":"gpt-4.1"}');
  const chat = await machine.gsv(["chat", "hello"]);
  assert.match(chat.stdout + chat.stderr, /No key is set for openai\.[\s\S]*Run `gsv config set apiKeys\.openai -`/i);
}

describe("[A7] [A8] a secret that is stored on this machine", () => {
  const machine = new Machine();
  before(async () => {
    await machine.up();
    const { code, stderr } = await machine.gsv(["config", "set", "apiKeys.openai", "-"], { input: CANARY });
    assert.equal(code, 0, stderr);
  });
  after(() => machine.end());

  it("is used by model calls, and is in no byte of the state folder, while the gateway runs, after a stop and after a kill", async () => {
    assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
    await machine.killWorkerd();
    for (const moment of ["after a kill", "after a stop"]) {
      for (const secret of [CANARY, HEADER]) assert.deepEqual(filesWith(machine.home, secret), [], moment);
      if (moment === "after a kill") await machine.ok("down");
    }
    await machine.up();
    assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
  });

  it("has its key in a private file of the configuration folder, and not in the state folder or in an argument", async () => {
    const key = /^[0-9a-f]{64}$/m.exec(readFileSync(keyFile(machine), "utf8"))?.[0] ?? "";
    assert.match(key, /^[0-9a-f]{64}$/);
    assert.equal(statSync(keyFile(machine)).mode & 0o777, 0o600);
    assert.deepEqual(filesWith(machine.home, key), []);
    const { workerdPid } = machine.state();
    assert.ok(!readFileSync(`/proc/${workerdPid}/cmdline`, "utf8").includes(key));
    const derived = /GSV_SEALING_KEYS=([0-9a-f]{64})/.exec(readFileSync(`/proc/${workerdPid}/environ`, "utf8"))?.[1] ?? "";
    assert.match(derived, /^[0-9a-f]{64}$/, "the gateway's own key is in the environment of workerd");
    assert.notEqual(derived, key, "it is derived");
    assert.deepEqual(filesWith(machine.home, derived), []);
  });

  it("a key file that others can read is refused, with the command that fixes it", async () => {
    await machine.ok("down");
    chmodSync(keyFile(machine), 0o644);
    const refused = await machine.gsv(["up", "--port", String(machine.port)]);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /secrets\.key contains secrets, and other users can read it \(mode 0644\)/);
    const command = /Run `(chmod 600 [^`]+)`/.exec(refused.stderr)?.[1] ?? "";
    assert.equal(command, `chmod 600 '${keyFile(machine)}'`);
    chmodSync(keyFile(machine), 0o600);
    await machine.up();
  });

  it("[A9] without its key file the gateway starts and names what must be entered again; with the file back all is as before", async () => {
    await machine.ok("config", "set", "userTimezone", "Europe/Berlin");
    await machine.ok("down");
    const aside = `${keyFile(machine)}.aside`;
    renameSync(keyFile(machine), aside);
    const up = await machine.gsv(["up", "--port", String(machine.port)]);
    assert.equal(up.code, 0, up.stderr);
    assert.match(up.stderr, /were sealed with a key that is not in .*secrets\.key\. Put the earlier file back/);
    const doctor = await machine.gsv(["doctor", "--offline"]);
    assert.match(doctor.stdout, /fail {2}secrets +apiKeys\.openai, model\.headers\.X-Canary can't be opened/);
    assert.match(doctor.stdout, /gsv config set apiKeys\.openai -/);
    assert.match((await machine.gsv(["config", "get", "apiKeys"])).stderr, /apiKeys\.openai is stored, but its key is missing/);
    assert.equal((await machine.ok("config", "get", "userTimezone")).trim(), "Europe/Berlin", "nothing else is lost");
    await withoutKey(machine);
    await machine.ok("down");
    renameSync(aside, keyFile(machine));
    const back = await machine.gsv(["up", "--port", String(machine.port)]);
    assert.doesNotMatch(back.stderr, /sealed with a key/);
    assert.doesNotMatch(await machine.ok("doctor", "--offline"), /can't be opened/);
    assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
  });

  it("[A9] a copy of the state folder without the key opens nothing, and says what is missing", async () => {
    await machine.ok("down");
    const copy = new Machine();
    try {
      cpSync(machine.home, copy.home, { recursive: true });
      // An own token for the copy; the key stays behind.
      copy.port = machine.port;
      const up = await copy.gsv(["up", "--new-token", "--port", String(copy.port)]);
      assert.equal(up.code, 0, up.stderr);
      assert.match(up.stderr, /were sealed with a key that is not in/);
      await withoutKey(copy);
    } finally {
      await copy.end();
    }
    await machine.up();
  });

  it("[A7] moves to a new key: the new one is put before the old one, and after a start the old one is not needed", async () => {
    await machine.ok("down");
    const old = readFileSync(keyFile(machine), "utf8");
    const fresh = "7a".repeat(32);
    writeFileSync(keyFile(machine), `${fresh}\n${old}`, { mode: 0o600 });
    await machine.up();
    await machine.ok("config", "get", "apiKeys");
    await machine.ok("down");
    writeFileSync(keyFile(machine), `${fresh}\n`, { mode: 0o600 });
    const up = await machine.gsv(["up", "--port", String(machine.port)]);
    assert.doesNotMatch(up.stderr, /sealed with a key/);
    assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
  });
});

/** The process that the supervisor has started, once it is known. */
function workerd(machine: Machine): number | undefined {
  try {
    return machine.state().workerdPid;
  } catch {
    return undefined;
  }
}
const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });

describe("[A7] [P22] the plain secrets of an earlier version", () => {
  /** A machine whose gateway has stored these settings as earlier versions did. */
  async function plainHome(): Promise<Machine> {
    const machine = new Machine();
    await machine.up();
    await machine.ok("config", "set", "userTimezone", "Europe/Berlin");
    await machine.ok("down");
    const folder = join(machine.home, "gateway", "do", "gsv-Gateway");
    const file = readdirSync(folder).find((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite") ?? "";
    const database = new DatabaseSync(join(folder, file));
    const put = database.prepare("INSERT INTO _cf_KV(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value");
    put.run("config:apiKeys", serialize({ openai: CANARY, anthropic: `${CANARY}-2` }));
    put.run("config:model", serialize({ provider: "openai", id: "fake-1", headers: { "X-Canary": HEADER } }));
    database.close();
    rmSync(keyFile(machine));
    assert.notDeepEqual(filesWith(machine.home, CANARY), [], "the home has it in plain text");
    return machine;
  }

  it("are sealed at the first start, are used, and are in no byte of the state folder after the next stop", async () => {
    const machine = await plainHome();
    try {
      await machine.up();
      assert.match(await machine.ok("config", "get", "model.headers.X-Canary"), /redacted/);
      assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
      await machine.ok("down");
      for (const secret of [CANARY, HEADER]) assert.deepEqual(filesWith(machine.home, secret), []);
    } finally {
      await machine.end();
    }
  });

  it("survive a kill of the gateway while it seals them", async () => {
    const machine = await plainHome();
    try {
      for (const moment of ["when it starts", "when it listens", "when it answers"]) {
        const up = machine.gsv(["up", "--port", String(machine.port)]);
        const pid = await until("workerd is started", () => workerd(machine));
        if (moment === "when it listens") await until("it listens", () => listens(machine.port));
        if (moment === "when it answers") await up;
        process.kill(pid, "SIGKILL");
        await up;
        await machine.ok("down");
      }
      await machine.up();
      assert.deepEqual(await keysOfAnAnswer(machine), new Set([`Bearer ${CANARY}`]));
      await machine.ok("down");
      for (const secret of [CANARY, HEADER]) assert.deepEqual(filesWith(machine.home, secret), []);
    } finally {
      await machine.end();
    }
  });
});
