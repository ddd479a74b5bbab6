/**
 * A skill as a folder of files: its names, its digest, and which of several skills of one name is used. The digest covers the path
 * and content of every file, so that every change of a skill changes it. Asynchronous only because hashing is.
 */
import { toHex } from "../../../../protocol/runtime/hex.ts";
import { compareTexts } from "../../../../protocol/runtime/compare-texts.ts";

export type SkillScope = "agent" | "global" | "builtin";
/** The head of a SKILL.md. It is usable when `problems` is empty; the other fields hold the readable parts. */
export interface SkillHead {
  readonly name?: string;
  readonly description: string;
  readonly homepage?: string;
  readonly emoji?: string;
  readonly always: boolean;
  readonly capabilities: readonly string[];
  readonly bins: readonly string[];
  readonly install: readonly string[];
  readonly problems: readonly string[];
}

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
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export const isSkillName = (name: string): boolean => NAME.test(name);
export const NAME_RULE = "Skills are named with letters, digits, `.`, `_` and `-`, at most 64, the first one a letter or digit.";

const encoder = new TextEncoder();
export const sha256Of = async (bytes: Uint8Array): Promise<string> => toHex(await crypto.subtle.digest("SHA-256", bytes));
export async function sha256OfStream(body: ReadableStream): Promise<string> {
  const digest = new crypto.DigestStream("SHA-256");
  digest.digest.catch(() => {});
  await body.pipeTo(digest);
  return toHex(await digest.digest);
}
/** The digest of all files, by path. A skill without files has a digest too. */
export function digestOf(files: ReadonlyMap<string, string>): Promise<string> {
  const lines = [...files].toSorted(([a], [b]) => compareTexts(a, b)).map(([path, sha256]) => `${path}\0${sha256}\n`);
  return sha256Of(encoder.encode(lines.join("")));
}
export const digestsOf = (files: readonly HashedFile[]): Map<string, string> => new Map(files.map(({ path, sha256 }) => [path, sha256]));

const ORDER: readonly SkillScope[] = ["agent", "global", "builtin"];
/**
 * The first scope that has a folder of the name. Broken folders count, so damage never activates another skill. An agent's own skills
 * come first, then shared ones, then built-in ones; each by name.
 */
export function inForce(...scopes: readonly (readonly SkillFolder[])[]): readonly SkillFolder[] {
  const byName = new Map<string, SkillFolder>();
  for (const folders of scopes) for (const folder of folders) if (!byName.has(folder.name)) byName.set(folder.name, folder);
  const rank = ({ scope }: SkillFolder): number => ORDER.indexOf(scope);
  return [...byName.values()].toSorted((a, b) => rank(a) - rank(b) || compareTexts(a.name, b.name));
}

/** The digest of a skill without files: a skill that does not exist yet. */
export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Splits `skills/NAME/PATH`; undefined for any other path, including the folder itself. */
export function skillPath(path: string): { readonly name: string; readonly file: string } | undefined {
  const match = /^skills\/([^/]+)\/(.+)$/.exec(path);
  return match?.[1] === undefined || match[2] === undefined ? undefined : { name: match[1], file: match[2] };
}
