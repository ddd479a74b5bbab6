/**
 * Commands that change nothing and show nothing private, with any of their words (rule PO12). PURE. They run in mode `auto` on a machine
 * without a sandbox, too. A name belongs here only if no argument of it writes, starts another program, or reads a file.
 */
import { readShell } from "./shell.ts";

const ALWAYS: ReadonlySet<string> = new Set(["uname", "pwd", "whoami", "id", "uptime", "nproc", "echo", "true", "false"]);
/** `date` sets the clock and reads files with other words. */
const DATE_WORD = /^(?:\+.*|-u|--utc|-R|-I(?:date|hours|minutes|seconds|ns)?)$/;

/** Each command of the text is harmless, and nothing in it is left to the shell. */
export function isHarmless(text: string): boolean {
  const read = readShell(text);
  return read.kind === "plain" && read.commands.every(({ words }) => isHarmlessCommand(words));
}
function isHarmlessCommand([name = "", ...words]: readonly string[]): boolean {
  // Without words it shows the name, with words it sets it.
  if (name === "hostname") return words.length === 0;
  // On macOS it runs the command in its words.
  if (name === "arch") return words.length === 0;
  if (name === "date") return words.every((word) => DATE_WORD.test(word));
  return ALWAYS.has(name);
}
