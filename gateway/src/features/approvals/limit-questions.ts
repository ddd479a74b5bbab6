/**
 * Runs that are paused at a limit: after each change of what a run may use, after each report of the question, and when the day ends, their
 * sessions are told to look again (rule SP10). What was looked at is in memory only, so that a restart looks once more.
 */
import type { ApprovalEntry } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { nextDay } from "../../prompt/dates.ts";
import type { ApprovalStore } from "./store.ts";

type Ports = Pick<KernelPorts, "config" | "contextVersion" | "now"> & Pick<SessionsPort, "ask">;
/** The last look of a session at its question: what a run may use then, and the end (epoch ms) of the day. */
interface Waiting {
  readonly looked?: { readonly version: string; readonly dayEnd: number };
}

export class LimitQuestions {
  readonly #store: Pick<ApprovalStore, "limits">;
  readonly #ports: Ports;
  /** By session, which has one at most. */
  #waiting: Map<string, Waiting> | undefined;

  constructor(store: Pick<ApprovalStore, "limits">, ports: Ports) {
    this.#store = store;
    this.#ports = ports;
  }
  /** The questions of a session that wait now. It reports one again when it changed what its next model call needs. */
  reported(sessionKey: string, waiting: readonly ApprovalEntry[]): void {
    const isAsked = waiting.some(({ limit }) => limit);
    if (isAsked) this.#all().set(sessionKey, {});
    else this.#all().delete(sessionKey);
  }
  next(): number | undefined {
    if (this.#due().length > 0) return this.#ports.now();
    const ends = [...this.#all().values()].flatMap(({ looked }) => looked?.dayEnd ?? []);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }
  async run(): Promise<void> {
    const { config, contextVersion, now } = this.#ports;
    const looked = { version: contextVersion(), dayEnd: nextDay(now(), config.effective().userTimezone) };
    const looks = this.#due().map(async ([sessionKey, waiting]) => {
      await this.#ports.ask(sessionKey, (session) => session.recheckLimit());
      // Not what was reported during the look.
      if (this.#all().get(sessionKey) === waiting) this.#all().set(sessionKey, { looked });
    });
    const failed = (await Promise.allSettled(looks)).find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }
  #due() {
    const known = this.#all();
    if (known.size === 0) return [];
    const [version, now] = [this.#ports.contextVersion(), this.#ports.now()];
    return [...known].filter(([, { looked }]) => looked === undefined || looked.version !== version || looked.dayEnd <= now);
  }
  #all(): Map<string, Waiting> {
    this.#waiting ??= new Map(this.#store.limits().map(({ sessionKey }) => [sessionKey, {}]));
    return this.#waiting;
  }
}
