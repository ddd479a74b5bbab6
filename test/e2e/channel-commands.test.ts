/** Channels as a person sets them up: from an empty home, by commands only, to a conversation. The platforms are fakes. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FakePlatform } from "./fake-platform.ts";
import { type Json, Machine, until } from "./support.ts";

const ANN = "15550002222";

describe("gsv channel and gsv pair", () => {
  const machine = new Machine();
  const fakes: FakePlatform[] = [];
  let whatsapp: Record<string, string> = {};
  let discord: Record<string, string> = {};
  const fake = (script: string, ...args: readonly string[]): Promise<Record<string, string>> => {
    const one = new FakePlatform(script, ...args);
    fakes.push(one);
    return one.told();
  };
  const wish = async (what: string, wanted: Json): Promise<Json> => {
    const response = await fetch(`${whatsapp["http"] ?? ""}/${what}`, { method: "POST", body: JSON.stringify(wanted) });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as Json;
  };
  const channels = async (): Promise<Map<unknown, { bound: boolean; accounts: { connected: boolean }[] }>> => {
    const { channels } = JSON.parse(await machine.ok("channel", "list", "--json")) as {
      channels: { channel: string; bound: boolean; accounts: { connected: boolean }[] }[];
    };
    return new Map(channels.map((entry) => [entry.channel, entry]));
  };
  before(async () => {
    [whatsapp, discord] = await Promise.all([fake("whatsapp/main.ts", "--port", "0"), fake("discord/main.ts", "0")]);
    const { WHATSAPP_URL = "", WHATSAPP_NOISE_ROOT = "" } = whatsapp;
    mkdirSync(join(machine.home, "gateway"), { recursive: true, mode: 0o700 });
    const vars = { WHATSAPP_URL, WHATSAPP_NOISE_ROOT };
    writeFileSync(
      join(machine.home, "gateway", "channels.json"),
      JSON.stringify({ version: 1, channels: { whatsapp: { enabled: false, vars } } }),
      { mode: 0o600 },
    );
    await machine.up();
  });
  after(async () => {
    await machine.end();
    for (const one of fakes) await one.end();
  });

  it("[S5] a start enables a channel that is not used yet; its token is stored and never shown", async () => {
    assert.deepEqual(
      [...(await channels())].map(([name, { bound }]) => [name, bound]),
      [
        ["discord", false],
        ["example", false],
        ["whatsapp", false],
      ],
    );
    const { apiBase = "", token = "" } = discord;
    const args = ["channel", "discord", "start", "--config", `apiBase=${apiBase}`, "--token-file", "-"];
    const started = await machine.gsv(args, { input: `${token}\n` });
    assert.equal(started.code, 0, started.stderr);
    assert.match(started.stderr, /Enabling discord .*discord is connected as gsv/s);
    assert.ok(!(started.stdout + started.stderr).includes(token));
    await machine.ok("channel", "discord", "stop");
    assert.match(await machine.ok("channel", "discord"), /state +stopped/);
    // Without input on stdin, the stored settings are used again.
    await machine.ok("channel", "start", "discord");
    assert.equal((await channels()).get("discord")?.accounts[0]?.connected, true);
  });

  it("[P7] after a login by QR code, a stranger's first message is answered when the pairing is approved", async () => {
    const login = machine.gsv(["channel", "whatsapp", "login", "--json"]);
    const client = await until(
      "the gateway runs with WhatsApp",
      async () => {
        const one = await machine.client().catch(() => undefined);
        const status = await one?.call("channel.status", { channel: "whatsapp" }).catch(() => undefined);
        const [account] = (status?.["accounts"] ?? []) as { mode?: string }[];
        if (account?.mode === "pairing") return one;
        one?.close();
        return undefined;
      },
      undefined,
      100,
    );
    const { login: shown } = await client.call("channel.login", { channel: "whatsapp" });
    await wish("scan", { qr: (shown as { qr: string }).qr });
    const ended = await login;
    assert.equal(ended.code, 0, ended.stderr);
    const states = ended.stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { state: string }).state);
    assert.deepEqual([states[0], states.at(-1)], ["qr", "connected"]);

    await wish("say", { from: ANN, text: "say hello to Ann" });
    const pair = await until(
      "Ann waits",
      async () => {
        const { pairs } = await client.call("pair.list");
        return Object.values(pairs as Record<string, { code: string; senderName: string }>)[0];
      },
      undefined,
      100,
    );
    assert.match(await machine.ok("pair", "list"), new RegExp(`${pair.code} +Ann .*say hello to Ann`));
    assert.match(await machine.ok("status"), /whatsapp +connected as \+\d+.*1 pairing request/s);
    const letIn = await machine.gsv(["pair", "approve", "whatsapp", pair.code.toLowerCase()]);
    assert.equal(letIn.code, 0, letIn.stderr);
    await until("Ann is answered", async () => JSON.stringify(await wish("shown", { pn: ANN })).includes("hello to Ann"), undefined, 100);
    client.close();

    const out = await machine.gsv(["channel", "whatsapp", "logout", "--yes"]);
    assert.equal(out.code, 0, out.stderr);
    assert.match(await machine.ok("channel", "whatsapp"), /not logged in/);
  });

  it("[S5] [A10] a bot's token is in no file while its account is in use, nor after its logout", async () => {
    const { token = "" } = discord;
    const holding = (): string[] =>
      readdirSync(join(machine.home, "gateway"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((file) => readFileSync(file).includes(token));
    assert.match(await machine.ok("channel", "discord"), /state +connected/);
    assert.deepEqual(holding(), [], "the token is stored sealed while the account is in use");
    await machine.ok("channel", "discord", "logout", "--yes");
    // The journal of the database ends with the process.
    await machine.ok("down");
    assert.deepEqual(holding(), []);
    await machine.ok("up");
  });

  it("an unknown channel is refused with a list of the known ones", async () => {
    const { code, stderr } = await machine.gsv(["channel", "fax", "start"]);
    assert.equal(code, 1);
    assert.match(stderr, /discord, example, whatsapp/);
  });
});
