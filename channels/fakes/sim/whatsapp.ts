/** Commands for the fake WhatsApp: Ann (the agent's owner), Bob (a stranger) and their group. */
import { randomBytes } from "node:crypto";
import type { proto } from "@whiskeysockets/baileys";
import { FakeWhatsApp } from "../whatsapp/server.ts";
import type { Gateway } from "./gateway.ts";
import type { Journal } from "./journal.ts";

const GROUP = "120363000000000001@g.us";
const PEOPLE = {
  ann: { pn: "15550002222", lid: "900000002222", name: "Ann" },
  bob: { pn: "15550003333", lid: "900000003333", name: "Bob" },
};
export type Name = keyof typeof PEOPLE;
export const isName = (text: string | undefined): text is Name => text === "ann" || text === "bob";
export const OWNERS = [`+${PEOPLE.ann.pn}`];
const LOGIN_TRIES = 100;

interface Login {
  readonly state?: string;
  readonly qr?: string;
  readonly code?: string;
  readonly message?: string;
}

export class WhatsAppSide {
  readonly fake = new FakeWhatsApp();
  readonly #journal: Journal;
  readonly #gateway: Gateway;
  readonly #shown = new Map<Name, number>();
  readonly #last = new Map<Name, { readonly id: string; readonly group: boolean }>();
  #ownShown = 0;
  #noted = 0;
  constructor(gateway: Gateway, journal: Journal) {
    this.#gateway = gateway;
    this.#journal = journal;
  }
  async listen(): Promise<void> {
    await this.fake.listen();
    for (const person of Object.values(PEOPLE)) this.fake.addPeer(person);
    this.fake.addGroup(GROUP, "Trip", [...Object.values(PEOPLE).map(({ pn }) => pn), this.fake.account.pn]);
  }

  async #login(params: { readonly phone?: string; readonly force?: boolean } = {}): Promise<Login> {
    const result = await this.#gateway.call("channel.login", { channel: "whatsapp", ...params });
    return (result["login"] ?? { message: result["message"] }) as Login;
  }
  /** Polls until a code is shown or none is needed. */
  async code(phone?: string): Promise<Login> {
    let login = await this.#login(phone === undefined ? {} : { phone });
    for (let tries = 0; login.state === "connecting" && tries < LOGIN_TRIES; tries++) {
      await new Promise((wake) => setTimeout(wake, 100));
      login = await this.#login(phone === undefined ? {} : { phone });
    }
    return login;
  }
  /** Scans the code that the channel shows now. */
  async scan(): Promise<void> {
    const { state, qr, message } = await this.code();
    if (state === "connected") return this.#journal.say("The phone is already linked.");
    if (state !== "qr" || qr === undefined) throw new Error(message ?? `there is no code to scan (${state})`);
    this.#journal.note("qr", qr);
    this.fake.linking.scan(qr);
    await this.#linked();
  }
  async typeCode(): Promise<void> {
    const { state, code, message } = await this.code(`+${this.fake.account.pn}`);
    if (state === "connected") return this.#journal.say("The phone is already linked.");
    if (state !== "code" || code === undefined) throw new Error(message ?? `there is no code to type in (${state})`);
    this.#journal.say(`The phone types ${code}.`);
    await this.fake.linking.type(code);
    await this.#linked();
  }
  async #linked(): Promise<void> {
    const before = this.fake.noted("flushed").length;
    await this.fake.until("the agent's device is connected", () => this.fake.noted("flushed").length > before, 20_000);
    this.#journal.say("The phone is linked, and the agent is on WhatsApp.");
  }

  /** `@gsv` mentions the agent in a group. */
  async say(name: Name, text: string, group: boolean): Promise<void> {
    const self = this.fake.botJid.replace(/:\d+@/, "@");
    const mention = group && /@gsv\b/i.test(text);
    const message: string | proto.IMessage = mention
      ? { extendedTextMessage: { text: text.replace(/@gsv\b/gi, `@${this.fake.account.pn}`), contextInfo: { mentionedJid: [self] } } }
      : text;
    const id = await this.fake.say(PEOPLE[name].pn, message, group ? { group: GROUP } : {});
    this.#last.set(name, { id, group });
  }
  async edit(name: Name, text: string): Promise<void> {
    const last = this.#last.get(name);
    if (last === undefined) throw new Error(`${PEOPLE[name].name} has written nothing yet`);
    const remoteJid = last.group ? GROUP : this.fake.botJid;
    const key = { remoteJid, id: last.id, fromMe: true };
    await this.fake.say(
      PEOPLE[name].pn,
      { protocolMessage: { type: 14, key, editedMessage: { conversation: text } } },
      last.group ? { group: GROUP } : {},
    );
  }
  async voice(name: Name): Promise<void> {
    const bytes = Buffer.concat([Buffer.from("OggS"), randomBytes(3_000)]);
    const more = { ptt: true, seconds: 3 };
    await this.fake.sayFile(PEOPLE[name].pn, bytes, { kind: "audio", mimetype: "audio/ogg; codecs=opus", more });
  }
  async toSelf(text: string): Promise<void> {
    await this.fake.sayToSelf(text);
  }

  /** Prints new messages on people's phones. */
  look(): void {
    for (const name of Object.keys(PEOPLE).filter(isName)) {
      const all = this.fake.shown(PEOPLE[name].pn);
      for (const { chat, message } of all.slice(this.#shown.get(name) ?? 0)) {
        const text = textOf(message);
        if (text !== undefined)
          this.#journal.show(`WhatsApp ${chat === GROUP ? `Trip (on ${PEOPLE[name].name}'s phone)` : PEOPLE[name].name}`, text);
      }
      this.#shown.set(name, all.length);
    }
    // The owner's phone gets a copy of every answer; only the self-chat is new.
    const own = this.fake.phone.shown;
    const self = [this.fake.account.pn, this.fake.account.lid];
    for (const { chat, message } of own.slice(this.#ownShown)) {
      const text = self.includes(chat.split(/[:@]/)[0] ?? "") ? textOf(message) : undefined;
      if (text !== undefined) this.#journal.show("WhatsApp self-chat", text);
    }
    this.#ownShown = own.length;
    for (const note of this.fake.log.slice(this.#noted)) this.#journal.note("whatsapp", JSON.stringify(note));
    this.#noted = this.fake.log.length;
  }
}

function textOf(message: proto.Message): string | undefined {
  const text = message.conversation ?? message.extendedTextMessage?.text;
  if (text) return text;
  if (message.reactionMessage) return `[reaction ${message.reactionMessage.text ?? ""}]`;
  if (message.audioMessage) return "[voice note]";
  const file = message.imageMessage ?? message.videoMessage ?? message.documentMessage;
  return file ? `[file] ${file.caption ?? ""}` : undefined;
}
