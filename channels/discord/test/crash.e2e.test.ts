/**
 * The platform on the kit's queues, in one process: the account crashes at every write to its database, and each time all messages are
 * handed over and answered once, in order.
 */
import { readSealingKeys, SEAL_NONCE_BYTES } from "../../../protocol/runtime/sealing.ts";
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { it } from "node:test";
import type { ChannelInbound } from "../../../protocol/gen/types.ts";
import { ALICE, DM, dmOf, FakeDiscord } from "../../fakes/discord/fake-discord.ts";
import { Account } from "../../kit/src/account.ts";
import type { Platform } from "../../kit/src/platform.ts";
import { memoryDatabase } from "../../kit/test/world.ts";
import { readSettings } from "../src/settings.ts";

// The Worker's socket, also in Node.
const shim = new URL("../src/platform/ws-shim.ts", import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "ws" && context.parentURL?.includes("/@discordjs/ws/") === true
      ? { url: shim, shortCircuit: true }
      : next(specifier, context),
});
const { discordPlatform } = await import("../src/platform.ts");

class Died extends Error {}
const never = (): Promise<never> => new Promise<never>(() => {});
/** Sends start only before the crash. */
const mortal = (platform: Platform, alive: () => boolean): Platform => ({
  capabilities: platform.capabilities,
  recognisesNonceMs: platform.recognisesNonceMs,
  mark: (markdown) => platform.mark(markdown),
  ensureConnected: (asked) => platform.ensureConnected(asked),
  disconnect: () => platform.disconnect(),
  isConnected: () => platform.isConnected(),
  status: () => platform.status(),
  send: (part) => (alive() ? platform.send(part) : never()),
});

class Life {
  readonly discord: FakeDiscord;
  /** Accepted messages without duplicates. */
  readonly accepted = new Map<string, ChannelInbound>();
  readonly #db = memoryDatabase();
  #writes = 0;
  #dieAt = Number.POSITIVE_INFINITY;
  ended = false;
  #number = 0;
  #account: Account | undefined;
  #timers = new Set<NodeJS.Timeout>();

  constructor(discord: FakeDiscord) {
    this.discord = discord;
  }
  get writes(): number {
    return this.#writes;
  }
  /** False: the account crashes at this write, or has crashed before. */
  #mayWrite(): boolean {
    this.#writes += 1;
    if (this.#writes === this.#dieAt) this.end();
    return this.#writes !== this.#dieAt;
  }
  /** Drops all memory and sockets. */
  end(): void {
    this.ended = true;
    this.#number += 1;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.discord.gateway.cut();
  }
  /** This write does not happen. */
  dieAt(write: number): void {
    this.#dieAt = write;
  }
  async begin(): Promise<void> {
    const life = this.#number;
    const alive = (): boolean => this.#number === life;
    this.#writes = 0;
    this.#dieAt = Number.POSITIVE_INFINITY;
    this.ended = false;
    const after = (ms: number, work: () => void): (() => void) => {
      const timer = setTimeout(() => (alive() ? work() : undefined), ms);
      this.#timers.add(timer);
      return () => clearTimeout(timer);
    };
    const account: Account = new Account({
      accountId: "default",
      sealing: { keys: readSealingKeys("5e".repeat(32)), nonce: () => crypto.getRandomValues(new Uint8Array(SEAL_NONCE_BYTES)) },
      // A crashed instance writes nothing and receives nothing.
      db: {
        query: <T>(statement: string, ...params: readonly (string | number | null)[]): T[] => {
          if (!alive() || (!statement.startsWith("SELECT") && !this.#mayWrite())) return [];
          return this.#db.query(statement, ...params);
        },
        transaction: (work) => {
          if (!alive()) return work();
          let result: ReturnType<typeof work> | undefined;
          try {
            return this.#db.transaction(() => {
              result = work();
              if (!alive()) throw new Died("this life is over");
              return result;
            });
          } catch (error) {
            if (error instanceof Died && result !== undefined) return result;
            throw error;
          }
        },
      },
      gateway: {
        inbound: async (inbound) => {
          if (!alive()) return never();
          if (!this.accepted.has(inbound.message.id)) this.accepted.set(inbound.message.id, inbound);
          const { peer, message } = inbound;
          return { outcome: "answered", replies: [{ deliveryId: `r-${message.id}`, kind: "answer", peer, text: `re ${message.text}` }] };
        },
        media: async () => undefined,
        store: () => Promise.resolve(undefined),
        read: () => Promise.resolve(null),
        status: async () => {},
        delivered: async () => {},
        mayDeliver: async () => true,
      },
      now: () => Date.now(),
      random: () => 0.5,
      after,
      setAlarm: (at) => void after(Math.max(1, at - Date.now()), () => void account.alarm()),
      keep: (work) => void work.catch(() => {}),
      log: () => {},
      platform: (host, config) => {
        const platform = discordPlatform(host, readSettings(config, {}), () => 0);
        return mortal(platform, alive);
      },
    });
    this.#account = account;
    const { token, api: apiBase } = this.discord;
    await account.start({ token, apiBase });
  }
  async stop(): Promise<void> {
    await this.#account?.stop();
    this.end();
  }
}
const settled = async (look: () => boolean, what: string): Promise<void> => {
  const end = Date.now() + 15_000;
  while (!look()) {
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** Four messages; a crash at the `dieIn`-th write after the first; with `forgets` Discord drops the session, too. */
async function history(dieIn: number, forgets: boolean): Promise<number> {
  const discord = await new FakeDiscord().listen();
  const life = new Life(discord);
  const what = `after ${dieIn} writes${forgets ? " and a lost session" : ""}`;
  try {
    await life.begin();
    // The bot's first action in a resumed session.
    await discord.until(
      ({ kind, method, path }) => kind === "rest" && method === "PUT" && String(path).endsWith("/commands"),
      "the session",
    );
    const said = ["m0", "m1", "m2", "m3"];
    if (forgets) {
      // The history is read only in channels that the bot has read before.
      discord.say({ content: "m0" });
      await settled(() => discord.sent(DM).length === 1, "the first answer");
    }
    const before = life.writes;
    life.dieAt(before + dieIn);
    for (const content of forgets ? said.slice(1) : said) discord.say({ content });
    const whole = (): boolean => discord.sent(DM).length >= said.length;
    await settled(() => whole() || life.ended, "the answers or the end");
    const used = life.writes - before;
    if (life.ended) {
      if (forgets) discord.gateway.forgetSessions();
      await life.begin();
    }
    await settled(whole, `the answers ${what}`);
    const accepted = [...life.accepted.values()].map(({ message, sender }) => [message.text, sender?.id]);
    assert.deepEqual(
      accepted,
      said.map((text) => [text, ALICE.id]),
      what,
    );
    assert.deepEqual(
      discord.sent(DM).map(({ content }) => content),
      said.map((text) => `re ${text}`),
      what,
    );
    return used;
  } finally {
    await life.stop();
    await discord.close();
  }
}

it("[F73] [W25] a crash while messages are held: a stored event of another kind does not move the position past them", async () => {
  const discord = await new FakeDiscord().listen();
  const life = new Life(discord);
  const bob = { ...ALICE, id: "400000000000000009", username: "bob", global_name: "Bob" };
  try {
    await life.begin();
    await discord.until(
      ({ kind, method, path }) => kind === "rest" && method === "PUT" && String(path).endsWith("/commands"),
      "the session",
    );
    discord.say({ content: "m0" });
    await settled(() => discord.sent(DM).length === 1, "the first answer");
    life.end();
    // The new session reads the history first, and messages wait for that. Bob's conversation is unknown: only the stream has his words.
    discord.gateway.forgetSessions();
    const release = discord.hold("^GET /channels/.*/messages");
    await life.begin();
    await discord.until(
      ({ kind, method, path }) => kind === "rest" && method === "GET" && String(path).endsWith("/messages"),
      "the history",
    );
    discord.say({ content: "from Bob", user: bob, channel: dmOf(bob.id) });
    const { id } = discord.command("status");
    await settled(() => life.accepted.has(`i:${id}`), "the command");
    assert.equal(
      [...life.accepted.values()].some(({ message }) => message.text === "from Bob"),
      false,
      "it must be held for this to prove anything",
    );
    life.end();
    release();
    await life.begin();
    await settled(() => [...life.accepted.values()].some(({ message }) => message.text === "from Bob"), "Bob's message");
    assert.equal(discord.sent(dmOf(bob.id)).length <= 1, true);
  } finally {
    await life.stop();
    await discord.close();
  }
});

for (const forgets of [false, true]) {
  const what = forgets ? "whose session is lost too" : "that ends at any write";
  it(`[W25][P2][P9] a crash ${what} loses and doubles nothing`, async () => {
    const writes = await history(Number.POSITIVE_INFINITY, forgets);
    assert.ok(writes > 20, `only ${writes} writes`);
    const count = forgets ? 6 : 12;
    const points = Array.from({ length: count }, (_, index) => Math.round(1 + (index * (writes - 1)) / count));
    for (let at = 0; at < points.length; at += 4) await Promise.all(points.slice(at, at + 4).map((point) => history(point, forgets)));
  });
}
