/**
 * What models get of files that they cannot take as they are: the text of documents, and scaled images. Each file is read once; the
 * outcome is stored beside it, a failure too. A file whose reading ends the program is not read a third time. Readers are loaded on
 * first use.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import { derivedKey, type DerivedKind } from "../../storage/keys.ts";
import type { DocumentKind } from "./document-kinds.ts";
import { imageFacts } from "./readers/image-facts.ts";
import { Unreadable } from "./readers/reading.ts";

/** Files with an outcome of another version are read again. */
const READERS = "1";
const TRIES = 2;

export type Reading =
  | { readonly kind: "read"; readonly bytes: Uint8Array }
  | { readonly kind: "missing" }
  /** `why` is a sentence. */
  | { readonly kind: "unreadable"; readonly why: string };

export interface ReadingsOptions {
  /** An image with more pixels is not scaled. */
  readonly imagePixels: number;
  /** Largest scaled image. */
  readonly imageBytes: number;
}

export class Readings {
  readonly #bucket: Bucket;
  readonly #options: ReadingsOptions;
  /** By key, so that a file is not read twice at the same time. */
  readonly #running = new Map<string, Promise<Reading>>();
  /** One file at a time, because readers need memory. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(bucket: Bucket, options: ReadingsOptions) {
    this.#bucket = bucket;
    this.#options = options;
  }
  /** The text of a document, as UTF-8. Rejects when the bucket fails. */
  text(block: MediaBlock, kind: DocumentKind): Promise<Reading> {
    return this.#once(block, "text", () => textReader(kind));
  }
  /** The image as a JPEG that models take. Rejects when the bucket fails. */
  scaled(block: MediaBlock): Promise<Reading> {
    return this.#once(block, "scaled", () => imageReader(this.#options));
  }

  #once(block: MediaBlock, kind: DerivedKind, reader: LoadReader): Promise<Reading> {
    const key = derivedKey(block.r2Key, kind);
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const turn = this.#last.then(() => this.#outcome(block, key, reader));
    this.#last = turn.catch(() => {});
    this.#running.set(key, turn);
    const done = (): void => void this.#running.delete(key);
    turn.then(done, done);
    return turn;
  }
  async #outcome(block: MediaBlock, key: string, reader: LoadReader): Promise<Reading> {
    const known = await this.#bucket.get(key);
    const { state, readers, tries = "0" } = known?.customMetadata ?? {};
    if (known && hasBody(known) && readers === READERS && state !== "started") {
      const bytes = new Uint8Array(await known.arrayBuffer());
      return state === "read" ? { kind: "read", bytes } : { kind: "unreadable", why: new TextDecoder().decode(bytes) };
    }
    const given = await this.#bucket.get(block.r2Key);
    if (!given || !hasBody(given)) return { kind: "missing" };
    const put = (what: "started" | "read" | "failed", body: Uint8Array | string, more: Readonly<Record<string, string>> = {}) =>
      this.#bucket.put(key, body, {
        // A reset deletes what was stored before it.
        customMetadata: { state: what, readers: READERS, uploadedAt: given.customMetadata?.["uploadedAt"] ?? "", ...more },
      });
    const failed = async (why: string): Promise<Reading> => {
      await put("failed", why);
      return { kind: "unreadable", why };
    };
    const before = state === "started" && readers === READERS ? Number(tries) : 0;
    if (before >= TRIES) return failed("Reading it failed before.");
    if (given.size > LIMITS.mediaBytes) return failed("It is too large to be read.");
    // A module that cannot be loaded says nothing about the file, so that is not stored.
    const read = await reader();
    await put("started", "", { tries: String(before + 1) });
    try {
      const bytes = await read(new Uint8Array(await given.arrayBuffer()));
      await put("read", bytes);
      return { kind: "read", bytes };
    } catch (error) {
      return await failed(error instanceof Unreadable ? error.message : "It is damaged, or of a kind that cannot be read.");
    }
  }
}
type Read = (bytes: Uint8Array) => Promise<Uint8Array>;
type LoadReader = () => Promise<Read>;

async function textReader(kind: DocumentKind): Promise<Read> {
  const read = await loadedText(kind);
  return async (bytes) => {
    const text = await read(bytes);
    if (text.trim() === "") throw new Unreadable("It has no text.");
    return new TextEncoder().encode(text);
  };
}
async function loadedText(kind: DocumentKind): Promise<(bytes: Uint8Array) => Promise<string>> {
  if (kind === "pdf") return (await import("./readers/pdf.lazy.ts")).pdfText;
  const { documentText } = await import("./readers/documents.lazy.ts");
  return (bytes) => documentText(kind, bytes);
}
async function imageReader({ imagePixels, imageBytes }: ReadingsOptions): Promise<Read> {
  const { scaledImage } = await import("./readers/images.lazy.ts");
  return (bytes) => {
    const facts = imageFacts(bytes);
    if (facts === undefined) throw new Unreadable("Its size in pixels is not known, so it cannot be scaled.");
    const { width, height } = facts;
    if (width * height > imagePixels)
      throw new Unreadable(`It has ${width} x ${height} pixels; at most ${imagePixels / 1_000_000} million pixels can be scaled here.`);
    return Promise.resolve(scaledImage(bytes, facts, imageBytes));
  };
}
