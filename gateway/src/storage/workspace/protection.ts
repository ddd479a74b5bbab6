/**
 * Defines which files of an agent are protected and who may change them (promises S10). PURE; no other module decides this.
 *
 *   sealed     sessions/, results/: the record of past events. The workspace refuses all writes and deletions there, so that
 *              no transcript can be forged; reset, compaction and long results use their own stores.
 *   quarantine memory/quarantine/: memories that wait for the owner's review (quarantine.ts writes them).
 *   definition agent.yaml: what the agent is and may do. Only `agents.define` writes it, because only what it has checked is in force.
 *   mark       workspace.json: says whether the default files were made. Only the gateway writes it: a wrong one brings them back.
 *   protected  files that define the agent and its instructions. Only the owner may change them.
 *   plain      all other files. Currently only the owner may change them too.
 *
 * A path below the name of one of these files is protected, too, and takes no file: on a disk it would be a folder in the file's place.
 *
 * Names are compared the way a disk may fold them (case, Unicode forms, characters that are not seen), so that `soul.md` can't bypass `SOUL.md`.
 */
import { foldedPath } from "../../policy/paths.ts";
import type { Failure, GsvError } from "../../ports/result.ts";
import { MARKER, type WorkspacePath } from "../keys.ts";

export type Protection = "sealed" | "quarantine" | "definition" | "mark" | "folder" | "protected" | "plain";
/** `owner`: the owner's client, or a run of the owner's session. `other`: any other run. `gateway`: the gateway, with what it has checked. */
export type Writer = "owner" | "other" | "gateway";

export const DEFINITION_FILE = "agent.yaml";

const PROTECTED_FILES = [
  "SOUL.md",
  "IDENTITY.md",
  "USER.md",
  "AGENTS.md",
  "TOOLS.md",
  "HEARTBEAT.md",
  "BOOTSTRAP.md",
  "MEMORY.md",
] as const;
const SEALED_FOLDERS = ["sessions", "results"] as const;
/** On a disk, a file of such a name would replace the folder. */
const FOLDERS = ["memory", "skills"] as const;

const QUARANTINE = "memory/quarantine";

const MARK = foldedPath(MARKER);
/** Files that the gateway knows by name, as they are written. */
const SPECIAL_FILES = new Map([...PROTECTED_FILES, DEFINITION_FILE, MARKER].map((name) => [foldedPath(name), name]));

export function protectionOf(path: WorkspacePath): Protection {
  const name = foldedPath(path);
  const top = name.split("/")[0] ?? "";
  if (SEALED_FOLDERS.some((folder) => folder === top)) return "sealed";
  if (name === QUARANTINE || name.startsWith(`${QUARANTINE}/`)) return "quarantine";
  if (name === DEFINITION_FILE) return "definition";
  if (name === MARK) return "mark";
  if (FOLDERS.some((folder) => folder === name)) return "folder";
  return top === "skills" || SPECIAL_FILES.has(top) ? "protected" : "plain";
}
/** Why no file can be here: the folder would take the place of a file that the gateway knows by name. A file that is there can be deleted. */
export function placeRefusal(path: WorkspacePath): GsvError | undefined {
  const slash = path.indexOf("/");
  const file = slash === -1 ? undefined : SPECIAL_FILES.get(foldedPath(path.slice(0, slash)));
  if (file === undefined) return undefined;
  return {
    reason: "workspace.protected",
    message: `\`${file}\` is a file of the agent, so nothing can be in it.`,
    hint: "Choose another path.",
  };
}

/** What the agent remembers: these files are in its prompt, or are searched as its memory. */
export function isMemory(path: WorkspacePath): boolean {
  const name = foldedPath(path);
  return name === "memory.md" || name.startsWith("memory.md/") || name.startsWith("memory/");
}

/** Why this writer may not change the file of the agent; undefined when it may. */
export function refusal(path: WorkspacePath, writer: Writer, agentId: string): GsvError | undefined {
  const protection = protectionOf(path);
  switch (protection) {
    case "sealed":
      return {
        reason: "workspace.protected",
        message: `\`${path}\` is a record of past events, which can't be changed or deleted by hand.`,
        hint: "Read it, or copy it under another name.",
      };
    case "quarantine":
      return {
        reason: "workspace.protected",
        message: `\`${path}\` waits for the owner's review.`,
        hint: "Only the owner can keep or drop it: `gsv memory review`.",
      };
    case "definition":
      return writer === "gateway"
        ? undefined
        : {
            reason: "workspace.protected",
            message: `\`${path}\` defines the agent: it can't be written like other files, because each change is checked first.`,
            hint: `Only the owner can change it: \`gsv agent edit ${agentId}\`.`,
          };
    case "mark":
      return writer === "gateway"
        ? undefined
        : {
            reason: "workspace.protected",
            message: `\`${path}\` says whether the agent's first files were made, and only the gateway writes it.`,
            hint: "Leave it as it is.",
          };
    case "folder":
      return { reason: "path.not_a_file", message: `\`${path}\` is a folder of the workspace. Name a file in it.` };
    case "protected":
      return writer !== "other"
        ? undefined
        : {
            reason: "workspace.protected",
            message: `\`${path}\` is protected: only the owner may change it.`,
            hint: `The owner can ask for it in their own conversation, or use \`gsv workspace edit ${path}\`.`,
          };
    case "plain":
      return writer !== "other"
        ? undefined
        : {
            reason: "auth.forbidden",
            message: "Only the owner's own conversation may change the workspace. The owner can ask for it there.",
          };
  }
}
/** Why no transfer may write this file. */
export function receiveProblem(agentId: string, path: WorkspacePath): Failure | undefined {
  const refused = placeRefusal(path) ?? refusal(path, "owner", agentId);
  if (refused !== undefined) return { ok: false, error: refused };
  if (protectionOf(path) === "plain" && !isMemory(path)) return undefined;
  const message = `\`${path}\` defines the agent or is its memory, and transfers write only other files.`;
  const hint = path.startsWith("skills/")
    ? "Install a skill: `gsv skills install FOLDER`."
    : `Write it: \`gsv workspace put ${path} FILE\`.`;
  return { ok: false, error: { reason: "workspace.protected", message, hint } };
}
