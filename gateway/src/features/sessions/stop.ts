/**
 * Stops everything and lets it go on (rules ST1-ST5). The state is stored first: from then on no model and no tool call of a session gets
 * through. Then the sessions are told, the last active first; one that does not answer is told again by the alarm.
 */
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import type { GatewayStopResult, StopState } from "../../../../protocol/gen/types.ts";
import { asRunId, asSessionKey } from "../../../../protocol/gen/types.ts";
import type { Participant } from "../../kernel/alarms.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { originText, type Origin } from "../../ports/origin.ts";
import { type Failure, failure, type Result, sentence, succeed } from "../../ports/result.ts";
import type { AskSession, RestoredCopy, SessionDirectory } from "../../ports/sessions.ts";
import type { StopStore } from "./stop-store.ts";

/** Sessions that were active this long ago have no run any more: a run has a time limit. */
const ACTIVE_WITHIN_MS = 7 * 86_400_000;
export const MAX_TOLD = 1000;
const AT_ONCE = 16;
/** The answer comes within a second (promise P14); what has not answered until then is `pending`. */
const ANSWER_MS = 700;
const AGAIN_MS = 2000;
const MAX_RUNS = 200;

export interface StopPorts extends Pick<KernelPorts, "arm" | "audit" | "background" | "log" | "now"> {
  readonly stops: StopStore;
  readonly sessions: SessionDirectory;
  readonly ask: AskSession;
  readonly after: (ms: number, work: () => void) => void;
  readonly restoredCopy: RestoredCopy | undefined;
}
export type Stopped = Omit<GatewayStopResult, "ok">;

export class Stop {
  readonly #ports: StopPorts;
  #again = 0;
  #calls = new AbortController();
  readonly #listeners: (() => number)[] = [];
  readonly #changes: (() => Promise<void>)[] = [];

  constructor(ports: StopPorts) {
    this.#ports = ports;
  }

  /** Aborted by the next stop. For calls of the gateway itself, which have begun before it. */
  get signal(): AbortSignal {
    return this.#calls.signal;
  }

  onStop(work: () => number): void {
    this.#listeners.push(work);
  }

  onChange(work: () => Promise<void>): void {
    this.#changes.push(work);
  }

  async stop(by: string): Promise<Stopped> {
    const { stops, sessions, now, after, background, arm } = this.#ports;
    const state: StopState = stops.state() ?? { since: now(), by: by.slice(0, 256) };
    stops.stop(state, sessions.activeSince(now() - ACTIVE_WITHIN_MS, MAX_TOLD));
    this.#calls.abort();
    this.#calls = new AbortController();
    // With the state, in one commit.
    const clientCalls = this.#listeners.reduce((sum, work) => sum + work(), 0);
    this.#again = now() + AGAIN_MS;
    arm();
    const runs: Stopped["runs"] = [];
    const told = Promise.all([this.#tell(runs), ...this.#changes.map((work) => work())]);
    background("stop", told);
    await Promise.race([told, new Promise<void>((resolve) => after(ANSWER_MS, resolve))]);
    return { state, runs: runs.slice(0, MAX_RUNS), pending: stops.untoldCount(), clientCalls };
  }
  /**
   * A restored copy goes on only with the `gsv resume` that removes its mark and starts its channels (rule BK23). `exported`: also a gateway
   * whose home may be live elsewhere (rule MV14).
   */
  resume({ exported = false }: { readonly exported?: boolean } = {}): Result<{ readonly wasStopped: boolean; readonly sessions: number }> {
    const { stops, now, background, arm, restoredCopy } = this.#ports;
    if (restoredCopy !== undefined) return refused(restoredCopy);
    if (stops.state()?.exportedAt !== undefined && !exported) return fail("gateway.exported");
    const wasStopped = stops.state() !== undefined;
    stops.resume();
    const sessions = stops.heldCount();
    this.#again = now() + AGAIN_MS;
    arm();
    background("resume", Promise.all([this.#tell([]), ...this.#changes.map((work) => work())]));
    return succeed({ wasStopped, sessions });
  }

  tellUntold(): Promise<void> {
    return this.#tell([]);
  }

  /** Sessions that have not answered are told again. */
  alarm(): Participant {
    const { stops, now } = this.#ports;
    return {
      name: "stop",
      next: () => (stops.untoldCount() === 0 ? undefined : Math.max(this.#again, 1)),
      run: async () => {
        this.#again = now() + AGAIN_MS;
        await this.#tell([]);
      },
    };
  }

  async #tell(runs: Stopped["runs"]): Promise<void> {
    const { stops, ask, log } = this.#ports;
    const waiting = [...stops.untold(MAX_TOLD)];
    const work = async (): Promise<void> => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
        const isStopped = stops.state() !== undefined;
        try {
          const held = await ask(key, (session) => session.hold(isStopped));
          // It was stopped or resumed meanwhile: the session is told once more.
          if (isStopped !== (stops.state() !== undefined)) continue;
          stops.told(key);
          if (isStopped && held?.hasWaiting) stops.waits(key);
          if (held?.wasRunning)
            runs.push({
              sessionKey: asSessionKey(key),
              cancelledCalls: held.cancelled,
              ...(held.runId === undefined ? {} : { runId: asRunId(held.runId) }),
            });
        } catch (error) {
          log.error("session_not_told_to_stop", { session: key, error });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  // ------------------------------------------------------------ for sessions: `/stop all` and `/resume`

  async stopFor(by: string, origin: Origin): Promise<string> {
    const { runs, pending, clientCalls = 0 } = await this.stop(by);
    this.#record(by, origin, "gateway.stop");
    const counted = runs.length === 1 ? "1 run was stopped" : `${runs.length} runs were stopped`;
    const more = pending === 0 ? "" : `, ${pending} conversations have not answered yet`;
    const calls = clientCalls === 0 ? "" : `, ${clientCalls === 1 ? "1 command" : `${clientCalls} commands`} of clients too`;
    return `Everything is stopped: ${counted}${calls}${more}. Messages wait until /resume.`;
  }
  resumeFor(by: string, origin: Origin, how: { readonly exported?: boolean } = {}): string {
    const resumed = this.resume(how);
    this.#record(by, origin, "gateway.resume", resumed.ok ? "allowed" : "denied");
    if (!resumed.ok) return sentence(resumed.error);
    const { wasStopped, sessions } = resumed.value;
    if (!wasStopped) return "Nothing was stopped.";
    if (sessions === 0) return "GSV goes on. Nothing waited.";
    return `GSV goes on. ${sessions === 1 ? "1 conversation continues" : `${sessions} conversations continue`}.`;
  }
  #record(actor: string, origin: Origin, action: string, decision: "allowed" | "denied" = "allowed"): void {
    const { audit } = this.#ports;
    audit.append({ actor, origin: originText(origin), action, decision });
  }
}

const refused = ({ resume }: RestoredCopy): Failure =>
  failure(
    "gateway.restored_copy",
    "This is a restored copy, so nothing was resumed: the gateway that it was copied from may still run and get your messages.",
    resume === undefined
      ? ERRORS["gateway.restored_copy"].hint
      : `Only when that one is gone for good, on the machine of the copy: \`${resume}\`.`,
  );

export const stopMethods = (stop: Stop, stops: StopStore): Handlers => ({
  "gateway.stop": async ({ connection }) => succeed({ ok: true, ...(await stop.stop(actorOf(connection.principal))) }),
  "gateway.resume": (_caller, { exported = false }) => {
    const resumed = stop.resume({ exported });
    return resumed.ok ? succeed({ ok: true, ...resumed.value }) : resumed;
  },
  "gateway.status": () => {
    const stopped = stops.state();
    return succeed(stopped === undefined ? {} : { stopped });
  },
});
