/**
 * Checks the files of a skill before it is installed: names, sizes and texts. Must not read or write anything: nothing is
 * written before all checks passed.
 * Files that are not text are kept as they are; only SKILL.md must be text.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { dangerousIn, visible } from "../../prompt/hidden.ts";
import { asText } from "../bucket.ts";
import { isSkillName, NAME_RULE, SKILL_FILE } from "./folder.ts";

/** A file of a new skill, by its path in the skill's folder. */
export interface NewFile {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}
export interface Refused {
  readonly reason: "skill.invalid" | "skill.too_large";
  readonly problems: readonly string[];
}

const MAX_PROBLEMS = 8;
const MAX_PATH_CHARS = 256;
const FILE_PATH = /^[A-Za-z0-9_][A-Za-z0-9._ +,@()=-]*(?:\/[A-Za-z0-9_][A-Za-z0-9._ +,@()=-]*)*$/;

/** Windows keeps these names for devices, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:[. ]|$)/i;
const deviceIn = (path: string): string | undefined => path.split("/").find((part) => DEVICE.test(part));

const invalid = (problems: readonly string[]): Refused | undefined =>
  problems.length === 0 ? undefined : { reason: "skill.invalid", problems: problems.slice(0, MAX_PROBLEMS) };
/** A disk may ignore case and Unicode forms. */
export const folded = (path: string): string => path.normalize("NFC").toLowerCase();
const foldersOf = (path: string): readonly string[] =>
  path.split("/").flatMap((_, depth, parts) => (depth === 0 ? [] : [parts.slice(0, depth).join("/")]));

/** Why a skill with these names and sizes is refused. Needs no content, so it comes before anything is read or put together. */
export function refusedNames(name: string, files: readonly { readonly path: string; readonly sizeBytes: number }[]): Refused | undefined {
  if (!isSkillName(name)) return invalid([NAME_RULE]);
  if (name.endsWith(".")) return invalid([`The name \`${name}\` ends with a dot, which Windows leaves out.`]);
  if (DEVICE.test(name)) return invalid([`Windows keeps the name \`${name}\` for a device.`]);
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const manual = files.find(({ path }) => path === SKILL_FILE);
  const tooLarge = [
    ...(files.length > LIMITS.skillFiles ? [`A skill has at most ${LIMITS.skillFiles} files; these are ${files.length}.`] : []),
    ...(total > LIMITS.skillFilesBytes ? [`All files of a skill have at most ${LIMITS.skillFilesBytes} bytes; these have ${total}.`] : []),
    ...(manual !== undefined && manual.sizeBytes > LIMITS.skillBytes
      ? [`${SKILL_FILE} has ${manual.sizeBytes} bytes; at most ${LIMITS.skillBytes} are allowed. Move parts of it into other files.`]
      : []),
  ];
  if (tooLarge.length > 0) return { reason: "skill.too_large", problems: tooLarge };
  const problems: string[] = [];
  const seen = new Set<string>();
  const folders = new Map<string, string>();
  for (const { path } of files) {
    const shown = visible(path, 128);
    const key = folded(path);
    if (!FILE_PATH.test(path) || /[. ](?:\/|$)/.test(path))
      problems.push(`\`${shown}\`: paths may contain letters, digits, blanks and \`._+,@()=-\`; no part may begin or end with a dot.`);
    else if (deviceIn(path) !== undefined) problems.push(`\`${shown}\`: Windows keeps the name \`${deviceIn(path)}\` for a device.`);
    else if (path.length > MAX_PATH_CHARS) problems.push(`\`${shown}\`: the path is longer than ${MAX_PATH_CHARS} characters.`);
    else if (seen.has(key)) problems.push(`\`${shown}\` occurs twice (upper and lower case count as the same).`);
    else if (key === folded(SKILL_FILE) && path !== SKILL_FILE) problems.push(`\`${shown}\` must be spelled ${SKILL_FILE}.`);
    seen.add(key);
    for (const folder of foldersOf(path)) {
      const other = folders.get(folded(folder));
      if (other === undefined) folders.set(folded(folder), folder);
      else if (other !== folder)
        problems.push(`The folders \`${visible(other, 128)}\` and \`${visible(folder, 128)}\` differ only in upper and lower case.`);
    }
    if (problems.length >= MAX_PROBLEMS) return invalid(problems);
  }
  for (const path of seen)
    if (foldersOf(path).some((folder) => seen.has(folder)))
      problems.push(`\`${visible(path, 128)}\` is inside a path that is also a file.`);
  if (manual === undefined) problems.push(`${SKILL_FILE} is missing.`);
  return invalid([...new Set(problems)]);
}

/** Why these contents are refused. A text must read as it looks; other files are kept as they are. */
export async function refusedContents(files: readonly NewFile[]): Promise<Refused | undefined> {
  const problems: string[] = [];
  for (const { path, bytes } of files) {
    const text = asText(bytes);
    if (path === SKILL_FILE) problems.push(...(text === undefined ? [`${SKILL_FILE} is not text.`] : await problemsOf(text)));
    else if (text !== undefined) {
      // Old licences have page breaks.
      const danger = dangerousIn(text.replaceAll("\f", " "));
      if (danger)
        problems.push(
          `\`${visible(path, 128)}\`, line ${danger.line}: a hidden character (${danger.code}) makes the text read differently than it looks.`,
        );
    }
    if (problems.length >= MAX_PROBLEMS) break;
  }
  return invalid(problems);
}
const problemsOf = async (text: string): Promise<readonly string[]> => (await import("./front-matter.lazy.ts")).readHead(text).problems;
