/** What can be typed at the simulator's prompt. A table; each entry says its own help. */
import * as discord from "./discord.ts";
import type { DiscordSide } from "./discord.ts";
import type { Gateway, Json } from "./gateway.ts";
import type { Journal } from "./journal.ts";
import * as whatsapp from "./whatsapp.ts";
import type { WhatsAppSide } from "./whatsapp.ts";

export interface Stage {
  readonly gateway: Gateway;
  readonly wa: WhatsAppSide;
  readonly dc: DiscordSide;
  readonly journal: Journal;
  /** Draws the code and lets the person scan it; absent without a terminal. */
  readonly drawQr?: () => Promise<void>;
  /** Gives the terminal to a program meanwhile. */
  readonly borrow: <T>(work: () => Promise<T>) => Promise<T>;
}
interface Command {
  readonly usage: string;
  readonly help: string;
  /** `words` as typed, `rest(n)` the text after the n-th of them. */
  readonly run: (stage: Stage, words: readonly string[], rest: (n: number) => string) => Promise<void> | void;
}
/** What was typed is not a command, or not a whole one. */
export class Mistake extends Error {}
const WAIT_MS = 30_000;

function needed(text: string, what: string): string {
  if (text === "") throw new Mistake(`${what} is missing`);
  return text;
}

const WHATSAPP: Readonly<Record<string, Command>> = {
  pair: {
    usage: "wa pair [code]",
    help: "links the fake phone: by the QR code, or by a code that it types in",
    run: async ({ wa, drawQr }, words) => {
      if (words[0] === "code") await wa.typeCode();
      else if (drawQr) await drawQr();
      else await wa.scan();
    },
  },
  scan: { usage: "wa scan", help: "the phone scans the QR code that is shown now, wherever that is", run: ({ wa }) => wa.scan() },
  ann: {
    usage: "wa ann|bob TEXT",
    help: "Ann (the owner) or Bob (a stranger) writes to the agent",
    run: ({ wa }, _words, rest) => wa.say("ann", needed(rest(0), "what Ann writes"), false),
  },
  group: {
    usage: "wa group ann|bob TEXT",
    help: "... in their group; @gsv mentions the agent",
    run: async ({ wa }, [name], rest) => {
      if (!whatsapp.isName(name)) throw new Mistake("say who writes: ann or bob");
      await wa.say(name, needed(rest(1), "what is written"), true);
    },
  },
  edit: {
    usage: "wa edit ann|bob TEXT",
    help: "corrects their last message",
    run: async ({ wa }, [name], rest) => {
      if (!whatsapp.isName(name)) throw new Mistake("say who: ann or bob");
      await wa.edit(name, needed(rest(1), "the new text"));
    },
  },
  voice: {
    usage: "wa voice ann|bob",
    help: "sends a voice note",
    run: async ({ wa }, [name = "ann"]) => {
      if (!whatsapp.isName(name)) throw new Mistake("say who: ann or bob");
      await wa.voice(name);
    },
  },
  self: {
    usage: "wa self TEXT",
    help: "on the linked phone, to its own number",
    run: ({ wa }, _words, rest) => wa.toSelf(needed(rest(0), "the text")),
  },
  drop: { usage: "wa drop", help: "the line to WhatsApp breaks", run: ({ wa }) => wa.fake.drop() },
};
const sayAs =
  (name: "ann" | "bob"): Command["run"] =>
  ({ wa }, _words, rest) =>
    wa.say(name, needed(rest(0), "the text"), false);

const DISCORD: Readonly<Record<string, Command>> = {
  alice: {
    usage: "dc alice|carol TEXT",
    help: "Alice (the owner) or Carol (a stranger) writes a direct message",
    run: ({ dc }, _words, rest) => dc.dm("alice", needed(rest(0), "the text")),
  },
  guild: {
    usage: "dc guild alice|carol TEXT",
    help: "... in #general; @gsv mentions the agent",
    run: ({ dc }, [name], rest) => {
      if (!discord.isName(name)) throw new Mistake("say who writes: alice or carol");
      dc.guild(name, needed(rest(1), "the text"), false);
    },
  },
  thread: {
    usage: "dc thread alice|carol TEXT",
    help: "... in a thread",
    run: ({ dc }, [name], rest) => {
      if (!discord.isName(name)) throw new Mistake("say who writes: alice or carol");
      dc.guild(name, needed(rest(1), "the text"), true);
    },
  },
  slash: {
    usage: "dc slash NAME",
    help: "Alice uses a slash command: status, help, new, stop",
    run: ({ dc }, [name = ""]) => dc.slash(needed(name, "the command's name")),
  },
  drop: { usage: "dc drop", help: "the line to Discord breaks", run: ({ dc }) => dc.fake.gateway.cut() },
};

const GENERAL: Readonly<Record<string, Command>> = {
  status: { usage: "status", help: "how the channels are", run: (stage) => status(stage) },
  pairs: { usage: "pairs", help: "strangers who wait to be let in", run: (stage) => pairs(stage) },
  approve: {
    usage: "approve CHANNEL CODE|SENDER [owner]",
    help: "lets one in",
    run: async ({ gateway, journal }, [channel = "", senderId = "", role]) => {
      needed(senderId, "who");
      const result = await gateway.call("pair.approve", { channel, senderId, ...(role === "owner" ? { role } : {}) });
      journal.say(`${String(result["senderName"] ?? result["senderId"])} is let in as ${String(result["role"] ?? "guest")}.`);
    },
  },
  reject: {
    usage: "reject CHANNEL CODE|SENDER",
    help: "turns one away",
    run: async ({ gateway, journal }, [channel = "", senderId = ""]) => {
      const result = await gateway.call("pair.reject", { channel, senderId: needed(senderId, "who") });
      journal.say(`${String(result["senderId"])} is turned away.`);
    },
  },
  restart: {
    usage: "restart",
    help: "stops everything that is GSV, and starts it again; WhatsApp and Discord stay, as they would",
    run: async ({ gateway, journal }) => {
      await gateway.down();
      journal.say(`Gateway and channels are up again after ${await gateway.up()} ms.`);
    },
  },
  kill: {
    usage: "kill",
    help: "kill -9 of the process that runs gateway and channels; it comes back by itself",
    run: async ({ gateway, journal }) => {
      await gateway.kill();
      journal.say("The gateway was killed, and is back.");
    },
  },
  wait: {
    usage: "wait TEXT",
    help: "until somebody sees this text (for scripts)",
    run: ({ journal }, _words, rest) => journal.seen(needed(rest(0), "the text"), WAIT_MS),
  },
  log: {
    usage: "log [LINES]",
    help: "the end of the gateway's log",
    run: ({ gateway, journal }, [lines = "20"]) => journal.say(journal.tail(gateway.log, Math.max(1, Number.parseInt(lines, 10) || 20))),
  },
  gsv: {
    usage: "gsv ARGS...",
    help: "any command of the program, here: gsv chat, gsv channel list, gsv config set ...",
    run: async ({ gateway, borrow }, _words, rest) => {
      // Quotes as in a shell; nothing else of a shell.
      const args = [...rest(0).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
      const { code } = await borrow(() => gateway.gsv(args, true));
      if (code !== 0) throw new Mistake(`gsv ended with ${code}`);
    },
  },
};

/** Runs one line. False: the person wants to leave. */
export async function perform(stage: Stage, line: string): Promise<boolean> {
  const words = line.trim().split(/\s+/);
  const [first = "", second = ""] = words;
  if (first === "" || first.startsWith("#")) return true;
  stage.journal.note("command", line);
  if (first === "quit" || first === "exit") return false;
  if (first === "help") {
    stage.journal.say(help());
    return true;
  }
  const found = find(first, second);
  if (!found)
    throw new Mistake(`there is no \`${`${first} ${["wa", "dc"].includes(first) ? second : ""}`.trim()}\`; \`help\` lists what there is`);
  const [run, taken] = found;
  const rest = (n: number): string => line.trim().replace(new RegExp(`^(?:\\S+\\s*){${taken + n}}`), "");
  await run(stage, words.slice(taken), rest);
  return true;
}
function find(first: string, second: string): readonly [Command["run"], number] | undefined {
  if (first === "wa" && second === "bob") return [sayAs("bob"), 2];
  if (first === "dc" && second === "carol") return [({ dc }, _words, rest) => dc.dm("carol", needed(rest(0), "the text")), 2];
  const [table, name, taken] =
    first === "wa" ? ([WHATSAPP, second, 2] as const) : first === "dc" ? ([DISCORD, second, 2] as const) : ([GENERAL, first, 1] as const);
  const command = Object.hasOwn(table, name) ? table[name] : undefined;
  return command && [command.run, taken];
}

export function help(): string {
  const part = (title: string, table: Readonly<Record<string, Command>>): string[] => [
    title,
    ...Object.values(table).map(({ usage, help: words }) => `  ${usage.padEnd(38)} ${words}`),
  ];
  return [...part("WhatsApp", WHATSAPP), ...part("Discord", DISCORD), ...part("All", GENERAL), `  ${"help, quit".padEnd(38)}`].join("\n");
}

async function status({ gateway, journal }: Stage): Promise<void> {
  for (const channel of ["whatsapp", "discord"]) {
    const result = await gateway.call("channel.status", { channel });
    for (const account of result["accounts"] as Json[]) {
      const { connected, authenticated, inboxWaiting = 0, outboxWaiting = 0, error } = account;
      const why = error === undefined ? "" : `: ${String(error)}`;
      const words = connected === true ? "connected" : authenticated === true ? `not connected${why}` : `not linked${why}`;
      journal.say(`${channel}: ${words} (${String(inboxWaiting)} in, ${String(outboxWaiting)} out wait)`);
    }
  }
}
async function pairs({ gateway, journal }: Stage): Promise<void> {
  const { pairs: waiting } = (await gateway.call("pair.list")) as { pairs?: Readonly<Record<string, Json>> };
  const all = Object.values(waiting ?? {});
  if (all.length === 0) journal.say("Nobody waits.");
  for (const { channel, senderId, senderName, code } of all)
    journal.say(`${String(channel)}: ${String(senderName ?? "")} ${String(senderId)}, code ${String(code ?? "-")}`);
}
