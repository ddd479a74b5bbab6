/**
 * Writes an archive (ustar, gzip) of plain files below one folder: sorted, without names of users and with one time, so that the same content
 * gives the same bytes. Files are streamed.
 */
import { createReadStream, createWriteStream, statSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";

const BLOCK = 512;

export interface ArchiveFile {
  /** In the archive, with `/`. */
  readonly path: string;
  readonly from: string;
  readonly isProgram?: boolean;
}

const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`;

/** The block before a file's content. Throws for a path that the format can't hold. */
export function header(path: string, sizeBytes: number, isProgram: boolean, seconds: number): Buffer {
  const cut = path.length <= 100 ? -1 : path.lastIndexOf("/", 155);
  const [prefix, name] = cut === -1 ? ["", path] : [path.slice(0, cut), path.slice(cut + 1)];
  if (name.length > 100 || prefix.length > 155) throw new Error(`the path is too long for an archive: ${path}`);
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write(octal(isProgram ? 0o755 : 0o644, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(sizeBytes, 12), 124);
  block.write(octal(seconds, 12), 136);
  block.write("        ", 148);
  block.write("0", 156);
  block.write("ustar\u000000", 257);
  block.write(prefix, 345);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

async function* content(files: readonly ArchiveFile[], seconds: number): AsyncGenerator<Buffer> {
  for (const { path, from, isProgram = false } of [...files].sort((one, other) => (one.path < other.path ? -1 : 1))) {
    const { size } = statSync(from);
    yield header(path, size, isProgram, seconds);
    for await (const chunk of createReadStream(from)) yield chunk as Buffer;
    if (size % BLOCK !== 0) yield Buffer.alloc(BLOCK - (size % BLOCK));
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** `level`: the level of gzip, 0 (no compression) or 1 (fastest) to 9 (smallest). */
export async function writeTarball(to: string, files: readonly ArchiveFile[], seconds: number, level: number): Promise<void> {
  await pipeline(content(files, seconds), createGzip({ level }), createWriteStream(to));
}
