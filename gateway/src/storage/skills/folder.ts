/**
 * A skill as a folder of files: its names, its digest, and which of several skills of one name is used. The digest covers the path
 * and content of every file, so that every change of a skill changes it. Asynchronous only because hashing is.
 */
import type { SkillFile } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type SkillHead, readHead } from "./front-matter.ts";
import { dangerousIn, visible } from "../../prompt/hidden.ts";

export type SkillScope = "agent" | "global" | "builtin";
export interface HashedFile {
  /** Path in the skill's folder. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}
export interface SkillFolder {
  readonly scope: SkillScope;
  /** The unchecked folder name: check it with `isSkillName` before it is shown. */
  readonly name: string;
  readonly files: readonly HashedFile[];
  /** Undefined when it has too many or too large files; then none of them is read. */
  readonly sha256: string | undefined;
  readonly head: SkillHead;
  /** Problems of the folder itself. */
  readonly problems: readonly string[];
}

export const SKILL_FILE = "SKILL.md";
export const NO_FILES: ReadonlyMap<string, string> = new Map();
const FILE_PATH = /^[A-Za-z0-9_][A-Za-z0-9._ +,@()=-]*(?:\/[A-Za-z0-9_][A-Za-z0-9._ +,@()=-]*)*$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const isSkillName = (name: string): boolean => NAME.test(name);
export const NAME_RULE = "Skills are named with letters, digits, `.`, `_` and `-`, at most 64, the first one a letter or digit.";

const encoder = new TextEncoder();
export async function sha256Of(bytes: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** The digest of all files, by path. A skill without files has a digest too. */
export function digestOf(files: ReadonlyMap<string, string>): Promise<string> {
  const lines = [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, sha256]) => `${path}\0${sha256}\n`);
  return sha256Of(encoder.encode(lines.join("")));
}
export const digestsOf = (files: readonly HashedFile[]): Map<string, string> => new Map(files.map(({ path, sha256 }) => [path, sha256]));

/** The first scope that has a folder of the name. Broken folders count, so damage never activates another skill. */
export function inForce(...scopes: readonly (readonly SkillFolder[])[]): readonly SkillFolder[] {
  const byName = new Map<string, SkillFolder>();
  for (const folders of scopes) for (const folder of folders) if (!byName.has(folder.name)) byName.set(folder.name, folder);
  return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Splits `skills/NAME/PATH`; undefined for any other path, including the folder itself. */
export function skillPath(path: string): { readonly name: string; readonly file: string } | undefined {
  const match = /^skills\/([^/]+)\/(.+)$/.exec(path);
  return match?.[1] === undefined || match[2] === undefined ? undefined : { name: match[1], file: match[2] };
}

/** Problems of the files of a new skill, from every path and size, before anything is written. Empty when there are none. */
export function installProblems(name: string, files: readonly SkillFile[]): readonly string[] {
  if (!isSkillName(name)) return [NAME_RULE];
  if (files.length > LIMITS.skillFiles) return [`A skill has at most ${LIMITS.skillFiles} files; these are ${files.length}.`];
  const problems: string[] = [];
  const seen = new Set<string>();
  let total = 0;
  for (const { path, content } of files) {
    const shown = visible(path, 128);
    const size = encoder.encode(content).length;
    total += size;
    const folded = path.normalize("NFC").toLowerCase();
    if (!FILE_PATH.test(path) || /[. ](?:\/|$)/.test(path))
      problems.push(`\`${shown}\`: paths may contain letters, digits, blanks and \`._+,@()=-\`; no part may begin or end with a dot.`);
    else if (path.length > 256) problems.push(`\`${shown}\`: the path is longer than 256 characters.`);
    else if (seen.has(folded)) problems.push(`\`${shown}\` occurs twice (upper and lower case count as the same).`);
    else if (content.includes("\0") || !content.isWellFormed()) problems.push(`\`${shown}\` is not text.`);
    else {
      const danger = dangerousIn(content);
      if (danger)
        problems.push(
          `\`${shown}\`, line ${danger.line}: a hidden character (${danger.code}) makes the text read differently than it looks.`,
        );
    }
    seen.add(folded);
    if (problems.length >= 8) return problems;
  }
  for (const path of seen) {
    const above = path
      .split("/")
      .slice(0, -1)
      .map((_, depth, parts) => parts.slice(0, depth + 1).join("/"));
    if (above.some((folder) => seen.has(folder))) problems.push(`\`${visible(path, 128)}\` is inside a path that is also a file.`);
  }
  if (total > LIMITS.skillFilesBytes)
    problems.push(`All files of a skill have at most ${LIMITS.skillFilesBytes} bytes; these have ${total}.`);
  const manual = files.find(({ path }) => path === SKILL_FILE);
  if (manual === undefined) problems.push(`${SKILL_FILE} is missing.`);
  else if (encoder.encode(manual.content).length > LIMITS.skillBytes)
    problems.push(`${SKILL_FILE} is larger than ${LIMITS.skillBytes} bytes.`);
  else problems.push(...readHead(manual.content).problems);
  return problems.slice(0, 8);
}
