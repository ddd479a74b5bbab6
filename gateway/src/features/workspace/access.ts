/**
 * Which of the agent's files a conversation may touch (promises S8, S10). Pure. The owner's own conversation may touch
 * all. Any other - someone else's, a group's - sees what makes the agent itself, skills, and the results of its own tool
 * calls; never memory, the owner, transcripts, or other conversations' results; and changes nothing. Which files are more than
 * files is said in workspace/protection.ts.
 */
import type { GsvError } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import { parseFolder, parsePath } from "../../storage/keys.ts";
import { refusal } from "../../storage/workspace/protection.ts";

const PUBLIC_FILES = new Set(["SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md"]);

export function mayRead(identity: SessionIdentity, given: string): boolean {
  if (identity.isOwnersSession) return true;
  const path = parsePath(given);
  if (!path.ok) return false;
  return PUBLIC_FILES.has(path.value) || path.value.startsWith("skills/") || path.value.startsWith(`results/${identity.ref}-`);
}
/** Why this conversation may not change that file; undefined: it may. A path that is none is the store's to refuse. */
export function writeRefusal(identity: SessionIdentity, given: string): GsvError | undefined {
  const path = parsePath(given);
  if (!path.ok) return identity.isOwnersSession ? undefined : path.error;
  return refusal(path.value, identity.isOwnersSession ? "owner" : "other");
}
/** Folders that may be listed at all; what is in them is then filtered by `mayRead`. */
export function mayList(identity: SessionIdentity, given: string | undefined): boolean {
  if (identity.isOwnersSession) return true;
  const folder = parseFolder(given);
  return folder.ok && (folder.value === "" || folder.value === "skills" || folder.value.startsWith("skills/"));
}
