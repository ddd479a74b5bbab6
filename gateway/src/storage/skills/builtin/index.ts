/** GSV's built-in skills. They are part of the program, so they need no bucket and no approval. An agent's skill of the same name replaces one. */
import type { SkillFolder } from "../folder.ts";
import { readHead } from "../front-matter.ts";
import { CODING, MEETING_NOTES, SYSTEM_CARE, WEB_RESEARCH } from "./texts-machines.ts";
import { DAILY_REVIEW, SKILL_CREATOR, WORKSPACE_UNDO } from "./texts-workspace.ts";

const TEXTS: ReadonlyMap<string, string> = new Map([
  ["coding", CODING],
  ["daily-review", DAILY_REVIEW],
  ["meeting-notes", MEETING_NOTES],
  ["skill-creator", SKILL_CREATOR],
  ["system-care", SYSTEM_CARE],
  ["web-research", WEB_RESEARCH],
  ["workspace-undo", WORKSPACE_UNDO],
]);
const PATH = /^skills\/([^/]+)\/SKILL\.md$/;

/** Parsed at the first use, to keep the Worker's start fast. */
let folders: readonly SkillFolder[] | undefined;
export function builtinFolders(): readonly SkillFolder[] {
  folders ??= [...TEXTS].map(([name, text]) => ({
    scope: "builtin",
    name,
    files: [],
    sha256: undefined,
    head: readHead(text),
    problems: [],
  }));
  return folders;
}

/** A built-in file by its workspace path. It has no modification time. */
export function builtinFile(
  path: string,
): { readonly content: string; readonly size: number; readonly lastModified: string; readonly etag: string } | undefined {
  const name = PATH.exec(path)?.[1];
  const content = name === undefined ? undefined : TEXTS.get(name);
  if (name === undefined || content === undefined) return undefined;
  return { content, size: new TextEncoder().encode(content).length, lastModified: new Date(0).toISOString(), etag: `builtin-${name}` };
}

/** The direct entries of a workspace folder; folders end with a slash. */
export function builtinPaths(folder: string): readonly string[] {
  if (folder === "skills") return [...TEXTS.keys()].map((name) => `skills/${name}/`);
  const path = `${folder}/SKILL.md`;
  return builtinFile(path) === undefined ? [] : [path];
}
