/** After a restart of the runtime: resumes sessions that may have been interrupted (gateway rule D6). One failure stops no other. */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

const ACTIVE_WITHIN_MS = 86_400_000;
const MAX_RESUMED = 64;
/** Sessions that are asked at the same time. */
const AT_ONCE = 8;

export async function resumeSessions({ sessions, ask, now, log }: SessionsPort & Pick<KernelPorts, "now" | "log">): Promise<void> {
  const waiting = [...sessions.activeSince(now() - ACTIVE_WITHIN_MS, MAX_RESUMED)];
  const work = async (): Promise<void> => {
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      try {
        await ask(key, (session) => session.resume());
      } catch (error) {
        log.error("resume_failed", { session: key, error });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
