/**
 * Files over WhatsApp end to end: the real channel and gateway, the fake platform, the fake model's wire. What a person sends, the model
 * can read; what a tool made, the person gets.
 */
import assert from "node:assert/strict";
import { createDecipheriv } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { PhotonImage } from "@cf-wasm/photon/node";
import { getMediaKeys } from "@whiskeysockets/baileys";
import { FakeWhatsApp } from "../../channels/fakes/whatsapp/server.ts";
import { bmp, docx, pdf } from "../../gateway/test/support/documents.ts";
import { imageFacts } from "../../gateway/src/features/media/readers/image-facts.ts";
import { type FakeTranscription, startFakeTranscription } from "../fakes/fake-transcription.ts";
import { ChannelStack } from "./channel-stack.ts";
import { type Client, until } from "./support.ts";

const ANN = { pn: "15550002222", lid: "900000002222", name: "Ann" };
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/** Noise is what makes a photo large. */
function photo(width: number, height: number): Buffer {
  const pixels = new Uint8Array(width * height * 4);
  let random = 1;
  for (let at = 0; at < pixels.length; at++) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) & 0x7fffffff;
    pixels[at] = at % 4 === 3 ? 255 : random >> 16;
  }
  return Buffer.from(new PhotonImage(pixels, width, height).get_bytes_jpeg(95));
}

/** WhatsApp's form of a stored file: encrypted, then a MAC of ten bytes. */
async function opened(sealed: Uint8Array, mediaKey: Uint8Array): Promise<Buffer> {
  const { cipherKey, iv } = await getMediaKeys(mediaKey, "image");
  const decipher = createDecipheriv("aes-256-cbc", cipherKey, iv);
  return Buffer.concat([decipher.update(sealed.subarray(0, -10)), decipher.final()]);
}

describe("[F41] files over WhatsApp", { concurrency: 1, timeout: 120_000 }, () => {
  let fake: FakeWhatsApp;
  let speech: FakeTranscription;
  let stack: ChannelStack;
  let machine: Client;
  const picture = Buffer.from(new PhotonImage(new Uint8Array(40 * 30 * 4).fill(200), 40, 30).get_bytes());
  const lastAsked = (): string => JSON.stringify(((stack.model.requests.at(-1)?.body["messages"] ?? []) as unknown[]).slice(1));
  const answered = async (answer: string): Promise<void> => {
    await until(`${answer} is shown`, () =>
      fake.shown(ANN.pn).some(({ message }) => (message.extendedTextMessage?.text ?? message.conversation) === answer),
    );
  };
  /** A document is sent, and the model answers it. */
  const sends = async (bytes: Uint8Array, mimetype: string, fileName: string, answer: string): Promise<void> => {
    stack.model.enqueue({ text: answer });
    await fake.sayFile(ANN.pn, bytes, { kind: "document", mimetype, more: { fileName, caption: "look" } });
    await answered(answer);
  };

  before(async () => {
    fake = await new FakeWhatsApp().listen();
    fake.addPeer(ANN);
    speech = await startFakeTranscription();
    const texts = { WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: fake.rootHex };
    const kind = { name: "whatsapp", className: "WhatsAppAccount", flags: ["nodejs_compat"], texts, trusted: fake.tls.cert } as const;
    stack = await ChannelStack.start({ owners: [`+${ANN.pn}`] }, kind, {});
    await stack.call("config.set", { path: "model.images", value: true });
    await stack.call("config.set", { path: "transcription.baseUrl", value: speech.url });
    machine = await stack.client({
      client: { id: "studio", version: "1", platform: "test", mode: "node" },
      tools: [{ name: "Draw", description: "Draws a picture", inputSchema: { type: "object" } }],
    });
    const { login } = (await stack.call("channel.login", { channel: "whatsapp" })) as { login: { qr?: string } };
    fake.linking.scan(login.qr ?? "");
    await until("it is linked", () => fake.noted("flushed").length > 0);
  });
  after(async () => {
    machine.close();
    await stack.end();
    await Promise.all([fake.close(), speech.close()]);
  });

  it("[M7] a PDF and a Word document reach the model as text", async () => {
    await sends(pdf(["The invoice number is 4711."]), "application/pdf", "invoice.pdf", "read the PDF");
    assert.match(lastAsked(), /\[Page 1 of 1\]\\nThe invoice number is 4711\./);
    await sends(docx(["Minutes", "Anna brings the cake."]), DOCX, "minutes.docx", "read the document");
    assert.match(lastAsked(), /# Minutes\\nAnna brings the cake\./);
  });

  it("[M9] a photo of 9 MB reaches it scaled, and under 3.75 MiB", async () => {
    const large = photo(3_000, 1_900);
    assert.ok(large.length > 9_000_000, String(large.length));
    stack.model.enqueue({ text: "saw it" });
    await fake.sayFile(ANN.pn, large, { kind: "image", mimetype: "image/jpeg", more: { caption: "look" } });
    await answered("saw it");
    const data = /data:image\/jpeg;base64,([A-Za-z0-9+/=]+)/.exec(lastAsked())?.[1];
    assert.ok(data, lastAsked().slice(-2_000));
    const shown = Buffer.from(data, "base64");
    assert.ok(shown.length < 3_932_160, String(shown.length));
    assert.deepEqual(imageFacts(shown), { width: 2_000, height: 1_267, orientation: 1 });
  });

  it("[M4] a voice note reaches it by its transcript", async () => {
    speech.enqueue({ body: JSON.stringify({ text: "call me at eight" }) });
    const voice = Buffer.concat([Buffer.from("OggS"), Buffer.alloc(2_000, 7)]);
    const asked = stack.model.requests.length;
    stack.model.enqueue({ text: "listened" });
    await fake.sayFile(ANN.pn, voice, { kind: "audio", mimetype: "audio/ogg; codecs=opus", more: { ptt: true, seconds: 4 } });
    await answered("listened");
    assert.equal(stack.model.requests.length, asked + 1);
    assert.match(lastAsked(), /call me at eight/);
  });

  it("[M6][P12.1] the agent sends back a picture that it made with a tool", async () => {
    stack.model.enqueue({ toolCalls: [{ name: "studio__Draw", arguments: {} }] });
    await fake.say(ANN.pn, "draw something");
    const call = await machine.waitFor("the call", ({ event, payload }) => event === "tool.invoke" && payload);
    const name = new Set((lastAsked().match(/media:\d+/g) ?? []).map((word) => Number(word.slice(6))));
    const next = Math.max(...name) + 1;
    stack.model.enqueue(
      { toolCalls: [{ name: "gsv__Attach", arguments: { files: [`media:${next}`] } }] },
      { text: "Here is your picture." },
    );
    await machine.call("tool.result", {
      callId: call["callId"],
      outcome: "ok",
      result: [{ type: "image", data: picture.toString("base64"), mimeType: "image/png" }],
    });
    await answered("Here is your picture.");
    const image = await until("the picture", () => fake.shown(ANN.pn).find(({ message }) => message.imageMessage)?.message.imageMessage);
    const sealed = fake.files.get(image.directPath ?? "");
    assert.ok(sealed && image.mediaKey);
    assert.ok((await opened(sealed, image.mediaKey)).equals(picture));
  });

  it("[M8] what cannot be read says so, and nothing breaks", async () => {
    await sends(docx(["cut"]).subarray(0, 80), DOCX, "broken.docx", "went on");
    assert.match(lastAsked(), /broken\.docx.*It is damaged/);
    await sends(bmp(10, 10).subarray(0, 40), "image/png", "odd.png", "and on");
    assert.match(lastAsked(), /is not shown: [^[]*odd\.png/);
  });
});
