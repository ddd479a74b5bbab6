/** Checksums of objects, made while their bytes pass. */
import { addGcPressure } from "../../protocol/runtime/gc-pressure.ts";
import { toHex } from "../../protocol/runtime/hex.ts";
import { pieces } from "../../protocol/runtime/pieces.ts";
import { isPart } from "./keys.ts";
import { CODE, HASHES, R2Failure, type Checksums, type HashName } from "./wire.ts";

export class Hashes {
  readonly #streams: readonly { name: HashName; writer: WritableStreamDefaultWriter<Uint8Array>; digest: Promise<ArrayBuffer> }[];
  constructor(names: readonly HashName[]) {
    this.#streams = HASHES.filter(({ name }) => names.includes(name)).map(({ name, algorithm }) => {
      const stream = new crypto.DigestStream(algorithm);
      return { name, writer: stream.getWriter(), digest: stream.digest };
    });
  }
  async write(chunk: Uint8Array): Promise<void> {
    for (const { writer } of this.#streams) await writer.write(chunk);
  }
  async end(): Promise<Checksums> {
    const sums: { [name in HashName]?: string } = {};
    for (const { name, writer, digest } of this.#streams) {
      await writer.close();
      sums[name] = toHex(await digest);
    }
    return sums;
  }
}
export async function hashBytes(bytes: Uint8Array, names: readonly HashName[]): Promise<Checksums> {
  const hashes = new Hashes(names);
  await hashes.write(bytes);
  return hashes.end();
}
/** `actual`, when it is what the sender expected. */
export function verified(actual: Checksums, expected: Checksums): Checksums {
  for (const { name } of HASHES) {
    if (expected[name] !== undefined && expected[name] !== actual[name]) {
      throw new R2Failure(400, CODE.badDigest, `The ${name} checksum does not fit the content.`);
    }
  }
  return actual;
}

/** An md5, the etag, and what the sender expects. Parts of a file need no md5: the file that they become is verified. */
export const wantedOf = (key: string, expected: Checksums): readonly HashName[] =>
  HASHES.map(({ name }) => name).filter((name) => (name === "md5" && !isPart(key)) || expected[name] !== undefined);

/** The pieces of a request. A sender that gives up in the middle of one is no failure of the storage. */
async function* sent(body: ReadableStream<Uint8Array>, buffers: ArrayBuffer[]): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  try {
    yield* pieces(body, buffers);
  } catch {
    throw new R2Failure(400, CODE.invalidArgument, "The request ended too early.");
  }
}

/**
 * Streams `body` to `write` and verifies its checksums. On a mismatch it rejects, and `write` has failed. Reuses `buffers`, and leaves its own
 * in them after a success.
 */
export async function streamVerified(
  write: (whole: ReadableStream<Uint8Array>) => Promise<void>,
  body: ReadableStream<Uint8Array>,
  bytes: number,
  wanted: readonly HashName[],
  expected: Checksums,
  buffers: ArrayBuffer[] = [],
): Promise<Checksums> {
  const hashes = new Hashes(wanted);
  let checksums: Checksums = {};
  let failed: unknown;
  addGcPressure(bytes);
  const fixed = new FixedLengthStream(bytes);
  const copying = (async () => {
    const writer = fixed.writable.getWriter();
    try {
      // The last piece waits until the whole is verified: the service has then never seen the end of a wrong body.
      let last: Uint8Array | undefined;
      for await (const piece of sent(body, buffers)) {
        await hashes.write(piece);
        if (last !== undefined) await writer.write(last);
        last = piece;
      }
      checksums = verified(await hashes.end(), expected);
      if (last !== undefined) await writer.write(last);
      await writer.close();
    } catch (error) {
      failed = error;
      await writer.abort(error).catch(() => undefined);
    }
  })();
  try {
    await write(fixed.readable);
    await copying;
  } catch (error) {
    await copying;
    throw failed instanceof R2Failure ? failed : error;
  }
  return checksums;
}
