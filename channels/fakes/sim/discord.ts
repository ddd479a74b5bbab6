/** The Discord side of `./scripts/sim`: plays Alice (the agent's owner) and Carol (a stranger), in a server and a thread, and shows what arrives. */
import { ALICE, dmOf, FakeDiscord, GENERAL, GUILD, THREAD } from "../discord/fake-discord.ts";
import type { Journal } from "./journal.ts";

const CAROL = { id: "400000000000000003", username: "carol", discriminator: "0", global_name: "Carol", avatar: null };
const USERS = { alice: ALICE, carol: CAROL };
export type Name = keyof typeof USERS;
export const isName = (text: string | undefined): text is Name => text === "alice" || text === "carol";
export const OWNERS = [ALICE.id];
const PLACES: readonly (readonly [channel: string, title: string])[] = [
  [dmOf(ALICE.id), "Discord Alice"],
  [dmOf(CAROL.id), "Discord Carol"],
  [GENERAL, "Discord #general"],
  [THREAD, "Discord thread plans"],
];
/** A live text is shown once it has not changed for this long. */
const RESTS = 4;
const ONLINE_MS = 20_000;

interface Seen {
  content: string;
  rested: number;
  shown: string | undefined;
}

export class DiscordSide {
  readonly fake = new FakeDiscord();
  readonly #journal: Journal;
  readonly #seen = new Map<string, Seen>();
  readonly #replies = new Map<string, string>();
  #noted = 0;
  constructor(journal: Journal) {
    this.#journal = journal;
  }
  async listen(): Promise<void> {
    await this.fake.listen();
  }
  /** Resolves when the bot has a session. */
  async online(): Promise<void> {
    for (const end = Date.now() + ONLINE_MS; !this.fake.log.some(({ kind }) => kind === "gateway.ready"); ) {
      if (Date.now() > end) throw new Error("the Discord channel did not connect");
      await new Promise((wake) => setTimeout(wake, 20));
    }
  }
  dm(name: Name, content: string): void {
    this.fake.say({ content, user: USERS[name], channel: dmOf(USERS[name].id) });
  }
  /** `@gsv` mentions the agent. */
  guild(name: Name, text: string, thread: boolean): void {
    const mention = /@gsv\b/i.test(text);
    const content = text.replace(/@gsv\b\s*/gi, "");
    this.fake.say({ content, mention, user: USERS[name], channel: thread ? THREAD : GENERAL, guild: GUILD });
  }
  slash(name: string): void {
    this.fake.command(name);
  }

  look(): void {
    for (const [channel, title] of PLACES) {
      for (const { id, content } of this.fake.sent(channel)) {
        const seen = this.#seen.get(id) ?? { content: "", rested: 0, shown: undefined };
        seen.rested = seen.content === content ? seen.rested + 1 : 0;
        seen.content = content;
        this.#seen.set(id, seen);
        if (content === "" || seen.shown === content || seen.rested < RESTS) continue;
        this.#journal.show(title, seen.shown === undefined ? content : `(edited) ${content}`);
        seen.shown = content;
      }
    }
    for (const [token, { content }] of this.fake.replies) {
      const text = typeof content === "string" ? content : "";
      if (text === "" || this.#replies.get(token) === text) continue;
      this.#replies.set(token, text);
      this.#journal.show("Discord slash command", text);
    }
    // Records contain path and body, so no token.
    for (const note of this.fake.log.slice(this.#noted))
      this.#journal.note("discord", JSON.stringify(note).replaceAll(this.fake.token, "TOKEN"));
    this.#noted = this.fake.log.length;
  }
}
