/** GSV's built-in skills. They are part of the program, so they need no bucket and no approval. An agent's skill of the same name replaces one. */
import type { SkillFolder } from "../folder.ts";
import type { BuiltinSkill } from "./builtin-skill.ts";
import { CODING, MEETING_NOTES, SYSTEM_CARE, WEB_RESEARCH } from "./texts-machines.ts";
import { DAILY_REVIEW, SKILL_CREATOR, WORKSPACE_UNDO } from "./texts-workspace.ts";

const SKILLS: ReadonlyMap<string, BuiltinSkill> = new Map(
  [CODING, DAILY_REVIEW, MEETING_NOTES, SKILL_CREATOR, SYSTEM_CARE, WEB_RESEARCH, WORKSPACE_UNDO].map((skill) => [skill.name, skill]),
);
const PATH = /^skills\/([^/]+)\/SKILL\.md$/;

export const BUILTIN_FOLDERS: readonly SkillFolder[] = [...SKILLS.values()].map(({ name, head }) => ({
  scope: "builtin",
  name,
  files: [],
  sha256: undefined,
  head,
  problems: [],
}));

/** A built-in file by its workspace path. It has no modification time. */
export function builtinFile(
  path: string,
): { readonly content: string; readonly size: number; readonly lastModified: string; readonly etag: string } | undefined {
  const name = PATH.exec(path)?.[1];
  const content = name === undefined ? undefined : SKILLS.get(name)?.text;
  if (name === undefined || content === undefined) return undefined;
  return { content, size: new TextEncoder().encode(content).length, lastModified: new Date(0).toISOString(), etag: `builtin-${name}` };
}

/** The direct entries of a workspace folder; folders end with a slash. */
export function builtinPaths(folder: string): readonly string[] {
  if (folder === "skills") return [...SKILLS.keys()].map((name) => `skills/${name}/`);
  const path = `${folder}/SKILL.md`;
  return builtinFile(path) === undefined ? [] : [path];
}
