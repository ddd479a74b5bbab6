/** Skills that come with GSV: texts in the program, so that they need no bucket and no approval. An agent's own of the same name is used instead. */
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

/** Read at the first use: a Worker that starts has better things to do. */
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

/** As a workspace path says it. The time is the program's: there is none. */
export function builtinFile(
  path: string,
): { readonly content: string; readonly size: number; readonly lastModified: string; readonly etag: string } | undefined {
  const name = PATH.exec(path)?.[1];
  const content = name === undefined ? undefined : TEXTS.get(name);
  if (name === undefined || content === undefined) return undefined;
  return { content, size: new TextEncoder().encode(content).length, lastModified: new Date(0).toISOString(), etag: `builtin-${name}` };
}

/** What is directly in a folder of the workspace; folders end in a slash. */
export function builtinPaths(folder: string): readonly string[] {
  if (folder === "skills") return [...TEXTS.keys()].map((name) => `skills/${name}/`);
  const path = `${folder}/SKILL.md`;
  return builtinFile(path) === undefined ? [] : [path];
}
