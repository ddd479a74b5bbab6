/** Whether this version can use the conversations that it found (gateway rule UP2). Changes none beyond the migration of its tables. */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

/** The last active ones. A fault of one conversation is its own; a migration that is wrong fails in all. */
const CHECKED = 64;
/** Sessions that are asked at the same time. */
const AT_ONCE = 8;

/** Throws the first fault when no conversation can be opened. */
export async function checkSessions({ sessions, ask, log }: SessionsPort & Pick<KernelPorts, "log">): Promise<void> {
  const waiting = [...sessions.activeSince(0, CHECKED)];
  const faults: unknown[] = [];
  let opened = 0;
  const work = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      try {
        await ask(key, (session) => session.stats(), "once");
        opened++;
      } catch (error) {
        faults.push(error);
        log.error("session_not_opened", { session: key, error });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (opened === 0 && faults.length > 0) throw faults[0];
}
