/**
 * Calls sessions, over one stub per session, so that calls arrive in the order in which they were made. A call that failed on the way
 * is made once more when it is repeatable; the second failure rejects.
 */
import type { Logger } from "../../platform/log.ts";
import type { SessionPort } from "../../ports/session.ts";
import type { AskSession } from "../../ports/sessions.ts";

const MAX_STUBS = 256;

export function askSessions(connect: (key: string) => SessionPort, log: Logger): AskSession {
  const stubs = new Map<string, SessionPort>();
  const stubOf = (key: string): SessionPort => {
    const known = stubs.get(key);
    if (known !== undefined) return known;
    if (stubs.size >= MAX_STUBS) {
      const oldest = stubs.keys().next();
      if (oldest.done !== true) stubs.delete(oldest.value);
    }
    const fresh = connect(key);
    stubs.set(key, fresh);
    return fresh;
  };
  return async (key, ask, repeat = "repeatable") => {
    try {
      return await ask(stubOf(key));
    } catch (error) {
      // A stub whose call failed may stay broken.
      stubs.delete(key);
      log.warn("session_call_failed", { session: key, error, again: repeat === "repeatable" });
      if (repeat === "once") throw error;
      return ask(stubOf(key));
    }
  };
}
