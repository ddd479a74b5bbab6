/**
 * Runs that are paused at a limit: after each change of what a run may use, their sessions are told to look again (rule SP10). What was
 * looked at is in memory only, so that a restart looks once more.
 */
import type { ApprovalEntry } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { ApprovalStore } from "./store.ts";

type Ports = Pick<KernelPorts, "contextVersion" | "now"> & Pick<SessionsPort, "ask">;

export class LimitQuestions {
  readonly #store: Pick<ApprovalStore, "limits">;
  readonly #ports: Ports;
  /** By session, which has one at most: its code, and the version at which its session looked. */
  #waiting: Map<string, { readonly code: string; readonly version?: string }> | undefined;

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
    return this.#due().length > 0 ? this.#ports.now() : undefined;
  }
  async run(): Promise<void> {
    const version = this.#ports.contextVersion();
    const looked = this.#due().map(async ([sessionKey, { code }]) => {
      await this.#ports.ask(sessionKey, (session) => session.lookAtLimit());
      if (this.#all().get(sessionKey)?.code === code) this.#all().set(sessionKey, { code, version });
    });
    const failed = (await Promise.allSettled(looked)).find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }
  #due() {
    const known = this.#all();
    if (known.size === 0) return [];
    const now = this.#ports.contextVersion();
    return [...known].filter(([, { version }]) => version !== now);
  }
  #all() {
    this.#waiting ??= new Map(this.#store.limits().map(({ sessionKey, code }) => [sessionKey, { code }]));
    return this.#waiting;
  }
}
