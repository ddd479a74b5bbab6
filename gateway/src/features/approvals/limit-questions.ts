/**
 * Runs that are paused at a limit: after each change of what a run may use, and when the day ends, their sessions are told to look again
 * (rule SP10). What was looked at is in memory only, so that a restart looks once more.
 */
import type { ApprovalEntry } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { nextDay } from "../../prompt/dates.ts";
import type { ApprovalStore } from "./store.ts";

type Ports = Pick<KernelPorts, "config" | "contextVersion" | "now"> & Pick<SessionsPort, "ask">;
/** A question, and the last look of its session: what a run may use then, and the end (epoch ms) of the day. */
interface Waiting {
  readonly code: string;
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
  /** The questions of a session that wait now. */
  changed(sessionKey: string, waiting: readonly ApprovalEntry[]): void {
    const code = waiting.find(({ limit }) => limit)?.code;
    const known = this.#all();
    if (code === undefined) known.delete(sessionKey);
    else if (known.get(sessionKey)?.code !== code) known.set(sessionKey, { code });
  }
  next(): number | undefined {
    if (this.#due().length > 0) return this.#ports.now();
    const ends = [...this.#all().values()].flatMap(({ looked }) => looked?.dayEnd ?? []);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }
  async run(): Promise<void> {
    const { config, contextVersion, now } = this.#ports;
    const looked = { version: contextVersion(), dayEnd: nextDay(now(), config.effective().userTimezone) };
    const looks = this.#due().map(async ([sessionKey, { code }]) => {
      await this.#ports.ask(sessionKey, (session) => session.lookAtLimit());
      if (this.#all().get(sessionKey)?.code === code) this.#all().set(sessionKey, { code, looked });
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
    this.#waiting ??= new Map(this.#store.limits().map(({ sessionKey, code }) => [sessionKey, { code }]));
    return this.#waiting;
  }
}
