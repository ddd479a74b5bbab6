/**
 * Which of the agent's files a session may use (promises S8, S10). PURE. The owner's sessions may use all. Any other session may read
 * the files that make the agent itself, skills, and the results of its own calls; it may change nothing. protection.ts says which
 * files are protected.
 */
import type { Failure, GsvError } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import { parseFolder, parsePath } from "../../storage/keys.ts";
import { placeRefusal, refusal } from "../../storage/workspace/protection.ts";

const PUBLIC_FILES = new Set(["SOUL.md", "IDENTITY.md", "AGENTS.md"]);

export function mayRead(identity: SessionIdentity, given: string): boolean {
  if (identity.isOwnersSession) return true;
  const path = parsePath(given);
  if (!path.ok) return false;
  return PUBLIC_FILES.has(path.value) || path.value.startsWith("skills/") || path.value.startsWith(`results/${identity.ref}-`);
}
/** Why this session may not change the file; undefined: it may. `writes`: the change leaves a file there. The store refuses an invalid path. */
export function writeRefusal(identity: SessionIdentity, given: string, writes = true): GsvError | undefined {
  const path = parsePath(given);
  if (!path.ok) return identity.isOwnersSession ? undefined : path.error;
  const place = writes ? placeRefusal(path.value) : undefined;
  return place ?? refusal(path.value, identity.isOwnersSession ? "owner" : "other", identity.agentId);
}
/** Why no session of the agent may change the file (rule AP17). */
export function changeRefusal(agentId: string, given: string, writes: boolean): Failure | undefined {
  const path = parsePath(given);
  if (!path.ok) return path;
  const error = (writes ? placeRefusal(path.value) : undefined) ?? refusal(path.value, "owner", agentId);
  return error && { ok: false, error };
}
/** Whether a folder may be listed. The caller filters its files by `mayRead`. */
export function mayList(identity: SessionIdentity, given: string | undefined): boolean {
  if (identity.isOwnersSession) return true;
  const folder = parseFolder(given);
  return folder.ok && (folder.value === "" || folder.value === "skills" || folder.value.startsWith("skills/"));
}
