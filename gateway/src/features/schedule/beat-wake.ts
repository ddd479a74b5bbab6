/**
 * Decides whether a heartbeat that has begun wakes the model, and with what words (rules HB4, HB9-HB11). Its row is kept until the pages and
 * machines of its conditions have answered, beside the other work of the gateway; after a crash they are asked again.
 */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { Answers } from "../../schedule/failing.ts";
import type { AnswerPorts, Asking } from "./answers.lazy.ts";
import { type Look, look, type LookPorts } from "./beat-look.ts";
import type { BeatBody, Job, JobRun, RunBody } from "./job.ts";
import type { JobStore } from "./job-store.ts";

export interface WakePorts extends LookPorts, Omit<AnswerPorts, "sha256">, Pick<KernelPorts, "background" | "ids" | "now"> {
  readonly store: Pick<JobStore, "change" | "mark" | "wake">;
}
/** What the runner does when a look is over. */
export interface WakeEnds {
  /** The row ends: nothing is to be done. */
  readonly skip: (run: JobRun, why: Pick<RunBody, "reason" | "error" | "condition">) => void;
  /** The answers are there: the begin is made again with them. Never rejects. */
  readonly goOn: (run: JobRun, answers: Answers) => Promise<void>;
}
/** Longer than all answers take. */
const ASKED_AGAIN_MS = 60_000;

export class BeatWake {
  readonly #ports: WakePorts;
  readonly #ends: WakeEnds;

  constructor(ports: WakePorts, ends: WakeEnds) {
    this.#ports = ports;
    this.#ends = ends;
  }

  /** What wakes the heartbeat. Undefined: its row has ended, or `goOn` is called later. */
  async woken(job: Job, run: JobRun, sessionKey: string, given?: Answers): Promise<Pick<RunBody, "because" | "failing"> | undefined> {
    const { store, now, background } = this.#ports;
    const { beat } = job.body;
    if (beat === undefined) return {};
    const { because, failing } = run.body;
    if (because !== undefined) return { because, ...(failing === undefined ? {} : { failing }) };
    let found = await this.#look(job, run, beat, sessionKey, given);
    if (found.kind === "ask") {
      // The alarm, which comes meanwhile, does not begin it a second time.
      store.change(run.id, { checkAt: now() + ASKED_AGAIN_MS });
      const answers = this.#answers({ agentId: job.agentId, ...found });
      if (run.body.byHand !== true) {
        // Other jobs do not wait for the answers.
        background(
          "heartbeat_conditions",
          answers.then((all) => this.#ends.goOn(run, all)),
        );
        return undefined;
      }
      found = await this.#look(job, run, beat, sessionKey, await answers);
    }
    if (found.kind === "wake") {
      const said = { because: found.because, ...(found.failing.length === 0 ? {} : { failing: found.failing }) };
      store.wake(job, run.id, found.found, said, now());
      return said;
    }
    if (found.kind === "skip") {
      if (found.found !== undefined) store.mark(job.id, found.found);
      const { reason, text: error, condition } = found;
      this.#ends.skip(run, { reason, error, ...(condition === undefined ? {} : { condition }) });
    }
    return undefined;
  }
  #look({ agentId }: Job, run: JobRun, beat: BeatBody, sessionKey: string, answers?: Answers): Promise<Look> {
    return look(this.#ports, { agentId, sessionKey, beat, byHand: run.body.byHand === true }, answers);
  }
  async #answers(asking: Asking): Promise<Answers> {
    const { answersOf } = await import("./answers.lazy.ts");
    return answersOf({ ...this.#ports, sha256: this.#ports.ids.sha256 }, asking);
  }
}

/** The message of a heartbeat. */
export function beatText({ body: { spec } }: Job, { because = [], failing = [] }: Pick<RunBody, "because" | "failing">): string {
  const said = spec.mode === "task" ? spec.message : spec.text;
  const why = because.length === 0 ? "" : `\nTrue now: ${because.join("; ")}.`;
  const not = failing.length === 0 ? "" : `\nConditions of HEARTBEAT.md that fail; you are told once a day:\n${failing.join("\n")}`;
  return `[This is a heartbeat. No person has written this just now.]\n${said}${why}${not}`;
}
