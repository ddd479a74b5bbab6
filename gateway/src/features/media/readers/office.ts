/**
 * What Word, Excel and PowerPoint files share (Office Open XML, ECMA-376): a zip of XML files. Bounded: only the files with text are
 * unpacked, up to a total size that is counted while unpacking, never believed from the archive's header.
 */
import { Unzip, UnzipInflate } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { pause, tooMuch, Unreadable } from "./reading.ts";

/** A small piece expands to at most a thousand times its size, so what is in memory at once stays small. */
const PIECE_BYTES = 16_384;
const PAUSE_BYTES = 4_194_304;

/** The unpacked texts by name. Throws `Unreadable`. */
export async function unpacked(bytes: Uint8Array, isWanted: (name: string) => boolean): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  let total = 0;
  let files = 0;
  const unzip = new Unzip((file) => {
    files += 1;
    if (files > LIMITS.documentFiles) throw new Unreadable(`It has more than ${LIMITS.documentFiles} files in it.`);
    if (!isWanted(file.name)) return;
    const decoder = new TextDecoder();
    let text = "";
    file.ondata = (error, chunk, isLast) => {
      // The library hands on what was thrown here.
      if (error) throw error instanceof Unreadable ? error : new Unreadable("It is damaged.");
      total += chunk.length;
      if (total > LIMITS.documentExpandedBytes) throw tooMuch();
      text += decoder.decode(chunk, { stream: !isLast });
      if (isLast) texts.set(file.name, text);
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  try {
    let paused = 0;
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      unzip.push(bytes.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= bytes.length);
      if (total - paused < PAUSE_BYTES) continue;
      paused = total;
      await pause();
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable("It is damaged, or it is encrypted with a password.");
  }
  return texts;
}
/** A name without its namespace. */
export const local = (name: string): string => name.slice(name.indexOf(":") + 1);
