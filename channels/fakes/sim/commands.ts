/** The simulator's commands: a table, each with its help text. */
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
  /** Draws the code and waits for the scan; absent without a terminal. */
  readonly drawQr?: () => Promise<void>;
  /** Runs a program in the terminal. */
  readonly borrow: <T>(work: () => Promise<T>) => Promise<T>;
}
interface Command {
  readonly usage: string;
  readonly help: string;
  /** `words` as typed; `rest(n)` is the text after word n. */
  readonly run: (stage: Stage, words: readonly string[], rest: (n: number) => string) => Promise<void> | void;
}
/** An unknown or incomplete command. */
export class Mistake extends Error {}
const WAIT_MS = 30_000;

function needed(text: string, what: string): string {
  if (text === "") throw new Mistake(`${what} is missing`);
  return text;
}

const WHATSAPP: Readonly<Record<string, Command>> = {
  pair: {
    usage: "wa pair [code]",
    help: "link the fake phone by QR code or by pairing code",
    run: async ({ wa, drawQr }, words) => {
      if (words[0] === "code") await wa.typeCode();
      else if (drawQr) await drawQr();
      else await wa.scan();
    },
  },
  scan: { usage: "wa scan", help: "the phone scans the QR code that is shown now", run: ({ wa }) => wa.scan() },
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
      await wa.say(name, needed(rest(1), "the text"), true);
    },
  },
  edit: {
    usage: "wa edit ann|bob TEXT",
    help: "edit their last message",
    run: async ({ wa }, [name], rest) => {
      if (!whatsapp.isName(name)) throw new Mistake("say who: ann or bob");
      await wa.edit(name, needed(rest(1), "the new text"));
    },
  },
  voice: {
    usage: "wa voice ann|bob",
    help: "send a voice note",
    run: async ({ wa }, [name = "ann"]) => {
      if (!whatsapp.isName(name)) throw new Mistake("say who: ann or bob");
      await wa.voice(name);
    },
  },
  self: {
    usage: "wa self TEXT",
    help: "write on the linked phone to its own number",
    run: ({ wa }, _words, rest) => wa.toSelf(needed(rest(0), "the text")),
  },
  drop: { usage: "wa drop", help: "cut the connection to WhatsApp", run: ({ wa }) => wa.fake.drop() },
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
  drop: { usage: "dc drop", help: "cut the connection to Discord", run: ({ dc }) => dc.fake.gateway.cut() },
};

const GENERAL: Readonly<Record<string, Command>> = {
  status: { usage: "status", help: "show the channels' status", run: (stage) => status(stage) },
  pairs: { usage: "pairs", help: "list pairing requests", run: (stage) => pairs(stage) },
  approve: {
    usage: "approve CHANNEL CODE|SENDER [owner]",
    help: "approve a pairing request",
    run: async ({ gateway, journal }, [channel = "", senderId = "", role]) => {
      needed(senderId, "who");
      const result = await gateway.call("pair.approve", { channel, senderId, ...(role === "owner" ? { role } : {}) });
      journal.say(`${String(result["senderName"] ?? result["senderId"])} is let in as ${String(result["role"] ?? "guest")}.`);
    },
  },
  reject: {
    usage: "reject CHANNEL CODE|SENDER",
    help: "reject a pairing request",
    run: async ({ gateway, journal }, [channel = "", senderId = ""]) => {
      const result = await gateway.call("pair.reject", { channel, senderId: needed(senderId, "who") });
      journal.say(`${String(result["senderId"])} is turned away.`);
    },
  },
  restart: {
    usage: "restart",
    help: "restart the gateway and the channels; WhatsApp and Discord keep running",
    run: async ({ gateway, journal }) => {
      await gateway.down();
      journal.say(`Gateway and channels are running again after ${await gateway.up()} ms.`);
    },
  },
  kill: {
    usage: "kill",
    help: "kill -9 of the process that runs gateway and channels; it comes back by itself",
    run: async ({ gateway, journal }) => {
      await gateway.kill();
      journal.say("The gateway was killed and is running again.");
    },
  },
  wait: {
    usage: "wait TEXT",
    help: "wait until a person sees this text (for scripts)",
    run: ({ journal }, _words, rest) => journal.seen(needed(rest(0), "the text"), WAIT_MS),
  },
  log: {
    usage: "log [LINES]",
    help: "show the end of the gateway's log",
    run: ({ gateway, journal }, [lines = "20"]) => journal.say(journal.tail(gateway.log, Math.max(1, Number.parseInt(lines, 10) || 20))),
  },
  gsv: {
    usage: "gsv ARGS...",
    help: "run any gsv command here: gsv chat, gsv channel list, gsv config set ...",
    run: async ({ gateway, borrow }, _words, rest) => {
      // Only quotes work as in a shell.
      const args = [...rest(0).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? "");
      const { code } = await borrow(() => gateway.gsv(args, true));
      if (code !== 0) throw new Mistake(`gsv ended with ${code}`);
    },
  },
};

/** Runs one line. False: quit. */
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
  if (all.length === 0) journal.say("There are no pairing requests.");
  for (const { channel, senderId, senderName, code } of all)
    journal.say(`${String(channel)}: ${String(senderName ?? "")} ${String(senderId)}, code ${String(code ?? "-")}`);
}
