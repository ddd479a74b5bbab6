/**
 * `./scripts/sim`: the gateway and its channels against a fake WhatsApp and a fake Discord on this machine, with a prompt that plays
 * the people. Reads commands from a terminal, a pipe or a file. Ends everything that it started.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { help, Mistake, perform, type Stage } from "./commands.ts";
import { DiscordSide, OWNERS as DISCORD_OWNERS } from "./discord.ts";
import { Gateway } from "./gateway.ts";
import { Journal } from "./journal.ts";
import { readOptions, USAGE } from "./options.ts";
import { OWNERS as WHATSAPP_OWNERS, WhatsAppSide } from "./whatsapp.ts";

const LOOK_EVERY_MS = 50;
const MARKER = "gsv-sim";

async function main(): Promise<number> {
  const values = readOptions(process.argv.slice(2));
  if (values.help === true) {
    console.log(`${USAGE}\n\n${help()}`);
    return 0;
  }
  const bin = process.env["GSV_BIN"] ?? "";
  if (!existsSync(bin)) throw new Mistake("GSV_BIN does not name the gsv program; start it with ./scripts/sim");
  const lines = script(values.script);
  const home = homeAt(values.home);
  const journal = new Journal(values.home === undefined ? `${home}.log` : join(home, "sim.log"));
  const gateway = new Gateway(bin, home, journal);
  const wa = new WhatsAppSide(gateway, journal);
  const dc = new DiscordSide(journal);
  const looking = setInterval(() => {
    wa.look();
    dc.look();
  }, LOOK_EVERY_MS);
  // Ends at the last command, an error or a signal.
  const ends: Promise<number>[] = [];
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)
    ends.push(new Promise((end) => process.once(signal, () => end(status))));
  try {
    return await Promise.race([...ends, play()]);
  } finally {
    clearInterval(looking);
    journal.prompt?.close();
    await gateway.down();
    await Promise.all([wa.fake.close(), dc.fake.close()]);
    journal.note("gateway", journal.tail(gateway.log, 100_000));
    if (values.home === undefined) rmSync(home, { recursive: true, force: true });
    console.error(`Everything that was started has stopped. Log: ${journal.file}`);
  }

  async function play(): Promise<number> {
    await Promise.all([wa.listen(), dc.listen()]);
    const certificate = join(home, "fake-whatsapp.pem");
    writeFileSync(certificate, wa.fake.tls.cert);
    const vars = { WHATSAPP_URL: wa.fake.url, WHATSAPP_NOISE_ROOT: wa.fake.rootHex };
    gateway.configure({ whatsapp: { enabled: true, vars, trustedCertificates: [certificate] }, discord: { enabled: true } });
    const took = await gateway.up();
    if (values.model !== true) await gateway.call("config.set", { path: "model", value: { provider: "demo", id: "demo" } });
    await gateway.call("config.set", { path: "channels.whatsapp.owners", value: WHATSAPP_OWNERS });
    await gateway.call("config.set", { path: "channels.discord.owners", value: DISCORD_OWNERS });
    await gateway.call("channel.start", { channel: "whatsapp", config: { selfChat: true } });
    await gateway.call("channel.start", { channel: "discord", config: { token: dc.fake.token, apiBase: dc.fake.api } });
    // Messages from before the bot's first session do not reach it.
    await dc.online();
    journal.say(`Gateway, WhatsApp and Discord channels are up after ${took} ms; WhatsApp and Discord are fakes on this machine.`);
    journal.say(`Log: ${journal.file}\nTo link the fake phone: wa pair. Then: wa ann hello. All commands: help.`);
    const stage: Stage = { gateway, wa, dc, journal, borrow: (work) => work() };
    return lines === undefined ? prompt(stage) : follow(stage, lines);
  }
}

/** Runs commands in order until the first failure. */
async function follow(stage: Stage, lines: Iterable<string> | AsyncIterable<string>): Promise<number> {
  for await (const line of lines) {
    try {
      if (!(await perform(stage, line))) return 0;
    } catch (error) {
      stage.journal.say(`error: ${line}: ${words(error)}`);
      return 1;
    }
  }
  return 0;
}

/** Interactive: prints a mistake and reads the next line. */
async function prompt(stage: Stage): Promise<number> {
  const { journal } = stage;
  let terminal: Interface;
  let leave: (status: number) => void = () => undefined;
  const left = new Promise<number>((end) => {
    leave = end;
  });
  let waiting: (line: string) => void = () => undefined;
  const open = (): Interface => {
    const made = createInterface({ input: process.stdin, output: process.stdout, prompt: "sim> ", terminal: true });
    made.on("line", (line) => waiting(line));
    made.on("SIGINT", () => leave(130));
    made.on("close", () => {
      if (made === terminal) leave(0);
    });
    return made;
  };
  terminal = open();
  journal.prompt = terminal;
  const borrow = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = terminal;
    terminal = createInterface({ input: process.stdin });
    terminal.close();
    mine.close();
    journal.prompt = undefined;
    try {
      return await work();
    } finally {
      terminal = open();
      journal.prompt = terminal;
    }
  };
  const full: Stage = { ...stage, borrow, drawQr: () => borrow(() => drawQr(stage)) };
  const reading = async (): Promise<number> => {
    for (;;) {
      terminal.prompt();
      const line = await new Promise<string>((next) => {
        waiting = next;
      });
      try {
        if (!(await perform(full, line))) return 0;
      } catch (error) {
        journal.say(words(error));
      }
    }
  };
  return Promise.race([left, reading()]);
}

/** `gsv channel login` draws the code; Enter scans it, Ctrl-C cancels. */
async function drawQr({ gateway, wa, journal }: Stage): Promise<void> {
  journal.say("The code is drawn below. Enter: scan it. Ctrl-C: cancel.");
  process.stdin.setRawMode(true);
  process.stdin.resume();
  const drawing = gateway.login();
  const onKey = (keys: Buffer): void => {
    if (keys.includes(3)) drawing.leave();
    else if (keys.includes(13) || keys.includes(10)) wa.scan().catch((error: unknown) => journal.note("sim", words(error)));
  };
  process.stdin.on("data", onKey);
  try {
    await drawing.ended;
  } finally {
    process.stdin.off("data", onKey);
    process.stdin.setRawMode(false);
  }
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Undefined when a person types. */
function script(file: string | undefined): Iterable<string> | AsyncIterable<string> | undefined {
  if (file !== undefined && file !== "-") return readFileSync(file, "utf8").split("\n");
  return file === "-" || !process.stdin.isTTY ? stdinLines() : undefined;
}
/** Starts reading at the first request, because earlier lines would be lost. */
async function* stdinLines(): AsyncGenerator<string> {
  yield* createInterface({ input: process.stdin });
}
/** A separate home, so that settings for fakes never reach a real one. */
function homeAt(given: string | undefined): string {
  if (given === undefined) return mkdtempSync(join(tmpdir(), "gsv-sim-"));
  const home = resolve(given);
  if (existsSync(home) && readdirSync(home).length > 0 && !existsSync(join(home, MARKER)))
    throw new Mistake(`${home} is no home of a simulator; give a new or empty folder`);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeFileSync(join(home, MARKER), "The home of a simulator: ./scripts/sim --home\n");
  return home;
}

main().then(
  (status) => {
    // Only an open stdin can be left.
    process.exit(status);
  },
  (error: unknown) => {
    console.error(error instanceof Mistake ? error.message : error);
    process.exitCode = error instanceof Mistake ? 2 : 1;
  },
);
