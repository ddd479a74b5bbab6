/** Jobs that the agent does by itself, and heartbeats (gateway/spec/schedule.md, heartbeat.md). */
import type { ParamsOf, ResultOf } from "../../../../protocol/gen/methods.ts";
import type { CronRun } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import { hopsOfRun } from "../../kernel/routing/hops.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import { parseModel } from "../../models/choose.ts";
import { modelProblem as problemOf } from "../../models/providers.ts";
import type { ApprovalsPort } from "../../ports/approvals.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import type { NodeLooksPort, NodesPort } from "../../ports/nodes.ts";
import type { ConfigWarningsPort } from "../../ports/config-warnings.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { type Result, succeed, sentence } from "../../ports/result.ts";
import type { AgentJobsPort, CronCall, CronPort, CronTold, WokenJobsPort } from "../../ports/schedule.ts";
import type { SessionsPort, StopPort } from "../../ports/sessions.ts";
import type { SpendPort } from "../../ports/spend.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import type { WebPort } from "../../ports/web.ts";
import type { LookPorts } from "./beat-look.ts";
import { BeatRows } from "./beat-rows.ts";
import type { Beats } from "./beats.ts";
import { beatId, type JobRun, nounOf } from "./job.ts";
import { JobStore } from "./job-store.ts";
import type { Jobs } from "./jobs.ts";
import { MadeStore } from "./made-store.ts";
import { otherZones } from "./other-zones.ts";
import { jobsWithoutAgent } from "./without-agent.ts";
import { NeedStore } from "./need-store.ts";
import { nextReport } from "./needs.ts";
import { SCHEDULE_MIGRATIONS } from "./migrations.ts";
import type { Runner } from "./runner.ts";
import { CRON_TOOLS } from "./tools.ts";
import { wokenJobs } from "./woken.ts";

export type SchedulePorts = SessionsPort &
  StopPort &
  PacksPort &
  ChannelsOutPort &
  ApprovalsPort &
  NotifyPort &
  NodesPort &
  NodeLooksPort &
  WebPort &
  SpendPort &
  ConfigWarningsPort &
  Pick<LookPorts, "bucket"> &
  Pick<KernelPorts, "arm" | "background" | "config" | "contextVersion" | "database" | "ids" | "log" | "now" | "scrub" | "subscriptions">;

const RUNS = 50;
const SHOWN_NEXT = 5;
/** For the model. */
const TOLD_RUNS = 10;
export const scheduleFeature: FeatureDefinition<SchedulePorts, AgentJobsPort & WokenJobsPort & { readonly scheduleRpc: CronPort }> = {
  name: "schedule",
  migrations: SCHEDULE_MIGRATIONS,
  tools: CRON_TOOLS,
  create(ports) {
    const store = new JobStore(ports.database);
    ports.configWarnings.add((path) => (path === "userTimezone" ? otherZones(store.list(), ports.config.effective().userTimezone) : []));
    ports.configWarnings.add((_path, _now, { packAgents }) => {
      const gone = packAgents.filter((agentId) => !ports.config.hasAgent(agentId));
      return gone.length === 0 ? [] : jobsWithoutAgent(gone, store.list());
    });
    const needs = new NeedStore(ports.database);
    const made = new MadeStore(ports.database);
    const rows = new BeatRows(store, ports.config);
    // Here, and not in the part that is loaded later, which would have a second copy of the models' catalogue.
    const modelProblem = (text: string): string | undefined => {
      const model = parseModel(text);
      const problem = model && problemOf(model, ports.config.effective());
      return model === undefined ? `\`${text}\` is not a model.` : problem && sentence(problem);
    };
    // Most wakes of the gateway have nothing to do with jobs, so what works on them is loaded when it is needed.
    const load = once<Work>(() =>
      import("./schedule.lazy.ts").then(({ Beats, Jobs, Runner, cronLines, shownRun, whatComes }) => {
        const runner = new Runner({ ...ports, store, needs, engine: cronLines });
        return {
          jobs: new Jobs({ ...ports, store, engine: cronLines, modelProblem }),
          beats: new Beats({ ...ports, store, rows, runner }),
          runner,
          shownRun: (run) => shownRun(run, ports.stopped() !== undefined),
          upcoming: (params, blocked) => whatComes({ ...ports, store, rows, engine: cronLines }, params, blocked),
        };
      }),
    );
    const next = (): number | undefined => {
      rows.sync(ports.now());
      const times = [store.nextDue(ports.now(), ports.stopped() !== undefined), store.nextCheck()].filter((time) => time !== undefined);
      return times.length === 0 ? undefined : Math.min(...times);
    };
    return {
      offers: {
        scheduleRpc: { cron: async (call) => toldOf(call, store, made, ports.now(), await load(), ports.config.mainKey()) },
        wokenJobs: wokenJobs(store, load, ports.now),
        agentJobs: {
          of: (agentId) => store.ofAgent(agentId).flatMap(({ id, body }) => (body.beat === undefined ? [id] : [])),
          remove: (agentId) => {
            for (const { id } of store.ofAgent(agentId)) store.remove(id);
            // Also what a heartbeat that was switched off has left.
            store.forget(beatId(agentId));
          },
        },
      },
      methods: { ...scheduleMethods(store, load, () => ports.stopped() !== undefined), ...beatMethods(ports.config, load) },
      connected({ principal }) {
        if (principal.mode === "node") store.lookAtWaiting(principal.id, ports.now());
      },
      runContext({ named }) {
        const jobsMadeBy = named !== undefined && ports.sessions.isOwners(named) ? made.runsOf(named.address.agentId, ports.now()) : [];
        return jobsMadeBy.length === 0 ? {} : { jobsMadeBy };
      },
      contextVersion: () => `made ${made.version(ports.now())}`,
      alarms: [
        { name: "schedule", next, run: async () => (await load()).runner.run() },
        {
          name: "machines_missing",
          next: () => nextReport(needs.open(), () => ports.nodes.list()),
          run: async () => (await load()).runner.reportMissing(),
        },
      ],
    };
  },
};
const beatMethods = (config: SchedulePorts["config"], load: () => Promise<Work>): Handlers => ({
  "heartbeat.status": async () => succeed(await (await load()).beats.status()),
  "heartbeat.start": async () => succeed(await (await load()).beats.start()),
  "heartbeat.trigger": async (_caller, { agentId }) => (await load()).beats.trigger(agentId ?? config.defaultAgentId()),
  "heartbeat.check": async (_caller, { agentId }) => (await load()).beats.check(agentId ?? config.defaultAgentId()),
  "heartbeat.set": async (_caller, params) => (await load()).beats.set(params),
});
interface Work {
  readonly beats: Beats;
  readonly jobs: Jobs;
  readonly runner: Runner;
  /** With what a run waits for, now. */
  readonly shownRun: (run: JobRun) => CronRun;
  readonly upcoming: (params: ParamsOf<"cron.upcoming">, blocked: ReadonlySet<string>) => ResultOf<"cron.upcoming">;
}

const scheduleMethods = (store: JobStore, load: () => Promise<Work>, isStopped: () => boolean): Handlers => ({
  "cron.status": async () => {
    const { jobs } = await load();
    const all = store.list();
    const next = all.filter(({ enabled, nextAt }) => enabled && nextAt !== undefined);
    const [first] = next;
    return succeed({
      enabled: !isStopped(),
      jobs: all.length,
      running: store.allOpen().length,
      ...(first?.nextAt === undefined ? {} : { nextRunAtMs: first.nextAt }),
      next: next.slice(0, SHOWN_NEXT).map((job) => jobs.shown(job)),
    });
  },
  "cron.list": async (_caller, { agentId, includeDisabled }) => {
    const { jobs } = await load();
    const all = store
      .list()
      .filter((job) => (agentId === undefined || job.agentId === agentId) && (includeDisabled !== false || job.enabled));
    return succeed({ jobs: all.map((job) => jobs.shown(job)), count: all.length });
  },
  "cron.preview": async (_caller, params) => (await load()).jobs.preview(params),
  "cron.upcoming": async (_caller, params) => {
    const { beats, upcoming } = await load();
    return succeed(upcoming(params, await beats.blocked()));
  },
  "cron.add": async (_caller, params) => (await load()).jobs.add(params),
  "cron.update": async (_caller, params) => (await load()).jobs.update(params),
  "cron.remove": (_caller, { id }) => succeed({ ok: true, removed: store.remove(id) }),
  "cron.run": async (_caller, { id }) => (await load()).jobs.runNow(id),
  "cron.runs": async (_caller, { jobId, limit, beforeId }) => {
    const { shownRun } = await load();
    if (jobId !== undefined && !store.isKnown(jobId)) return fail("cron.not_found");
    const runs = store.runs(jobId, beforeId ?? Number.MAX_SAFE_INTEGER, limit ?? RUNS);
    return succeed({ runs: runs.map(shownRun), count: runs.length });
  },
});

const ownOf = (taints: readonly (Taint | undefined)[]): { readonly taint?: Taint } => {
  const found = taints.filter((taint) => taint !== undefined);
  const [first, ...rest] = found;
  return first === undefined ? {} : { taint: rest.reduce(higher, first) };
};
const hopsOfCall = ({ from }: Extract<CronCall, { readonly kind: "add" | "update" | "run" }>, mainKey: string): number =>
  from === undefined ? 0 : hopsOfRun(from, mainKey);
function toldOf(
  call: CronCall,
  store: JobStore,
  made: MadeStore,
  now: number,
  { jobs, shownRun }: Work,
  mainKey: string,
): Result<CronTold> {
  const { agentId } = call;
  const named = "id" in call && call.id !== undefined ? call.id : call.kind === "update" ? call.params.id : undefined;
  const job = named === undefined ? undefined : store.find(named);
  // Another agent's job, or a heartbeat or a hook, which are the owner's settings. The runs of a removed job, and what a hook's have said, may still be asked for.
  const isKeptElsewhere = named?.includes(":") === true && !(call.kind === "runs" && job !== undefined && nounOf(job) === "hook");
  if (isKeptElsewhere || (job !== undefined && job.agentId !== agentId)) return fail("cron.not_found");
  switch (call.kind) {
    case "list": {
      const own = store.list().filter((each) => each.agentId === agentId);
      const last = own.map(({ id }) => store.lastEnded(id)?.body.taint);
      return succeed({ value: { jobs: own.map((each) => jobs.shown(each)) }, ...ownOf([...own.map(({ body }) => body.taint), ...last]) });
    }
    case "runs": {
      const runs = store.runs(call.id, Number.MAX_SAFE_INTEGER, TOLD_RUNS, agentId);
      return succeed({ value: { runs: runs.map(shownRun) }, ...ownOf(runs.map(({ body }) => body.taint)) });
    }
    case "add":
    case "update": {
      const of = { taint: call.taint, hops: hopsOfCall(call, mainKey) };
      const done = call.kind === "add" ? jobs.add(call.params, of) : jobs.update(call.params, of);
      if (!done.ok) return done;
      // In one turn with the change, so that both are stored or none.
      if (call.by !== undefined) made.note(agentId, call.by, now);
      const { job: stored, times } = done.value;
      return succeed({ value: { job: stored, nextTimes: times.map((time) => new Date(time).toISOString()) } });
    }
    case "remove":
      return succeed({ value: { removed: store.remove(call.id) } });
    case "run": {
      const begun = jobs.runNow(call.id, hopsOfCall(call, mainKey));
      return begun.ok ? succeed({ value: begun.value }) : begun;
    }
  }
}
