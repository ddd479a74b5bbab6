/**
 * Asking sessions. One stub per conversation, so that what is asked in order arrives in order. A call that broke on the way is made
 * once more when that can do no harm; what fails twice is a failure.
 */
import type { Logger } from "../../platform/log.ts";
import type { SessionPort } from "../../ports/session.ts";

export type AskSession = <T>(key: string, ask: (session: SessionPort) => Promise<T>, repeat?: Repeat) => Promise<T>;
/** `once`: the answer may have been lost after the effect, and a second effect would be wrong. */
export type Repeat = "repeatable" | "once";

const MAX_STUBS = 256;

export function sessionPorts(connect: (key: string) => SessionPort, log: Logger): AskSession {
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
      // A stub whose call failed may be broken for good.
      stubs.delete(key);
      log.warn("session_call_failed", { session: key, error, again: repeat === "repeatable" });
      if (repeat === "once") throw error;
      return ask(stubOf(key));
    }
  };
}
