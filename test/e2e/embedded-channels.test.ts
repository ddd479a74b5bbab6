/** Channels of an embedded gateway: only enabled ones run, webhooks reach them through the gateway, and conversations survive restarts. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { signed } from "../../channels/fakes/example/program.ts";
import { freePort, Machine, RUNTIME, transcript, until } from "./support.ts";

const SECRET = "a-secret-of-many-letters";
interface Heard {
  readonly n: number;
  readonly to: string;
  readonly text: string;
}

/** A program that uses the example channel. */
class Caller {
  readonly #machine: Machine;
  constructor(machine: Machine) {
    this.#machine = machine;
  }
  async #call(method: "GET" | "POST", path: string, body = ""): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#machine.port}/channels/${path}`, {
      method,
      headers: signed(SECRET, body),
      ...(method === "POST" ? { body } : {}),
    });
  }
  say(text: string, id: string = randomUUID()): Promise<Response> {
    return this.#call("POST", "example/default", JSON.stringify({ id, from: "caller", text }));
  }
  async heard(): Promise<Heard[]> {
    const response = await this.#call("GET", "example/default?after=0");
    assert.equal(response.status, 200, await response.clone().text());
    return ((await response.json()) as { messages: Heard[] }).messages;
  }
  /** All that was said so far, when one of it is this. */
  hears(text: string): Promise<Heard[]> {
    return until(
      `the caller hears ${text}`,
      async () => {
        const all = await this.heard().catch((): Heard[] => []);
        return all.some((heard) => heard.text.includes(text)) ? all : undefined;
      },
      undefined,
      50,
    );
  }
}
const settings = (machine: Machine, content: unknown): void => {
  const folder = join(machine.home, "gateway");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, "channels.json"), typeof content === "string" ? content : JSON.stringify(content), { mode: 0o600 });
};
const enabled = (...names: readonly string[]): object => ({
  version: 1,
  channels: Object.fromEntries(names.map((name) => [name, { enabled: true }])),
});
/** The example channel with a secret, open to this caller. */
async function startExample(machine: Machine): Promise<void> {
  const client = await machine.client();
  await client.call("config.set", { path: "channels.example", value: { allowFrom: ["caller"] } });
  await client.call("channel.start", { channel: "example", config: { secret: SECRET } });
  client.close();
}

describe("a channel of the gateway on this machine", () => {
  const machine = new Machine();
  const caller = new Caller(machine);
  before(async () => {
    settings(machine, enabled("example"));
    await machine.up();
    await startExample(machine);
  });
  after(() => machine.end());

  it("a webhook reaches the channel through the gateway, and the answer is fetched there", async () => {
    const response = await caller.say("say first");
    assert.equal(response.status, 200, await response.text());
    const [heard] = await caller.hears("first");
    assert.equal(heard?.to, "caller");
  });

  it("[X17] requests without a signature, from a browser, or for a channel that is not enabled are refused", async () => {
    const at = `http://127.0.0.1:${machine.port}/channels`;
    assert.equal((await fetch(`${at}/example/default`, { method: "POST", body: "{}" })).status, 401);
    assert.equal((await fetch(`${at}/example/default`, { headers: { Origin: "https://evil.example" } })).status, 403);
    assert.equal((await fetch(`${at}/whatsapp/default`)).status, 404);
  });

  it("[P2][P9] the conversation continues after `gsv down` and `gsv up`, and a message that is repeated over the restart is answered once", async () => {
    const id = randomUUID();
    await caller.say("say second", id);
    await caller.hears("second");
    await machine.ok("down");
    await machine.up();
    const again = await caller.say("say second", id);
    assert.equal(((await again.json()) as { duplicate: boolean }).duplicate, true);
    await caller.say("say third");
    const all = (await caller.hears("third")).map(({ text }) => text);
    assert.equal(all.filter((text) => text.includes("second")).length, 1, JSON.stringify(all));
  });

  it("[P12][K22] workerd killed right after a message was accepted: one answer, by itself", async () => {
    const taken = await caller.say("say fourth");
    assert.equal(taken.status, 200);
    await machine.killWorkerd();
    await caller.hears("fourth");
    await caller.say("say fifth");
    const all = (await caller.hears("fifth")).map(({ text }) => text);
    assert.equal(all.filter((text) => text.includes("fourth")).length, 1, JSON.stringify(all));
  });
});

describe("a channel that is enabled while the gateway runs", () => {
  const machine = new Machine();
  const caller = new Caller(machine);
  before(() => machine.up());
  after(() => machine.end());

  it("starts at once, interrupts no conversation and no run, and stops when it is disabled", async () => {
    await machine.ok("chat", "say before");
    const { workerdPid } = machine.state();
    assert.ok(!readFileSync(join(machine.home, "gateway", "config.capnp"), "utf8").includes("channel"));
    const client = await machine.client();
    await client.call("config.set", { path: "channels.example", value: { allowFrom: ["caller"] } });
    const started = await machine.gsv(["channel", "start", "example", "--config", "secret=-"], { input: SECRET });
    assert.equal(started.code, 0, started.stderr);
    const now = machine.state();
    assert.equal(now.phase, "ready");
    assert.notEqual(now.workerdPid, workerdPid);
    assert.equal(now.restarts, 0, "a reload is no crash");
    await caller.say("say through the channel");
    await caller.hears("through the channel");
    await machine.ok("chat", "say after");
    const again = await machine.client();
    const texts = JSON.stringify(await transcript(again));
    assert.ok(texts.includes("say before") && texts.includes("say after"), texts);
    // Its state survives the time without the channel.
    settings(machine, { version: 1, channels: { example: { enabled: false } } });
    await machine.ok("down");
    await machine.up();
    assert.equal((await caller.say("say unheard")).status, 404);
    settings(machine, enabled("example"));
    await machine.ok("down");
    await machine.up();
    assert.ok((await caller.heard()).some(({ text }) => text.includes("through the channel")));
  });

  it("a configuration that workerd refuses is rolled back, and the gateway keeps running", async () => {
    // An invalid script in place of the channel's bundle.
    const runtime = join(machine.folder, "runtime");
    mkdirSync(join(runtime, "channels"), { recursive: true });
    for (const name of readdirSync(RUNTIME)) if (name !== "channels") symlinkSync(join(RUNTIME, name), join(runtime, name));
    const { size } = statSync(join(RUNTIME, "channels", "discord.js"));
    writeFileSync(join(runtime, "channels", "discord.js"), "this is (no script".padEnd(size));
    symlinkSync(join(RUNTIME, "channels", "example.js"), join(runtime, "channels", "example.js"));
    await machine.ok("down");
    const up = await machine.gsv(["up", "--port", String(machine.port)], { env: { GSV_RUNTIME_DIR: runtime } });
    assert.equal(up.code, 0, up.stderr);
    const started = await machine.gsv(["channel", "start", "discord"], {
      input: "MTAw.Fake-1.fake-token-of-a-bot",
      env: { GSV_RUNTIME_DIR: runtime },
    });
    assert.notEqual(started.code, 0, started.stdout);
    assert.match(started.stderr, /not ready with its new configuration/);
    assert.match(await machine.ok("chat", "say still there"), /still there/);
    assert.ok((await caller.heard()).length > 0);
  });
});

describe("channels that cannot run do not stop the gateway", () => {
  it("a broken channels.json is reported and left unchanged, and no channel runs", async () => {
    const machine = new Machine();
    try {
      settings(machine, '{"version":1,"channels":{"example":{"enabled":"secret-word"}}}');
      const up = await upWith(machine);
      assert.match(up.stderr, /no channel runs: .*channels\.json cannot be used/);
      assert.ok(!up.stderr.includes("secret-word"), up.stderr);
      assert.equal((await fetch(`http://127.0.0.1:${machine.port}/channels/example/default`)).status, 404);
      assert.match(await machine.ok("chat", "say well"), /well/);
      assert.match(readFileSync(join(machine.home, "gateway", "channels.json"), "utf8"), /secret-word/);
    } finally {
      await machine.end();
    }
  });

  it("a channel without a bundle and an unknown channel are reported, and the others run", async () => {
    const machine = new Machine();
    const caller = new Caller(machine);
    try {
      const runtime = join(machine.folder, "runtime");
      mkdirSync(join(runtime, "channels"), { recursive: true });
      for (const name of readdirSync(RUNTIME)) if (name !== "channels") symlinkSync(join(RUNTIME, name), join(runtime, name));
      symlinkSync(join(RUNTIME, "channels", "example.js"), join(runtime, "channels", "example.js"));
      settings(machine, enabled("discord", "example", "nowhere"));
      const up = await upWith(machine, { GSV_RUNTIME_DIR: runtime });
      assert.match(up.stderr, /channel discord is enabled and does not run: .*discord\.js is missing/);
      assert.match(up.stderr, /channel nowhere is enabled and does not run/);
      await startExample(machine);
      await caller.say("say alone");
      await caller.hears("alone");
    } finally {
      await machine.end();
    }
  });
});

async function upWith(machine: Machine, env: Readonly<Record<string, string>> = {}): Promise<{ stderr: string }> {
  machine.port = await freePort();
  const ran = await machine.gsv(["up", "--port", String(machine.port)], { env });
  assert.equal(ran.code, 0, ran.stderr);
  return ran;
}
