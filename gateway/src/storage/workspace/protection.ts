/**
 * Which files of an agent are more than files, and who may change them (promises S10). PURE; the one place that says so.
 *
 *   sealed     sessions/, results/: what happened. Nobody writes or deletes there through the workspace, so that no transcript
 *              is forged; reset, compaction and long results put theirs by themselves.
 *   protected  what makes the agent what it is, and what it is told to do. Only the owner changes it.
 *   plain      everything else. Today also the owner's alone to change: what is not allowed is refused.
 *
 * Names are compared the way a disk may fold them (case, Unicode forms), so that `soul.md` is no way around `SOUL.md`.
 */
import type { GsvError } from "../../ports/result.ts";
import type { WorkspacePath } from "../keys.ts";

export type Protection = "sealed" | "folder" | "protected" | "plain";
/** `owner`: the owner's client, or a run of the owner's own conversation. `other`: everyone else's run. */
export type Writer = "owner" | "other";

const PROTECTED_FILES = [
  "SOUL.md",
  "IDENTITY.md",
  "USER.md",
  "AGENTS.md",
  "TOOLS.md",
  "HEARTBEAT.md",
  "BOOTSTRAP.md",
  "MEMORY.md",
  "agent.yaml",
] as const;
const SEALED_FOLDERS = ["sessions", "results"] as const;
/** A file of such a name would take the place of the folder on a disk. */
const FOLDERS = ["memory", "skills"] as const;

const folded = (path: string): string => path.normalize("NFKC").toLowerCase();
const PROTECTED = new Set(PROTECTED_FILES.map(folded));

export function protectionOf(path: WorkspacePath): Protection {
  const name = folded(path);
  const top = name.split("/")[0] ?? "";
  if (SEALED_FOLDERS.some((folder) => folder === top)) return "sealed";
  if (FOLDERS.some((folder) => folder === name)) return "folder";
  return top === "skills" || PROTECTED.has(name) ? "protected" : "plain";
}

/** Why this writer may not change that file; undefined: it may. */
export function refusal(path: WorkspacePath, writer: Writer): GsvError | undefined {
  const protection = protectionOf(path);
  switch (protection) {
    case "sealed":
      return {
        reason: "workspace.protected",
        message: `\`${path}\` is part of what happened, and nothing there is changed or deleted by hand. Read it, or copy it under another name.`,
      };
    case "folder":
      return { reason: "path.not_a_file", message: `\`${path}\` is a folder of the workspace. Name a file in it.` };
    case "protected":
      return writer === "owner"
        ? undefined
        : {
            reason: "workspace.protected",
            message: `\`${path}\` is protected: only the owner changes it. The owner can ask for it in their own conversation, or use \`gsv workspace edit ${path}\`.`,
          };
    case "plain":
      return writer === "owner"
        ? undefined
        : {
            reason: "auth.forbidden",
            message: "Only the owner's own conversation may change the workspace. The owner can ask for it there.",
          };
  }
}
