/**
 * What a command moves or links into a folder for temporary files (rule PO13). PURE. A path there may then lead elsewhere, and what was moved
 * to a folder that ends with the command is gone.
 */
import { type Believed, type Commands, isTemporary, nameOf } from "./deleters.ts";

/** Folders that end with the command in a sandbox: what is moved there is gone. */
const MEMORY = /(?<![\w./-])\/(?:dev\/shm|(?:var\/)?run|var\/tmp)(?![\w-])/;
/** Whether a command moves something there. */
export const movesToMemory = (text: string, rough: Commands): boolean =>
  MEMORY.test(text.replaceAll(/["'\\]/g, "")) && rough.some((words) => words.some((word) => /^g?mv$/.test(nameOf(word))));

/** Programs after which a path in a temporary folder may lead out of it. */
export const LINKERS: ReadonlySet<string> = new Set(["ln", "gln", "link", "mount", "bindfs"]);
/** Programs that bring a link with them: a name in a temporary folder may then be one, and what is below it is elsewhere. */
export const MOVERS: ReadonlySet<string> = new Set(
  "mv gmv cp gcp rename install rsync tar gtar bsdtar unzip 7z cpio git rclone scp exch".split(" "),
);
/** Of a text that names no program of these sets. */
export const believedByWords = (text: string): Believed =>
  /symlink/i.test(text) ? "none" : /\brename|\bmove/i.test(text) ? "direct" : "all";
export function believedIn(text: string, rough: Commands): Believed {
  if (believedByWords(text) === "none") return "none";
  const names = text
    .replaceAll(/["'\\]/g, "")
    .split(/[\s;&|(){}`]+/)
    .filter((word) => !isTemporary(word, "all"))
    .map((word) => nameOf(word));
  if (names.some((name) => LINKERS.has(name)) || mayDeleteMoved(text, rough)) return "none";
  return names.some((name) => MOVERS.has(name)) ? "direct" : believedByWords(text);
}
/**
 * Whether a command moves what is elsewhere into a temporary folder, or may, and the text names that place once more. Other names in
 * temporary folders are other files.
 */
function mayDeleteMoved(text: string, rough: Commands): boolean {
  const goesElsewhere = /\b(?:cd|pushd)\s/.test(text);
  const places = new Set<string>();
  const others: (readonly string[])[] = [];
  for (const words of rough) {
    const at = words.findIndex((word) => /^g?mv$/.test(nameOf(word)));
    const operands = at === -1 ? [] : words.slice(at + 1).filter((word) => !word.startsWith("-"));
    const to = operands.at(-1) ?? "";
    const fromElsewhere = !operands.slice(0, -1).every((word) => isTemporary(word, "all"));
    const isOption = words.some((word) => /^-[A-Za-z]*t|^--t/.test(word));
    const brings = at !== -1 && (isOption || (fromElsewhere && (MAYBE_TEMPORARY.test(to) || goesElsewhere)));
    if (!brings) {
      others.push(words);
      continue;
    }
    // Where it is moved to is written out, and is the only thing that the command does there.
    if (at !== 0 || goesElsewhere || isOption || !isTemporary(to, "all") || MADE_NAME.test(to)) return true;
    places.add(placeIn(to));
  }
  if (places.size === 0) return false;
  return others.some((words) =>
    words.some((word) => TEMPORARY.test(word) && (MADE_NAME.test(word) || places.has(placeIn(word)) || placeIn(word) === "")),
  );
}
const MAYBE_TEMPORARY = /^(?:\/private)?\/(?:var\/)?tmp\b|[$~]|^\./;
const TEMPORARY = /\/tmp\b|TMPDIR|^\.|[~$]/;
const MADE_NAME = /[*?[\]{}~]|\.\.|\$(?!TMPDIR\/|\{TMPDIR\}\/)/;
/** The name directly in the temporary folder, as disks fold it. */
const placeIn = (path: string): string =>
  (/(?:\/tmp|TMPDIR\}?)(?:\/+\.?(?=\/))*\/*([^/]*)/.exec(path)?.[1] ?? "").normalize("NFKC").toLowerCase();
export const leastOf = (one: Believed, other: Believed): Believed =>
  one === "none" || other === "none" ? "none" : one === "direct" ? one : other;
