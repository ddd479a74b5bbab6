/**
 * Which of the agent's files a conversation may touch (promises S8, S10). Pure. The owner's own conversation may touch
 * all. Any other - someone else's, a group's - sees what makes the agent itself, skills, and the results of its own tool
 * calls; never memory, the owner, transcripts, or other conversations' results; and changes nothing.
 */
import type { SessionIdentity } from "../ports.ts";
import { parseFolder, parsePath } from "../workspace/keys.ts";

const PUBLIC_FILES = new Set(["SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md"]);

export function mayRead(identity: SessionIdentity, given: string): boolean {
  if (identity.isMain) return true;
  const path = parsePath(given);
  if (!path.ok) return false;
  return PUBLIC_FILES.has(path.value) || path.value.startsWith("skills/") || path.value.startsWith(`results/${identity.ref}-`);
}
export const mayWrite = (identity: SessionIdentity): boolean => identity.isMain;
/** Folders that may be listed at all; what is in them is then filtered by `mayRead`. */
export function mayList(identity: SessionIdentity, given: string | undefined): boolean {
  if (identity.isMain) return true;
  const folder = parseFolder(given);
  return folder.ok && (folder.value === "" || folder.value === "skills" || folder.value.startsWith("skills/"));
}
