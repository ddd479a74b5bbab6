/** The contract of every channel, run on the WhatsApp channel. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { getMediaKeys } from "@whiskeysockets/baileys";
import { open as openSealed, readSealingKeys } from "../../../protocol/runtime/sealing.ts";
import { FakeWhatsApp } from "../../fakes/whatsapp/server.ts";
import { channelContract, type Person, type Side } from "../../kit/test/contract.ts";
import { SEALING_KEYS, Stage } from "../../kit/test/stage.ts";
import { open as unseal } from "../src/media.ts";
import { buildWorker } from "./build.ts";
import { stagedWorker } from "./world.ts";

const SEALED = readSealingKeys(SEALING_KEYS);

/** All keys of the account from its own database, opened, in the forms in which keys are printed. */
function keysOf(folder: string): string[] {
  const objects = join(folder, "do", "WhatsAppAccount");
  const values = readdirSync(objects)
    .filter((name) => name.endsWith(".sqlite") && name !== "metadata.sqlite")
    .flatMap((name) => {
      const db = new DatabaseSync(join(objects, name), { readOnly: true });
      try {
        return db
          .prepare("SELECT name, value FROM kv")
          .all()
          .map(({ name, value }) => {
            const text = String(value);
            if (!String(name).startsWith("p.")) return text;
            const opened = openSealed(SEALED.ok ? SEALED.keys : undefined, `channel account ${JSON.stringify(["default", name])}`, text);
            assert.ok(opened.ok, `[A10] ${String(name)} is not stored sealed`);
            return opened.text;
          });
      } finally {
        db.close();
      }
    });
  const keys = new Set(values.flatMap((value) => [...value.matchAll(/[A-Za-z0-9+/]{40,}={0,2}/g)].map(String)));
  return [...keys].flatMap((key) => {
    const bytes = Buffer.from(key, "base64").subarray(0, 16);
    return [
      key.slice(0, 24),
      bytes.toString("hex"),
      bytes.toString("hex").replace(/(..)(?!$)/g, "$1 "),
      [...bytes].join(","),
      [...bytes].join(", "),
    ];
  });
}

async function open(): Promise<Side> {
  const fake = await new FakeWhatsApp().listen();
  const built = await buildWorker();
  const stage = await new Stage().open(stagedWorker(fake, built.script));
  let people = 0;
  const whole = async (since: number): Promise<void> => {
    await fake.until("connected", () => fake.noted("flushed").length > since);
    await stage.statusWhere("connected", ({ connected }) => connected);
  };
  return {
    stage,
    async start() {
      const since = fake.noted("flushed").length;
      await stage.call("start", { accountId: "default", config: {} });
      if ((await stage.status()).authenticated !== true) {
        const { qr = "" } = await stage.call<{ qr?: string }>("login", { accountId: "default" });
        fake.linking.scan(qr);
      } else if ((await stage.status()).connected) return;
      await whole(since);
    },
    async person(): Promise<Person> {
      people += 1;
      const pn = `1555100${1_000 + people}`;
      fake.addPeer({ pn, lid: `9001000${1_000 + people}`, name: "Someone Particular" });
      return {
        peer: { kind: "dm", id: `${pn}@s.whatsapp.net` },
        say(text, { replyTo } = {}) {
          if (replyTo === undefined) return fake.say(pn, text);
          const quoted = fake.shown(pn).find(({ id }) => id === replyTo)?.message;
          const contextInfo = {
            stanzaId: replyTo,
            participant: `${fake.account.pn}@s.whatsapp.net`,
            ...(quoted ? { quotedMessage: quoted } : {}),
          };
          return fake.say(pn, { extendedTextMessage: { text, contextInfo } });
        },
        again: (id, text) => fake.sayAgain(pn, id, text),
        async told(id) {
          await fake.until("the receipt", () => fake.noted("receipt").some(({ ids }) => (ids as string[]).includes(id)));
        },
        shown: () =>
          fake.shown(pn).flatMap(({ id, message }) => {
            const text = message.extendedTextMessage?.text || message.conversation;
            const replyTo = message.extendedTextMessage?.contextInfo?.stanzaId;
            return text ? [{ id, text, ...(replyTo ? { replyTo } : {}) }] : [];
          }),
        loseAnswer() {
          fake.dropAfterNextMessage = pn;
        },
        sayFile: (name, bytes) => fake.sayFile(pn, bytes, { kind: "document", mimetype: "text/plain", more: { fileName: name } }),
        async file() {
          const document = fake.shown(pn).at(-1)?.message.documentMessage;
          const sealed = fake.files.get(document?.directPath ?? "");
          if (!sealed || !document?.mediaKey) return undefined;
          return new Uint8Array(unseal(sealed, await getMediaKeys(document.mediaKey, "document"), undefined));
        },
        typing: () => fake.noted("typing").flatMap(({ to, state }) => (String(to).startsWith(pn) ? [state === "composing"] : [])),
        reactions: () =>
          fake
            .shown(pn)
            .flatMap(({ message: { reactionMessage: reaction } }) =>
              reaction?.key?.id && reaction.text ? [{ messageId: reaction.key.id, emoji: reaction.text }] : [],
            ),
      };
    },
    secrets() {
      const keys = keysOf(stage.folder);
      assert.ok(keys.length > 1_000, `only ${keys.length} spellings of keys`);
      // The keys are real: the server knows the public identity.
      const identity = Buffer.from(fake.bot?.identity ?? []).toString("base64");
      assert.ok(keys.includes(identity.slice(0, 24)), "the identity is not among them");
      return [...keys, "privKey", "Closing session", "Someone Particular", "1555100", "9001000", fake.account.pn, fake.rootHex];
    },
    async close() {
      await stage.end();
      await fake.close();
      built.remove();
    },
  };
}

channelContract({
  channel: "whatsapp",
  maxTextChars: 4000,
  marked: "*bold* and a link (https://example.org/x)",
  bringsBacklog: true,
  has: ["files", "reactions", "replies", "typing"],
  open,
});
