/** Checksums of objects, made while their bytes pass. */
import { CODE, HASHES, R2Failure, toHex, type Checksums, type HashName } from "./wire.ts";

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
      sums[name] = toHex(new Uint8Array(await digest));
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
