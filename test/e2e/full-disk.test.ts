/**
 * A disk that becomes full while the gateway works: a real one, mounted over the folder with its state. Skipped where this user can mount
 * nothing, not even in a mount namespace.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import {
  type Client,
  DEFAULT_SESSION,
  type FakeModel,
  Machine,
  processesWith,
  startFakeModel,
  textOf,
  transcript,
  until,
  WireError,
} from "./support.ts";

/** Larger than what a gateway writes at its start, and filled in a moment. */
const DISK = "size=48m,mode=0700";
const NAMESPACE = ["--user", "--map-root-user", "--mount"];

/** How this process can mount a disk: `itself`, or in a namespace of its own. Undefined: not at all. */
function mounts(): "itself" | "namespace" | undefined {
  if (process.env["GSV_TEST_MOUNTS"] === "itself" || spawnSync("unshare", ["--mount", "true"]).status === 0) return "itself";
  return spawnSync("unshare", [...NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0 ? "namespace" : undefined;
}
const how = mounts();

/** A machine whose state is on a disk of its own. */
class SmallMachine extends Machine {
  readonly #filler = join(this.home, "filler");
  mount(): void {
    mkdirSync(this.home, { mode: 0o700 });
    const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", DISK, "none", this.home], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  }
  /** Takes all that is left. */
  fill(): void {
    const file = openSync(this.#filler, "a");
    try {
      for (const size of [1 << 20, 4096, 1]) {
        try {
          for (;;) if (writeSync(file, Buffer.alloc(size)) < size) break;
        } catch (error) {
          assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
        }
      }
    } finally {
      closeSync(file);
    }
  }
  free(): void {
    rmSync(this.#filler);
  }
  override async end(): Promise<void> {
    await this.gsv(["down"]);
    spawnSync("umount", ["--lazy", this.home]);
    await super.end();
  }
}

if (how === "namespace")
  it("in a namespace, where this user may mount a disk", () => {
    const { status, stdout, stderr } = spawnSync("unshare", [...NAMESPACE, process.execPath, fileURLToPath(import.meta.url)], {
      encoding: "utf8",
      env: { ...process.env, GSV_TEST_MOUNTS: "itself", NODE_TEST_CONTEXT: undefined },
    });
    assert.equal(status, 0, `${stdout}\n${stderr}`);
  });

describe("a disk that is full", {
  skip: how === "itself" ? false : how === "namespace" ? "runs in a namespace" : "no disk can be mounted here",
}, () => {
  const machine = new SmallMachine();
  let fake: FakeModel;
  let client: Client;
  before(async () => {
    machine.mount();
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
    client = await machine.client();
  });
  after(async () => {
    await machine.end();
    await fake.close();
  });

  const texts = async (): Promise<string[]> => (await transcript(client)).map(({ content }) => shown(content));
  const isFull = (error: unknown): boolean => error instanceof WireError && error.reason === "storage.full";
  const send = (id: string, message: string): Promise<unknown> =>
    client.call("chat.send", { sessionKey: DEFAULT_SESSION, message, messageId: id, runId: id });

  it("[P1] [P10] [P12] an accepted message is answered once there is space; one that comes meanwhile is refused with what to do", async () => {
    await client.ask("say one");
    fake.enqueue({ text: "two", gate: "open" });
    const runId = await client.say("the second message");
    await until("the model is asked", () => fake.requests.length === 2);
    machine.fill();
    fake.openGate("open");
    await assert.rejects(send("m3", "say three"), isFull);
    const { code, stderr } = await machine.gsv(["chat", "say four"]);
    assert.equal(code, 4, stderr);
    assert.match(stderr, /The disk is full[\s\S]*Free some space on the gateway's disk \(`df -h` shows/);

    machine.free();
    assert.equal((await client.ending(runId)).state, "final");
    assert.equal(((await send("m3", "say three")) as { status: string }).status, "started");
    assert.equal(textOf(await client.ending("m3")), "three");
    assert.equal(await machine.ok("chat", "say four"), "four\n");
    const after = await texts();
    assert.deepEqual(
      [after.slice(0, 3), after[3] !== "", after.slice(4)],
      [["say one", "one", "the second message"], true, ["say three", "three", "say four", "four"]],
      "each message once, and nothing of those that were refused",
    );
  });

  it("[UP6] the first start of another version on a full disk says what is needed and changes nothing; with space it goes on", async () => {
    await client.ask("say kept");
    await machine.ok("down");
    const last = join(machine.home, "gateway", "last-start");
    writeFileSync(last, "0.0.1", { mode: 0o600 });
    machine.fill();
    const { code, stderr } = await machine.gsv(["up"]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /too little space for a copy of the state[\s\S]*are needed and[\s\S]*the state is as it was[\s\S]*df -h/);
    assert.ok(!existsSync(join(machine.home, "gateway", "before-upgrade")));
    assert.equal(readFileSync(last, "utf8"), "0.0.1");
    machine.free();
    await machine.up();
    assert.ok(existsSync(join(machine.home, "gateway", "before-upgrade", "do")));
    client = await machine.client();
    assert.ok((await texts()).includes("kept"));
    await machine.ok("down");
    await machine.up();
    client = await machine.client();
  });

  it("[P12] a gateway that is killed while the disk is full starts again by itself, and answers what it had accepted", async () => {
    await client.ask("say five");
    const asked = fake.requests.length;
    const before = await texts();
    fake.enqueue({ text: "never stored", gate: "shut" });
    const runId = await client.say("before the kill");
    await until("the model is asked", () => fake.requests.length === asked + 1);
    machine.fill();
    const { workerdPid } = machine.state();
    assert(workerdPid !== undefined);
    process.kill(workerdPid, "SIGKILL");
    await client.untilClosed();
    const config = join(machine.home, "gateway", "config.");
    await until("another one is started", () => processesWith(config).some((pid) => pid !== workerdPid));
    machine.free();
    await until("the gateway answers", async () => (await machine.gsv(["status"])).code === 0, 60_000, 200);
    client = await machine.client();
    await until("the message is answered", async () => (await texts()).length === before.length + 2, 60_000, 200);
    assert.equal((await texts())[before.length], "before the kill");
    assert.equal(await machine.ok("chat", "say six"), "six\n");
    assert.ok(!client.chats(runId).some(({ state }) => state === "error"));
  });
});

function shown(content: unknown): string {
  if (typeof content === "string") return content;
  return (content as { text?: string }[]).map(({ text }) => text ?? "").join("");
}
