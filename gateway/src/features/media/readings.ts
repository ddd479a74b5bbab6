/**
 * What models get of files that they cannot take as they are: the text of documents, and scaled images. Each file is read once; the
 * outcome is stored beside it, a failure too. A file whose reading ends the program is not read a third time. Readers are loaded on
 * first use.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { MediaBlock } from "../../ports/messages.ts";
import type { Held, ReaderName, ReaderOutcome, Readers, ReaderTask } from "../../ports/readers.ts";
import { type Bucket, hasBody } from "../../storage/bucket.ts";
import { derivedKey, type DerivedKind } from "../../storage/keys.ts";
import type { DocumentKind } from "./document-kinds.ts";
import { importedReaders } from "./readers/imported.ts";

/** Files with an outcome of another version are read again. */
const READERS = "3";
const TRIES = 2;
const readerOf = ({ kind }: ReaderTask): ReaderName => (kind === "pdf" ? "pdf" : kind === "image" ? "images" : "documents");

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
  /** By default the modules beside this code. */
  readonly readers?: Readers | undefined;
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
    return this.#once(block, "text", { kind });
  }
  /** The image as a JPEG that models take. Rejects when the bucket fails. */
  scaled(block: MediaBlock): Promise<Reading> {
    const { imagePixels: maxPixels, imageBytes: maxBytes } = this.#options;
    return this.#once(block, "scaled", { kind: "image", maxPixels, maxBytes });
  }

  #once(block: MediaBlock, kind: DerivedKind, task: ReaderTask): Promise<Reading> {
    const key = derivedKey(block.r2Key, kind);
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const turn = this.#last.then(() => this.#outcome(block, key, task));
    this.#last = turn.catch(() => {});
    this.#running.set(key, turn);
    const done = (): void => void this.#running.delete(key);
    turn.then(done, done);
    return turn;
  }
  async #outcome(block: MediaBlock, key: string, task: ReaderTask): Promise<Reading> {
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
    const reader = await (this.#options.readers ?? importedReaders).open(readerOf(task));
    const started = (tries: number) => put("started", "", { tries: String(tries) });
    let outcome: (ReaderOutcome & Held) | undefined;
    try {
      const bytes = new Uint8Array(await given.arrayBuffer());
      await started(before + 1);
      outcome = await reader.read(bytes, task);
      try {
        if ("unreadable" in outcome) return await failed(outcome.unreadable);
        await put("read", outcome.bytes);
      } catch (error) {
        // The reader has ended, so the file is no reason to give up.
        await started(before).catch(() => undefined);
        throw error;
      }
      return { kind: "read", bytes: outcome.bytes };
    } finally {
      outcome?.[Symbol.dispose]?.();
      reader[Symbol.dispose]?.();
    }
  }
}
