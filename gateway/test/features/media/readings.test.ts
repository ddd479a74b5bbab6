/** Documents and large images, from the message to the model call, with the real readers in the runtime. */
import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ContentBlock, MediaBlock } from "../../../src/ports/messages.ts";
import type { ReaderOutcome, Readers } from "../../../src/ports/readers.ts";
import type { Bucket } from "../../../src/storage/bucket.ts";
import { MediaCache } from "../../../src/features/media/cache.ts";
import { imageFacts } from "../../../src/features/media/readers/image-facts.ts";
import { createSessionMedia } from "../../../src/features/media/session-media.ts";
import { bmp, docx, eml, gif, pdf, pptx, xlsx } from "../../support/documents.ts";

let sessions = 0;
interface Given {
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}
/** A message with one file, as the model is shown it. A new instance has read nothing and has an empty cache. */
class Received {
  readonly key = `agent:main:cli:dm:reading-${++sessions}`;
  readonly reads: string[] = [];
  /** Notes which objects are read whole. */
  readonly bucket: Bucket = {
    get: ((key: string, options?: R2GetOptions) => {
      this.reads.push(key);
      return env.STORAGE.get(key, options);
    }) as Bucket["get"],
    put: env.STORAGE.put.bind(env.STORAGE),
    head: env.STORAGE.head.bind(env.STORAGE),
    delete: env.STORAGE.delete.bind(env.STORAGE),
    list: env.STORAGE.list.bind(env.STORAGE),
  };
  block: MediaBlock | undefined;

  async take({ name, mimeType, bytes }: Given): Promise<this> {
    let raw = "";
    for (let at = 0; at < bytes.length; at += 8_192) raw += String.fromCharCode(...bytes.subarray(at, at + 8_192));
    const taken = await createSessionMedia(env.STORAGE).takeAttachments({
      sessionKey: this.key,
      messageId: "m1",
      attachments: [{ mimeType, filename: name, data: btoa(raw) }],
      now: 1,
    });
    if (!taken.ok) throw new Error(taken.error.message);
    this.block = taken.value.blocks[0];
    return this;
  }
  async shown(more: Parameters<typeof createSessionMedia>[1] = {}): Promise<readonly ContentBlock[]> {
    const media = createSessionMedia(this.bucket, { cache: new MediaCache(LIMITS.mediaCacheBytes), ...more });
    const message = { role: "user" as const, content: this.block ? [this.block] : [], timestamp: 0 };
    const view = { images: true, numbers: (keys: readonly string[]) => new Map(keys.map((key, index) => [key, index + 1])) };
    const [out] = await media.hydrate([message], view);
    return out?.role === "user" && typeof out.content !== "string" ? out.content : [];
  }
  async text(more: Parameters<typeof createSessionMedia>[1] = {}): Promise<string> {
    return (await this.shown(more)).map((block) => (block.type === "text" ? block.text : `<${block.type}>`)).join("\n");
  }
}
const receive = (given: Given): Promise<Received> => new Received().take(given);
const OFFICE = "application/vnd.openxmlformats-officedocument";

describe("[F41][P12.2][M7] documents reach the model as text", () => {
  const given: readonly (Given & { readonly text: string })[] = [
    {
      name: "a.pdf",
      mimeType: "application/pdf",
      bytes: pdf(["The first page", "The second page"]),
      text: "[Page 2 of 2]\nThe second page",
    },
    { name: "a.docx", mimeType: `${OFFICE}.wordprocessingml.document`, bytes: docx(["Title", "Body"]), text: "# Title\nBody" },
    { name: "a.xlsx", mimeType: `${OFFICE}.spreadsheetml.sheet`, bytes: xlsx("S", [["a", 1]]), text: '[Sheet "S"]\na,1' },
    { name: "a.pptx", mimeType: "application/octet-stream", bytes: pptx(["Hello"]), text: "[Slide 1]\nHello" },
    { name: "a.eml", mimeType: "message/rfc822", bytes: eml("Subject line", "<p>text</p>"), text: "Subject: Subject line" },
    { name: "a.html", mimeType: "text/html", bytes: new TextEncoder().encode("<h1>Hi</h1><script>no()</script>"), text: "Hi" },
  ];
  for (const { text, ...file } of given)
    it(file.name, async () => {
      const shown = await (await receive(file)).text();
      expect(shown).toContain(text);
      expect(shown).toMatch(/^\[A file that came with this message: \{"id":"media:1".*<<<attached file [0-9a-f]+>>>/s);
    });
  it("at most 200 pages of a PDF, and 64 KiB at once, both with a note", async () => {
    const pages = Array.from({ length: 201 }, (_, index) => `Page text number ${index + 1}`);
    expect(await (await receive({ name: "long.pdf", mimeType: "application/pdf", bytes: pdf(pages) })).text()).toContain(
      "[Only the first 200 of 201 pages are read.]",
    );
    const long = await (
      await receive({ name: "long.docx", mimeType: `${OFFICE}.wordprocessingml.document`, bytes: docx(["t", "x".repeat(70_000)]) })
    ).text();
    expect(long).toContain('Only the first 65536 bytes are shown. The rest: gsv__ReadFile with path "media:1"');
    expect(long.length).toBeLessThan(66_500);
  });
});

describe("[P12.2][M8] a file is read once", () => {
  const file = { name: "a.docx", mimeType: `${OFFICE}.wordprocessingml.document`, bytes: docx(["Read me"]) };
  it("the text is stored beside it, and is used by a later instance", async () => {
    const received = await receive(file);
    await received.text();
    const key = received.block?.r2Key ?? "";
    expect(received.reads.filter((read) => read === key)).toHaveLength(1);
    received.reads.length = 0;
    expect(await received.text()).toContain("Read me");
    expect(received.reads).toEqual([key.replace(/\.docx$/, ".text")]);
    expect(await createSessionMedia(env.STORAGE).delete(received.key, 2, new Set())).toEqual({ ok: true, value: 2 });
  });
  it("a failure is stored as well, and says what to do", async () => {
    const received = await receive({ ...file, bytes: file.bytes.subarray(0, 60) });
    const first = await received.text();
    expect(first).toMatch(/is not shown: .* It is damaged.*You can still send the file itself/s);
    received.reads.length = 0;
    expect(await received.text()).toBe(first);
    expect(received.reads).toHaveLength(1);
  });
  it("[P12] a file whose reading ended the program twice is not read again", async () => {
    const received = await receive(file);
    const key = (received.block?.r2Key ?? "").replace(/\.docx$/, ".text");
    const started = (tries: string) => env.STORAGE.put(key, "", { customMetadata: { state: "started", readers: "3", tries } });
    await started("1");
    expect(await received.text()).toContain("Read me");
    await started("2");
    expect(await received.text()).toContain("Reading it failed before.");
    await env.STORAGE.put(key, "old words", { customMetadata: { state: "read", readers: "0" } });
    expect(await received.text()).toContain("Read me");
  });
  it("[P12] a bucket that does not take what was read says nothing about the file, however often", async () => {
    const received = await receive(file);
    const put = vi.spyOn(received.bucket, "put").mockImplementation((async (key: string, value: string, options: R2PutOptions) => {
      if (options.customMetadata?.["state"] === "read") throw new Error("the bucket is away");
      return env.STORAGE.put(key, value, options);
    }) as Bucket["put"]);
    for (let time = 0; time < 3; time++) expect(await received.text()).not.toContain("Read me");
    put.mockRestore();
    expect(await received.text()).toContain("Read me");
  });
  it("a reader that cannot be loaded says nothing about the file: it is read later", async () => {
    const received = await receive(file);
    vi.doMock("../../../src/features/media/readers/documents.lazy.ts", () => {
      throw new Error("no such module");
    });
    expect(await received.text()).toContain("it may be available next time");
    vi.doUnmock("../../../src/features/media/readers/documents.lazy.ts");
    expect(await received.text()).toContain("Read me");
  });
  it("[F64] a reader's isolate ends with the file: the reader and its answer are released, whatever the outcome", async () => {
    const held: string[] = [];
    const outcomes: (() => Promise<ReaderOutcome>)[] = [
      () => Promise.resolve({ bytes: new TextEncoder().encode("words") }),
      () => Promise.resolve({ unreadable: "It is a test." }),
      () => Promise.reject(new Error("the isolate ended")),
    ];
    for (const outcome of outcomes) {
      const readers: Readers = {
        async open(name) {
          held.push(name);
          return {
            read: async () => {
              const answer = await outcome();
              held.push("answer");
              return { ...answer, [Symbol.dispose]: () => void held.splice(held.indexOf("answer"), 1) };
            },
            [Symbol.dispose]: () => void held.splice(held.indexOf(name), 1),
          };
        },
      };
      await (await receive(file)).text({ readers });
      expect(held).toEqual([]);
    }
  });
  it("a bucket that fails gives a note for now, and nothing is stored", async () => {
    const received = await receive(file);
    const get = vi.spyOn(env.STORAGE, "get").mockRejectedValue(new Error("away"));
    expect(await received.text()).toContain("it may be available next time");
    get.mockRestore();
    expect(await received.text()).toContain("Read me");
  });
});

describe("[F41][P12.2][M9] images over the limits of providers", () => {
  const imageIn = (blocks: readonly ContentBlock[]): { readonly bytes: Uint8Array; readonly mimeType: string } => {
    const block = blocks.find((candidate) => candidate.type === "image");
    if (block === undefined || !("data" in block)) throw new Error(`no image in ${JSON.stringify(blocks).slice(0, 500)}`);
    return { bytes: Uint8Array.from(atob(block.data), (sign) => sign.charCodeAt(0)), mimeType: block.mimeType };
  };
  it("a large picture becomes a JPEG of at most 2,000 pixels a side, once", async () => {
    const received = await receive({ name: "big.bmp", mimeType: "image/bmp", bytes: bmp(2_600, 1_300) });
    const { bytes, mimeType } = imageIn(await received.shown());
    expect([mimeType, imageFacts(bytes)]).toEqual(["image/jpeg", { width: 2_000, height: 1_000, orientation: 1 }]);
    expect(bytes.length).toBeLessThan(3_932_160);
    received.reads.length = 0;
    expect(imageIn(await received.shown()).bytes).toEqual(bytes);
    expect(received.reads).toEqual([(received.block?.r2Key ?? "").replace(/\.bin$/, ".scaled")]);
  });
  it("of an animation the model gets the first frame", async () => {
    const received = await receive({ name: "a.gif", mimeType: "image/gif", bytes: gif(4) });
    expect(imageIn(await received.shown())).toEqual({ bytes: gif(1), mimeType: "image/gif" });
  });
  it("[M2] the bytes decide the type of an image that was stored under another one", async () => {
    const received = await receive({ name: "a.gif", mimeType: "image/gif", bytes: gif(1) });
    const { r2Key = "", ...block } = received.block ?? { type: "image", mimeType: "" };
    received.block = { ...block, type: "image", r2Key, mimeType: "image/png" };
    const cache = new MediaCache(LIMITS.mediaCacheBytes);
    for (let n = 0; n < 2; n++) expect(imageIn(await received.shown({ cache }))).toEqual({ bytes: gif(1), mimeType: "image/gif" });
    await env.STORAGE.put(r2Key, "not an image at all");
    expect(await received.text()).toContain("Its size in pixels is not known");
  });
  it("more pixels than can be held, and a damaged picture, become a sentence", async () => {
    const received = await receive({ name: "big.bmp", mimeType: "image/bmp", bytes: bmp(1_100, 1_000) });
    expect(await received.text({ imagePixels: 1_000_000 })).toContain(
      "It has 1100 x 1000 pixels; at most 1 million pixels can be scaled here.",
    );
    const damaged = await receive({ name: "x.bmp", mimeType: "image/bmp", bytes: bmp(300, 300).subarray(0, 200) });
    expect(await damaged.text()).toContain("It is damaged, or of a kind that cannot be read.");
    const heic = await receive({ name: "x.heic", mimeType: "image/heic", bytes: new TextEncoder().encode("\0\0\0\x18ftypheic\0\0\0\0") });
    expect(await heic.text()).toContain("this kind (such as HEIC) cannot be converted here");
  });
});
