/** `heartbeat.*`: shows, changes and triggers heartbeats (rules HB1, HB8). */
import type { ParamsOf, ResultOf } from "../../../../protocol/gen/methods.ts";
import {
  type AgentConfig,
  asAgentId,
  type HeartbeatFailing,
  type HeartbeatSkip,
  type HeartbeatState,
} from "../../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import { type Instructions, isAsked } from "../../schedule/precheck.ts";
import { checkBeat, type CheckPorts } from "./beat-check.ts";
import { readFile, beatProblem } from "./beat-look.ts";
import type { BeatRows } from "./beat-rows.ts";
import { beatId, type Job, type JobRun } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import type { Runner } from "./runner.ts";

export interface BeatsPorts extends Pick<KernelPorts, "arm">, Omit<CheckPorts, "store">, Pick<StopPort, "stopped"> {
  readonly store: JobStore;
  readonly rows: BeatRows;
  readonly runner: Pick<Runner, "beginNow">;
}
const SHOWN_RUNS = 200;

export class Beats {
  readonly #ports: BeatsPorts;
  constructor(ports: BeatsPorts) {
    this.#ports = ports;
  }

  async status(): Promise<ResultOf<"heartbeat.status">> {
    const { config, rows, now } = this.#ports;
    rows.sync(now());
    const states = await Promise.all(config.agents().map(async ({ id }) => [id, await this.#stateOf(id)] as const));
    const all = Object.fromEntries(states);
    return { agents: all, states: all };
  }
  async start(): Promise<ResultOf<"heartbeat.start">> {
    const { rows, now, arm, store } = this.#ports;
    rows.unpause(now());
    arm();
    const count = store.beats().length;
    const message =
      count === 0
        ? "No agent has a heartbeat. Give one: `gsv heartbeat on`."
        : `${count === 1 ? "1 agent has" : `${count} agents have`} a heartbeat.`;
    return { message, ...(await this.status()) };
  }
  async set({ agentId: named, ...changes }: ParamsOf<"heartbeat.set">): Promise<Result<ResultOf<"heartbeat.set">>> {
    const { config, rows, now, arm } = this.#ports;
    const agentId = named ?? config.defaultAgentId();
    if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
    if (config.isBundled(agentId))
      return fail("agent.kept", `${agentId} comes with a pack, so it gets no heartbeat.`, "Give it a job instead: `gsv cron add --help`.");
    const list = config.effective().agents?.list ?? [];
    const { activeHours, ...others } = changes;
    const changed = (agent: AgentConfig): AgentConfig => ({
      ...agent,
      heartbeat: {
        ...agent.heartbeat,
        ...others,
        ...(activeHours === undefined ? {} : { activeHours: { ...agent.heartbeat?.activeHours, ...activeHours } }),
      },
    });
    const isListed = list.some(({ id }) => id === agentId);
    const next = isListed
      ? list.map((agent) => (agent.id === agentId ? changed(agent) : agent))
      : [...list, changed({ id: asAgentId(agentId) })];
    const set = config.set("agents.list", next);
    // The list of agents is not what was typed.
    if (!set.ok && set.error.reason === "config.invalid")
      return fail("config.invalid", set.error.message, "Show the heartbeats as they are: `gsv heartbeat status`.");
    if (!set.ok) return set;
    rows.unpause(now());
    arm();
    return succeed({ ok: true, agentId: asAgentId(agentId), state: await this.#stateOf(agentId) });
  }
  async trigger(agentId: string): Promise<Result<ResultOf<"heartbeat.trigger">>> {
    const { config, store, rows, now, runner, arm } = this.#ports;
    if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
    rows.sync(now());
    const id = beatId(agentId);
    const skipped = (skipReason: string, message: string) => succeed({ ok: true, message, skipped: true, skipReason });
    if (store.find(id) === undefined)
      return skipped("off", `${agentId} has no heartbeat. Give it one: \`gsv heartbeat on --agent ${agentId}\`.`);
    const taken = store.takeByHand(id, now());
    if (taken === undefined) return skipped("busy", "The heartbeat before still goes on.");
    await runner.beginNow(taken);
    arm();
    const run = store.runById(taken.id);
    if (run?.status === "skipped") return skipped(reasonOf(run), run.body.error ?? "Nothing was run.");
    if (run?.status === "error") return succeed({ ok: false, message: run.body.error ?? "The heartbeat failed." });
    return succeed({ ok: true, message: `The heartbeat of ${agentId} runs in its main conversation.` });
  }
  async check(agentId: string): Promise<Result<ResultOf<"heartbeat.check">>> {
    const { config, rows, now, stopped } = this.#ports;
    if (!config.hasAgent(agentId)) return unknownAgent(config, agentId);
    if (stopped() !== undefined) return fail("gateway.stopped", "GSV is stopped, so no condition was evaluated.");
    rows.sync(now());
    const main = canonicalKey(`agent:${agentId}:${config.mainKey()}`, config.mainKey());
    return main.ok ? succeed(await checkBeat(this.#ports, agentId, main.key)) : fail("internal");
  }

  /** Agents whose heartbeat has times but looks at nothing until something is fixed. One that can't be read now is not taken for such a one. */
  async blocked(): Promise<ReadonlySet<string>> {
    const { log, now, rows, store } = this.#ports;
    rows.sync(now());
    const agents = store.beats().flatMap(({ agentId, enabled }) => (enabled ? [agentId] : []));
    const blocked = await Promise.all(
      agents.map(async (agentId) => {
        try {
          const { instructions } = await readFile(this.#ports, agentId);
          return (await beatProblem(this.#ports, agentId, instructions)) === undefined ? [] : [agentId];
        } catch (error) {
          log.warn("heartbeat_not_read", { agentId, error });
          return [];
        }
      }),
    );
    return new Set(blocked.flat());
  }

  async #stateOf(agentId: string): Promise<HeartbeatState> {
    const { store, rows } = this.#ports;
    const read = rows.settings(agentId);
    const job = store.find(beatId(agentId));
    const { happened, condition } = this.#happened(beatId(agentId));
    if (!read.ok) return { enabled: false, problem: read.error.message, ...happened };
    if (read.value === undefined || job === undefined) return { enabled: false, ...withoutWrong(happened) };
    const { everyMs, target, hours } = read.value;
    const { instructions } = await readFile(this.#ports, agentId);
    const problem = await beatProblem(this.#ports, agentId, instructions);
    return {
      enabled: job.enabled,
      ...(problem === undefined ? {} : { problem }),
      everyMs,
      target,
      ...(hours === undefined ? {} : { activeHours: { start: clock(hours.start), end: clock(hours.end), timezone: hours.tz } }),
      // Its time comes, but nothing is looked at until the problem is fixed.
      ...(job.nextAt === undefined || !job.enabled || problem !== undefined ? {} : { nextRunAtMs: job.nextAt }),
      ...(job.paused === undefined ? {} : { paused: job.paused }),
      ...failingOf(job),
      ...(problem !== undefined || stillStands(instructions, condition) ? happened : withoutWrong(happened)),
    };
  }
  /** Also of a heartbeat that is switched off. */
  #happened(id: string): { readonly happened: Happened; readonly condition: string | undefined } {
    const { store, now } = this.#ports;
    const runs = store.runs(id, Number.MAX_SAFE_INTEGER, SHOWN_RUNS);
    const lately = runs.filter(({ ts }) => ts > now() - DAY_MS);
    const last = runs.find(({ checkAt, status }) => checkAt === undefined && status !== "missed");
    const open = store.open(id);
    const skipped: Record<string, number> = {};
    for (const run of lately) if (run.status === "skipped") skipped[reasonOf(run)] = (skipped[reasonOf(run)] ?? 0) + 1;
    const happened = {
      ...(open?.body.startedAt === undefined ? {} : { runningAtMs: open.body.startedAt }),
      ...(last === undefined ? {} : { lastRunAtMs: last.ts, lastStatus: last.status }),
      ...(last?.status === "skipped" ? { lastSkip: reasonOf(last) } : {}),
      ...(last?.body.error === undefined ? {} : { lastReason: last.body.error }),
      runs: lately.filter(({ body }) => body.startedAt !== undefined).length,
      costUsd: lately.reduce((sum, { body }) => sum + (body.costUsd ?? 0), 0),
      skipped,
    };
    return { happened, condition: last?.body.condition };
  }
}
type Happened = Pick<
  HeartbeatState,
  "runningAtMs" | "lastRunAtMs" | "lastStatus" | "lastSkip" | "lastReason" | "runs" | "costUsd" | "skipped"
>;
/** The last look was stopped by a line that is in the file still, and only a look can judge it. */
const stillStands = (instructions: Instructions, condition: string | undefined): boolean =>
  instructions.kind === "tasks" && instructions.conditions.some((one) => isAsked(one) && one.text === condition);
/** Without the reason of a look that stood still: clients take it for one that holds. */
function withoutWrong({ lastSkip, lastReason, ...happened }: Happened): Happened {
  const others = { ...(lastSkip === undefined ? {} : { lastSkip }), ...(lastReason === undefined ? {} : { lastReason }) };
  return lastSkip === "wrong" ? happened : { ...happened, ...others };
}
/** Conditions of HEARTBEAT.md that could not be looked at the last time. */
function failingOf({ body: { beat } }: Job): { failing?: HeartbeatFailing[] } {
  const failing = Object.entries(beat?.failing ?? {}).flatMap(([condition, { count, since, why }]) =>
    count === 0 ? [] : [{ condition, count, since, why }],
  );
  return failing.length === 0 ? {} : { failing };
}
/** Rows of earlier versions may have no reason. */
const reasonOf = ({ body }: JobRun): HeartbeatSkip => body.reason ?? "busy";
const clock = (minutes: number): string => `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
