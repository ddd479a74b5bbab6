/** A job, and one time of it, as they are stored; and how jobs are named. PURE. */
import type { CronOutcome, CronSpec, HeartbeatSkip } from "../../../../protocol/gen/types.ts";
import type { Taint } from "../../ports/taint.ts";
import { type BeatSettings, beatLine } from "../../schedule/beat.ts";
import type { Failings } from "../../schedule/failing.ts";
import type { Marks } from "../../schedule/precheck.ts";
import type { Given } from "../../ports/schedule.ts";
import { type Beat, type CronEngine, type CronLine, lineOf, type Schedule } from "../../schedule/schedule.ts";

export interface BeatBody {
  readonly settings: BeatSettings;
  /** The last looks at the conditions of HEARTBEAT.md. */
  readonly marks: Marks;
  /** Conditions that could not be looked at. */
  readonly failing?: Failings;
}
/** What the owner or the agent has said about a job. */
export interface JobBody {
  readonly name: string;
  readonly description?: string;
  readonly deleteAfterRun?: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly schedule: Schedule | Beat;
  readonly spec: CronSpec;
  /** The job is an agent's heartbeat. */
  readonly beat?: BeatBody;
  /** What the conversation that wrote the job had read. Absent: the owner wrote it. */
  readonly taint?: Taint;
  /** How far the chain of events and conversations has come that made or changed the job. Absent: none did. */
  readonly hops?: number;
}
export interface Job {
  readonly id: string;
  readonly agentId: string;
  readonly body: JobBody;
  readonly enabled: boolean;
  /** The first time that was not handled yet. Absent: there is none. */
  readonly nextAt?: number;
  /** When `nextAt` was worked out. */
  readonly lookedAt: number;
  /** Runs in a row that failed. */
  readonly failures: number;
  readonly paused?: string;
}
export interface RunBody {
  readonly startedAt?: number;
  readonly endedAt?: number;
  readonly error?: string;
  readonly summary?: string;
  readonly sessionKey?: string;
  readonly runId?: string;
  /** With `missed`: the times that the row stands for. */
  readonly count?: number;
  /** What the run had read when it ended. Absent: nothing of others. */
  readonly taint?: Taint;
  /** The owner or a hook asked for it, beside the schedule. */
  readonly byHand?: true;
  /** Why a heartbeat was skipped. */
  readonly reason?: HeartbeatSkip;
  /** The condition of HEARTBEAT.md that was wrong. Absent also in rows of earlier versions. */
  readonly condition?: string;
  /** Conditions of HEARTBEAT.md that were true. The look is over; the run begins, also after a crash. */
  readonly because?: readonly string[];
  /** With `because`: what the model is told of conditions that could not be looked at. */
  readonly failing?: readonly string[];
  readonly costUsd?: number;
  /** What a hook has brought: the cause of the run. */
  readonly given?: Given;
  /** How far the chain has come that asked for the run, beside the schedule. */
  readonly hops?: number;
  /** Codes of the run's questions that the owner was told of. */
  readonly asked?: readonly string[];
  /** Where a heartbeat's answer goes. Stored before it is sent, so that it goes there too when it is sent again. */
  readonly goesTo?: { readonly place?: string; readonly session?: string };
  /** The last look has found a question of the run that waits for the owner. */
  readonly asking?: boolean;
  /** The machines that the run waits for, as the last look has found. None: it goes on. */
  readonly waiting?: readonly string[];
  /** Why a run whose agent's pack was off at the last look has not begun, for people. */
  readonly off?: string;
  /** The owner was told that the run waits. */
  readonly toldWaiting?: true;
}
/** One time of a job. */
export interface JobRun {
  readonly id: number;
  readonly jobId: string;
  /** The scheduled time. */
  readonly ts: number;
  readonly status: CronOutcome;
  readonly body: RunBody;
  /** When it is looked at again; absent once it has ended. */
  readonly checkAt?: number;
  /** Times that its begin failed. */
  readonly tries: number;
}
/** Undefined: the job is at one time or at an interval, or its expression can't be read. */
export const lineOfJob = ({ body: { schedule, beat } }: Pick<Job, "body">, engine: CronEngine): CronLine | undefined =>
  beat === undefined ? lineOf(schedule, engine) : beatLine(beat.settings);

/** The id of an agent's heartbeat. No id of a job has a colon. */
export const beatId = (agentId: string): string => `heartbeat:${agentId}`;
export const isBeatId = (id: string): boolean => id.startsWith(beatId(""));
/** The id of the job that a hook has of its own. It is no job of the owner's list. */
export const hookJobId = (name: string): string => `hook:${name}`;
/** What the owner knows a job as. */
export const nounOf = ({ id }: Pick<Job, "id">): "job" | "hook" => (id.startsWith(hookJobId("")) ? "hook" : "job");
/** The beginning of a job's id; the caller adds a suffix. */
export const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, SLUG_CHARS) || "job";
const SLUG_CHARS = 32;
