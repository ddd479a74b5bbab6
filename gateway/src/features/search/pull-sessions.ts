/** Brings what an agent's conversations have now, and have not archived, into its index. */
import type { SearchableSession, SearchableSessions } from "../../ports/search.ts";
import type { Doc } from "./text-store.ts";
import { MESSAGE_PIECE_CHARS, type Pass } from "./pass.ts";
import { dayWords, pieces } from "./text.ts";

export const ROWS_PER_PAGE = 200;
/** Further ones are not searched. */
const MAX_SESSIONS = 10_000;
const SESSIONS_AT_ONCE = 8;
const WHOLE = { isWhole: true, unread: 0 } as const;

export interface SessionsPulled {
  /** Each session has reported its first number. */
  readonly isWhole: boolean;
  /** Messages that are not indexed yet. */
  readonly unread: number;
  /** Conversations that were not asked. */
  readonly unasked: number;
}

export async function pullSessions(pass: Pass): Promise<SessionsPulled> {
  const waiting: SearchableSession[] = [];
  try {
    for (let after: string | undefined = ""; after !== undefined && waiting.length < MAX_SESSIONS; ) {
      const { sessions, more }: SearchableSessions = await pass.ports.sessions(after);
      waiting.push(...sessions);
      after = more ? sessions.at(-1)?.key : undefined;
    }
  } catch {
    pass.fail("sessions", "The conversations could not be listed now, so the last indexed state was searched.");
    return { isWhole: false, unread: 0, unasked: 0 };
  }
  // Most recently active first: they have more to index.
  waiting.sort((left, right) => right.lastActiveAt - left.lastActiveAt);
  let isWhole = true;
  let unread = 0;
  let unasked = 0;
  const work = async (): Promise<void> => {
    for (let session = waiting.shift(); session !== undefined; session = waiting.shift()) {
      if (pass.enough()) {
        unasked += 1 + waiting.splice(0).length;
        return;
      }
      try {
        const pulled = await pullSession(pass, session);
        isWhole = pulled.isWhole && isWhole;
        unread += pulled.unread;
      } catch {
        isWhole = false;
        pass.fail("sessions", "Some conversations did not answer now, so the last indexed state was searched. Search again.");
      }
    }
  };
  await Promise.all(Array.from({ length: SESSIONS_AT_ONCE }, work));
  return { isWhole: isWhole && unasked === 0, unread, unasked };
}
async function pullSession(pass: Pass, { key, quietSince }: SearchableSession): Promise<Omit<SessionsPulled, "unasked">> {
  const { store, rows, now } = pass.ports;
  let source = store.sources.one("sessions", key);
  const startedAt = now();
  // The last check is in the future: the clock was set back, so the times can't be compared.
  if (source?.state === "done" && quietSince <= source.checkedAt && source.checkedAt <= startedAt) return WHOLE;
  for (;;) {
    const answer = await rows(key, source?.next ?? 0, ROWS_PER_PAGE);
    // The key was assigned and never used.
    if (!answer.ok) return { isWhole: answer.error.reason === "session.not_found", unread: 0 };
    const page = answer.value;
    source ??= store.sources.addSession(key);
    const { id } = source;
    if (source.next >= page.nextSeq && source.next > 0) {
      // Its numbers are lower than the indexed ones: it is a new session under this key.
      // Cut off, the next pass sees the same and goes on.
      while (!store.removeBelow(id, Number.MAX_SAFE_INTEGER)) if (pass.enough()) return { isWhole: false, unread: 0 };
      store.add(id, [], { state: "new", next: 0 });
      source = { ...source, next: 0 };
      if (pass.enough()) return { isWhole: false, unread: 0 };
      continue;
    }
    const docs = page.rows.flatMap(({ seq, ...row }) =>
      pieces(row.text, MESSAGE_PIECE_CHARS).map(
        (piece): Doc => ({ position: seq, role: row.role, at: row.at, text: piece.text, day: dayWords(row.at) }),
      ),
    );
    pass.took(docs.length);
    store.add(id, docs, {
      state: page.more ? "partial" : "done",
      next: page.upTo,
      contextFrom: page.contextFrom,
      sessionId: page.sessionId,
      // A running run writes rows without a new message.
      checkedAt: page.busy || page.more ? 0 : startedAt,
    });
    if (!page.more) return WHOLE;
    source = { ...source, next: page.upTo };
    if (pass.enough()) return { isWhole: false, unread: Math.max(1, page.nextSeq - 1 - page.upTo) };
  }
}
