/**
 * The gateway's index of questions and the owner who answers them: late, twice, with two devices at once, with a wrong or an old code,
 * or never. Checks that a question keeps its code, and that an answer given again gets the result of the first.
 */
import type { ApprovalAnswer, ApprovalReport, ApprovalTaken, WaitingQuestion } from "../../src/ports/approvals.ts";
import type { Rng } from "./rng.ts";
import type { VirtualTime } from "./time.ts";

export interface OwnerPorts {
  readonly time: VirtualTime;
  readonly rng: Rng;
  /** Rejects when the session died before it answered. */
  readonly answer: (answer: ApprovalAnswer) => Promise<ApprovalTaken | undefined>;
  readonly problem: (what: string) => void;
  /** The call waited for its machine after an answer: under another policy it is asked about once more (rule OM3). */
  readonly hasWaited: (callId: string) => boolean;
  /** Denies everything, at once. */
  readonly stubborn: boolean;
  /** Answers nothing. */
  readonly silent: boolean;
}

/** An answer given again gets the result of the first, and is told when that was; only the first is told why a call can no longer be made. */
const outcomeOf = ({ endedAt: _endedAt, why: _why, ...first }: ApprovalTaken): Omit<ApprovalTaken, "endedAt" | "why"> => first;

export class Owner {
  /** Calls for which the owner has sent `allow` at least once. */
  readonly allowed = new Set<string>();
  /** The first result that the owner was told, by code. */
  readonly told = new Map<string, { readonly callId: string; readonly taken: ApprovalTaken }>();
  readonly #ports: OwnerPorts;
  #revision = 0;
  #waiting = new Map<string, WaitingQuestion>();
  /** Codes that a call's question had, in order. */
  readonly #codes = new Map<string, string[]>();
  readonly #again = new Set<string>();

  constructor(ports: OwnerPorts) {
    this.#ports = ports;
  }
  get waiting(): number {
    return this.#waiting.size;
  }

  report({ revision, waiting, ended }: ApprovalReport): void {
    if (revision < this.#revision) return;
    this.#revision = revision;
    for (const { code, outcome, again } of ended) if (outcome === "asked_again" && again !== undefined) this.#again.add(`${code} ${again}`);
    for (const question of waiting) {
      const known = this.#codes.get(question.callId) ?? [];
      const last = known.at(-1);
      if (last !== question.code) {
        if (last !== undefined && !this.#again.has(`${last} ${question.code}`) && !this.#ports.hasWaited(question.callId))
          this.#ports.problem(`the question about ${question.callId} had the code ${last} and has ${question.code}`);
        this.#codes.set(question.callId, [...known, question.code]);
        this.#asked(question);
      }
    }
    this.#waiting = new Map(waiting.map((question) => [question.code, question]));
  }

  #asked(question: WaitingQuestion): void {
    const { rng, time, stubborn, silent } = this.#ports;
    if (silent) return;
    if (stubborn) return void time.after(rng.int(1, 500), () => this.#send(question, "deny"));
    if (rng.chance(0.1)) return;
    const deciders = rng.chance(0.2) ? 2 : 1;
    for (let index = 0; index < deciders; index++) {
      const decision = rng.chance(0.7) ? "allow" : "deny";
      time.after(rng.int(1, rng.chance(0.1) ? 2_400_000 : 90_000), () => this.#send(question, decision));
    }
    if (rng.chance(0.2)) time.after(rng.int(1, 90_000), () => this.#wrong(question));
  }
  #send(question: WaitingQuestion, answer: "allow" | "deny"): void {
    const { time, rng } = this.#ports;
    if (answer === "allow") this.allowed.add(question.callId);
    const { code, hash } = question;
    this.#ports.answer({ code, answer, by: "client:sim", hash, ...(answer === "deny" ? { word: "not now" } : {}) }).then(
      (taken) => {
        if (taken === undefined) return;
        const first = this.told.get(code);
        if (first && JSON.stringify(outcomeOf(first.taken)) !== JSON.stringify(outcomeOf(taken)))
          this.#ports.problem(`${code} was answered ${JSON.stringify(first.taken)} and then ${JSON.stringify(taken)}`);
        this.told.set(code, { callId: question.callId, taken });
        if (rng.chance(0.3)) time.after(rng.int(1, 5_000), () => this.#send(question, answer));
      },
      () => time.after(rng.int(50, 1_500), () => this.#send(question, answer)),
    );
  }
  /** What changes nothing: a code that no one has, and an answer to something else than what is asked. */
  #wrong({ code }: WaitingQuestion): void {
    const { answer, problem } = this.#ports;
    answer({ code: "ZZZZZ", answer: "allow", by: "client:sim" }).then(
      (taken) => taken && problem("a code that no question has was taken"),
      () => {},
    );
    answer({ code, answer: "allow", by: "client:sim", hash: "another" }).then(
      (taken) => {
        const first = this.told.get(code);
        if (taken && first && JSON.stringify(outcomeOf(first.taken)) !== JSON.stringify(outcomeOf(taken)))
          problem(`${code} has two results`);
        if (taken?.outcome === "allowed" && !first) this.told.set(code, { callId: "", taken });
      },
      () => {},
    );
  }
}
