/**
 * Brings an agent's search index up to date with the bucket and the agent's sessions. It pulls; nothing pushes to it. Each step is
 * small and committed with its progress, so that a pass can stop anywhere (timeout, eviction, bucket failure) and continue from
 * there. An unreadable source becomes a note. A pass never fails as a whole and must not change its sources.
 *
 * The order matters: sessions are asked before transcripts are listed. So messages that a session has archived are in the listing,
 * and they leave the session's index only after their transcript is indexed.
 */
import type { IndexStore } from "./index-store.ts";
import { type CatchUpPorts, type Note, Pass } from "./pass.ts";
import { listFiles, listMemoryFiles, pullFile } from "./pull-files.ts";
import { pullMemories } from "./pull-memories.ts";
import { pullSessions, type SessionsPulled } from "./pull-sessions.ts";
import { listTranscripts, pullTranscript } from "./pull-transcripts.ts";

/** The key of a transcript without a session key; it is about no session. */
const NO_SESSION = "";
const NONE_ASKED: SessionsPulled = { isWhole: false, unread: 0, unasked: 0 };

export interface Report {
  readonly complete: boolean;
  /** The index has all memory files, transcripts and rows as they were when the pass began. */
  readonly isCurrent: boolean;
  /** Every row as it was when the pass began. */
  readonly hasRows: boolean;
  readonly notes: readonly Note[];
}

/** What a pass brings up to date: everything; what an agent remembers (memory files, transcripts, rows); or its rows. */
export const SCOPES = ["rows", "memory", "all"] as const;
export type Scope = (typeof SCOPES)[number];

/** Runs one pass. Between steps it asks `enough` whether to stop. `hadRows`: the index has the rows as they are. */
export async function catchUp(
  agentId: string,
  ports: CatchUpPorts,
  enough: () => boolean,
  scope: Scope = "all",
  hadRows = false,
): Promise<Report> {
  const { store } = ports;
  const pass = new Pass(agentId, ports, enough);
  const hasRows = hadRows || (await pullMemories(pass));
  if (scope === "rows") return { complete: pass.hasFailed || hasRows, isCurrent: false, hasRows, notes: pass.notes };
  await (scope === "memory" ? listMemoryFiles(pass) : listFiles(pass));
  for (const source of store.sources.unread("workspace")) {
    if (pass.enough()) break;
    await pullFile(pass, source);
  }
  // Without them nothing of a conversation is removed.
  const sessions = scope === "all" ? await pullSessions(pass) : NONE_ASKED;
  const hasListed = await listTranscripts(pass);
  for (const source of store.sources.unread("archives")) {
    if (pass.enough()) break;
    await pullTranscript(pass, source);
  }
  const isClean = removeForgotten(pass, store, sessions.isWhole && hasListed);
  const [files, transcripts] = [store.sources.open("workspace"), store.sources.open("archives")];
  pass.leftOver("workspace", files, "file");
  pass.leftOver("sessions", sessions.unread, "message");
  pass.leftOver("sessions", sessions.unasked, "conversation");
  pass.leftOver("archives", transcripts, "transcript");
  for (const { note, sessionKey } of store.sources.noted("archives")) pass.note("archives", note, sessionKey ?? NO_SESSION);
  const isWhole = isClean && hasRows && files + transcripts + sessions.unread + sessions.unasked === 0;
  // The next search retries a failed source, not the alarm.
  return {
    complete: pass.hasFailed || isWhole,
    isCurrent: isWhole && !pass.hasFailed,
    hasRows,
    notes: pass.notes,
  };
}

/** Only what changed in long-term memory, whole. False: it could not be read. */
export async function followMemories(agentId: string, ports: CatchUpPorts): Promise<boolean> {
  return pullMemories(new Pass(agentId, ports, () => false));
}

/**
 * Removes the texts of deleted sources, and with `hasAll` (each session and transcript was seen) the messages that their transcripts
 * have now. True when nothing is left to remove.
 */
function removeForgotten(pass: Pass, store: IndexStore, hasAll: boolean): boolean {
  while (!store.removeGone()) if (pass.enough()) return false;
  if (!hasAll) return true;
  for (const { id, name, contextFrom } of store.sources.of("sessions")) {
    if (store.sources.archiveOpenFor(name)) continue;
    while (!store.removeBelow(id, contextFrom)) if (pass.enough()) return false;
  }
  return true;
}
