/**
 * Calls sessions, over one stub per session, so that calls arrive in the order in which they were made. A call that failed on the way
 * is made once more when it is repeatable; the second failure rejects.
 */
import type { Logger } from "../../platform/log.ts";
import { fail } from "../../kernel/outcome.ts";
import type { ExecEventTaken, SessionIdentity, SessionNote, SessionPort, SessionSend } from "../../ports/session.ts";
import type { AskSession } from "../../ports/sessions.ts";

const MAX_STUBS = 256;

/** `hold`: everything is stopped, and this session will have been told so. `deleted`: the session is, or is being, deleted. */
export function askSessions(
  connect: (key: string) => SessionPort,
  log: Logger,
  hold: (key: string) => boolean = () => false,
  deleted: (identity: SessionIdentity) => boolean = () => false,
): AskSession {
  const stubs = new Map<string, SessionPort>();
  const stubOf = (key: string): SessionPort => {
    const known = stubs.get(key);
    if (known !== undefined) return known;
    if (stubs.size >= MAX_STUBS) {
      const oldest = stubs.keys().next();
      if (oldest.done !== true) stubs.delete(oldest.value);
    }
    const fresh = withHold(connect(key), () => hold(key), deleted);
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

/**
 * A session that is told, with whatever could start a run, that everything is stopped: no call overtakes it. Nothing that would begin a
 * session reaches one that is being deleted (rule SD3).
 */
function withHold(session: SessionPort, hold: () => boolean, deleted: (identity: SessionIdentity) => boolean): SessionPort {
  const send = (input: SessionSend): ReturnType<SessionPort["send"]> => {
    if (deleted(input.identity)) return Promise.resolve(fail("session.deleting"));
    return session.send(hold() ? { ...input, held: true } : input);
  };
  const note = (input: SessionNote): Promise<void> => (deleted(input.identity) ? Promise.resolve() : session.note(input));
  const execEvent = async (...args: Parameters<SessionPort["execEvent"]>): Promise<ExecEventTaken> => {
    if (hold()) await session.hold(true);
    return session.execEvent(...args);
  };
  return new Proxy(session, {
    get(target, name) {
      if (name === "send") return send;
      if (name === "note") return note;
      if (name === "execEvent") return execEvent;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? (...args: unknown[]): unknown => Reflect.apply(member, target, args) : member;
    },
  });
}
