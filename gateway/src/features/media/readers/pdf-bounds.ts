/**
 * Bounds inside PDF.js, which has none: streams are unpacked whole, images and fonts of any size are decoded, and it pauses only when the
 * clock says so, which stands still in a Worker. Its classes are not exported, so they are caught while a tiny document is read, and their
 * methods count from then on. A PDF.js with other classes is refused, so an update cannot lose a bound.
 */
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { mappedCodes } from "./font-file.ts";
import { COST, type PdfWork } from "./pdf-work.ts";

/** A property that one class of PDF.js sets on its objects, and a method of that class. */
const CAUGHT_BY = {
  stream: ["_rawMinBufferLength", "ensureBuffer"],
  clock: ["endTime", "check"],
  evaluator: ["_fetchBuiltInCMapBound", "translateFont"],
  font: ["type3Dependencies", "loadType3Data"],
  characters: ["numCodespaceRanges", "mapCidRange"],
  cff: ["seacAnalysisEnabled", "parseCharString"],
  type1: ["seacAnalysisEnabled", "extractFontProgram"],
} as const;
type Caught = keyof typeof CAUGHT_BY;
type Classes = Readonly<Record<Caught, object>>;

/** Longest string of a page, 32,767 bytes by the standard (ISO 32000-1, annex C). */
const STRING_CHARS = 65_536;
/** Characters of a font; codes have at most two bytes in practice. */
const CODES = 65_536;

let work: PdfWork | undefined;
const take = (what: "unpacked" | "steps", count: number): void => work?.take(what, count);

/** From now on PDF.js counts for this document. One document at a time. */
export function countFor(next: PdfWork | undefined): void {
  work = next;
}

/** `read` lets PDF.js read a document that uses each of the classes. Call it once. */
export async function boundPdfjs(read: () => Promise<void>): Promise<void> {
  const classes = await caught(read);
  boundStreams(classes.stream);
  boundPauses(classes.clock);
  boundFonts(classes.evaluator, classes.font, classes.characters);
  boundFontFiles(classes.font, classes.cff, classes.type1);
}

async function caught(read: () => Promise<void>): Promise<Classes> {
  const found = new Map<string, object>();
  for (const [name] of Object.values(CAUGHT_BY))
    Object.defineProperty(Object.prototype, name, {
      configurable: true,
      set(this: object, value: unknown) {
        for (const [kind, [property, method]] of Object.entries(CAUGHT_BY))
          if (property === name && !found.has(kind) && typeof Reflect.get(this, method) === "function") found.set(kind, this);
        Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
      },
    });
  try {
    await read();
  } finally {
    for (const [name] of Object.values(CAUGHT_BY)) Reflect.deleteProperty(Object.prototype, name);
  }
  const of = (kind: Caught): object => found.get(kind) ?? unknownPdfjs();
  return {
    stream: of("stream"),
    clock: of("clock"),
    evaluator: of("evaluator"),
    font: of("font"),
    characters: of("characters"),
    cff: of("cff"),
    type1: of("type1"),
  };
}
const unknownPdfjs = (): never => {
  throw new Error("this is not the PDF.js that this file was written for");
};

type Method = (this: object, ...args: unknown[]) => unknown;
/** Replaces a method of the class of `instance`, or of a class above it. */
function replace(instance: object, name: string, make: (original: Method) => Method): object {
  let prototype: object | null = Object.getPrototypeOf(instance) as object | null;
  while (prototype !== null && !Object.hasOwn(prototype, name)) prototype = Object.getPrototypeOf(prototype) as object | null;
  const original: unknown = prototype === null ? undefined : Reflect.get(prototype, name);
  if (prototype === null || prototype === Object.prototype || typeof original !== "function") return unknownPdfjs();
  Object.defineProperty(prototype, name, { value: make(original as Method), writable: true, configurable: true });
  return prototype;
}
const before = (instance: object, name: string, check: (args: readonly unknown[], self: object) => void): object =>
  replace(
    instance,
    name,
    (original) =>
      function (...args) {
        check(args, this);
        return original.apply(this, args);
      },
  );
const refuse = (): never => {
  throw new Error("not needed for text");
};

function boundStreams(instance: object): void {
  const { ensureBuffer } = instance as { ensureBuffer?: unknown };
  if (typeof ensureBuffer !== "function") unknownPdfjs();
  const base = before(instance, "ensureBuffer", ([size], self) => {
    const { buffer, minBufferLength } = self as { readonly buffer: Uint8Array; readonly minBufferLength: number };
    if (typeof size !== "number" || size <= buffer.byteLength) return;
    let next = minBufferLength;
    while (next < size) next *= 2;
    if (next > LIMITS.documentExpandedBytes) take("unpacked", Number.POSITIVE_INFINITY);
    take("unpacked", next - buffer.byteLength);
    take("steps", Math.ceil(((next - buffer.byteLength) * COST.unpackedKilobyte) / 1_024));
  });
  // All that is parsed is read byte by byte, from the file or from an unpacked stream.
  const { stream: plain } = instance as { readonly stream?: object };
  let bytes = 0;
  for (const source of [instance, plain ?? unknownPdfjs()])
    before(source, "getByte", () => {
      bytes += 1;
      if (bytes % 1_024 === 0) take("steps", COST.parsedKilobyte);
    });
  // Set by the constructor of every stream: what cannot be counted is not unpacked, and nothing is unpacked outside of these methods.
  Object.defineProperty(base, "_rawMinBufferLength", {
    configurable: true,
    set(this: object, value: unknown) {
      const own = { configurable: true, writable: true };
      Object.defineProperty(this, "_rawMinBufferLength", { ...own, value });
      Object.defineProperty(this, "isAsync", { ...own, value: false });
      if (isCounted(Object.getPrototypeOf(this) as object, base)) return;
      for (const name of ["readBlock", "decodeImage"]) Object.defineProperty(this, name, { ...own, value: refuse });
    },
  });
}
/** The class unpacks into a buffer that it asks the base class for. Decoders of images and Brotli make buffers of their own. */
function isCounted(prototype: object, base: object): boolean {
  if (prototype === base || Object.hasOwn(prototype, "ensureBuffer")) return false;
  return Object.values(Object.getOwnPropertyDescriptors(prototype)).some(
    ({ value }: PropertyDescriptor) => typeof value === "function" && /\bensureBuffer\(/.test(Function.prototype.toString.call(value)),
  );
}

function boundPauses(instance: object): void {
  replace(instance, "check", () => () => {
    const reading = work;
    if (reading?.needsPause !== true) {
      take("steps", 1);
      return false;
    }
    // PDF.js now waits, in the same turn, for two promises; the pause is the third.
    const { all } = Promise;
    Promise.all = (<T>(promises: Iterable<T | PromiseLike<T>>) => {
      Promise.all = all;
      return all.call(Promise, [...promises, reading.pause()]);
    }) as typeof Promise.all;
    return true;
  });
}
/** Programs of letters call each other, and tables of codes have ranges. After an error PDF.js goes on without the font's file. */
function boundFontFiles(font: object, cff: object, type1: object): void {
  const { font: inner } = font as { readonly font: object };
  before(inner, "checkAndRepair", ([, file]) => {
    const source = file as { pos: number; readonly start?: number; getBytes(): Uint8Array };
    const codes = mappedCodes(source.getBytes());
    source.pos = source.start ?? 0;
    if (codes > 4 * CODES) refuse();
    take("steps", codes >> 2);
  });
  before(cff, "parseCharString", ([, program]) => {
    if (program instanceof Uint8Array) take("steps", 1 + (program.length >> 4));
  });
  /** Its length is asked once for each call. */
  class LetterProgram extends Uint8Array {
    override get length(): number {
      take("steps", 1 + (this.byteLength >> 4));
      return this.byteLength;
    }
  }
  replace(
    type1,
    "readCharStrings",
    (original) =>
      function (...args) {
        const program: unknown = original.apply(this, args);
        if (!(program instanceof Uint8Array)) return refuse();
        const counted = new LetterProgram(program.byteLength);
        counted.set(program);
        return counted;
      },
  );
}

interface FontDict {
  get(key: string): unknown;
  readonly xref?: { fetchIfRef(value: unknown): unknown };
}
const isDict = (value: unknown): value is FontDict =>
  typeof value === "object" && value !== null && typeof Reflect.get(value, "get") === "function";

function boundFonts(evaluator: object, font: object, characters: object): void {
  // Glyphs that are drawn by operators: not needed, and they could draw images and patterns.
  replace(font, "loadType3Data", () => async () => {});
  const { font: inner } = font as { readonly font: object };
  before(inner, "charsToGlyphs", ([chars]) => {
    if (typeof chars !== "string" || chars.length > STRING_CHARS) refuse();
    else take("steps", 1 + chars.length);
  });
  // The first one is an identity, whose class has refusing methods of its own.
  const maps = Object.getPrototypeOf(characters) as object;
  for (const name of ["mapCidRange", "mapBfRange", "mapBfRangeToArray"])
    before(maps, name, ([low, high]) => {
      const codes = Number(high) - Number(low) + 1;
      if (codes > CODES) refuse();
      if (codes > 0) take("steps", codes);
    });
  // PDF.js waits for a promise here, and would wait without end after an error.
  replace(
    evaluator,
    "translateFont",
    (original) =>
      async function (...args) {
        take("steps", COST.font);
        checkFont(args[0]);
        return original.apply(this, args);
      },
  );
}
function checkFont(given: unknown): void {
  const { dict, firstChar, lastChar } = given as { dict?: unknown; firstChar?: unknown; lastChar?: unknown };
  if (![firstChar, lastChar].every((code) => code === undefined || isCode(code))) refuse();
  if (!isDict(dict)) return;
  const encoding = dict.get("Encoding");
  if (isDict(encoding)) {
    const codes = listed(dict, encoding.get("Differences")).filter((entry) => typeof entry === "number");
    if (!codes.every(isCode)) refuse();
  }
  checkWidths(listed(dict, dict.get("W")), 1);
  checkWidths(listed(dict, dict.get("W2")), 3);
}
const isCode = (code: unknown): boolean => Number(code) >= 0 && Number(code) < CODES;
const listed = (dict: FontDict, list: unknown): readonly unknown[] =>
  Array.isArray(list) ? list.map((entry: unknown) => dict.xref?.fetchIfRef(entry) ?? entry) : [];
/** `c [w ...]` or `first last w`, with as many widths. */
function checkWidths(entries: readonly unknown[], widths: number): void {
  for (let at = 0; at < entries.length; ) {
    const [first, last] = [entries[at], entries[at + 1]];
    if (!isCode(first)) refuse();
    if (Array.isArray(last)) {
      at += 2;
      continue;
    }
    if (!isCode(last)) refuse();
    take("steps", Math.max(0, Number(last) - Number(first) + 1));
    at += 2 + widths;
  }
}
