/** Jobs that the agent does by itself (gateway/spec/schedule.md). */
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { CronCall, CronPort, CronTold } from "../../ports/schedule.ts";
import type { SessionsPort, StopPort } from "../../ports/sessions.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import type { CronEngine } from "../../schedule/schedule.ts";
import { JobStore } from "./job-store.ts";
import { Jobs } from "./jobs.ts";
import { SCHEDULE_MIGRATIONS } from "./migrations.ts";
import { Runner } from "./runner.ts";
import { shownRun } from "./shown.ts";
import { CRON_TOOLS } from "./tools.ts";

export type SchedulePorts = SessionsPort &
  StopPort &
  ChannelsOutPort &
  Pick<KernelPorts, "arm" | "background" | "config" | "contextVersion" | "database" | "ids" | "log" | "now" | "subscriptions">;

const RUNS = 50;
const SHOWN_NEXT = 5;
/** For the model. */
const TOLD_RUNS = 10;
const engine = async (): Promise<CronEngine> => (await import("../../schedule/cron.lazy.ts")).cronLines;

export const scheduleFeature: FeatureDefinition<SchedulePorts, { readonly scheduleRpc: CronPort }> = {
  name: "schedule",
  migrations: SCHEDULE_MIGRATIONS,
  tools: CRON_TOOLS,
  create(ports) {
    const store = new JobStore(ports.database);
    const jobs = new Jobs({ ...ports, store, engine });
    const runner = new Runner({ ...ports, store, engine });
    return {
      offers: { scheduleRpc: { cron: (call) => toldOf(call, store, jobs) } },
      methods: scheduleMethods(store, jobs),
      alarms: [{ name: "schedule", next: () => runner.next(), run: () => runner.run() }],
    };
  },
};

const scheduleMethods = (store: JobStore, jobs: Jobs): Handlers => ({
  "cron.status": () => {
    const all = store.list();
    const next = all.filter(({ enabled, nextAt }) => enabled && nextAt !== undefined);
    const [first] = next;
    return succeed({
      enabled: true,
      jobs: all.length,
      running: store.allOpen().length,
      ...(first?.nextAt === undefined ? {} : { nextRunAtMs: first.nextAt }),
      next: next.slice(0, SHOWN_NEXT).map((job) => jobs.shown(job)),
    });
  },
  "cron.list": (_caller, { agentId, includeDisabled }) => {
    const all = store
      .list()
      .filter((job) => (agentId === undefined || job.agentId === agentId) && (includeDisabled !== false || job.enabled));
    return succeed({ jobs: all.map((job) => jobs.shown(job)), count: all.length });
  },
  "cron.preview": (_caller, params) => jobs.preview(params),
  "cron.add": (_caller, params) => jobs.add(params),
  "cron.update": (_caller, params) => jobs.update(params),
  "cron.remove": (_caller, { id }) => succeed({ ok: true, removed: store.remove(id) }),
  "cron.run": (_caller, { id }) => jobs.runNow(id),
  "cron.runs": (_caller, { jobId, limit, beforeId }) => {
    const runs = store.runs(jobId, beforeId ?? Number.MAX_SAFE_INTEGER, limit ?? RUNS);
    return succeed({ runs: runs.map(shownRun), count: runs.length });
  },
});

const ownOf = (taints: readonly (Taint | undefined)[]): { readonly taint?: Taint } => {
  const found = taints.filter((taint) => taint !== undefined);
  const [first, ...rest] = found;
  return first === undefined ? {} : { taint: rest.reduce(higher, first) };
};
async function toldOf(call: CronCall, store: JobStore, jobs: Jobs): Promise<Result<CronTold>> {
  switch (call.kind) {
    case "list": {
      const own = store.list().filter(({ agentId }) => agentId === call.agentId);
      const last = own.map(({ id }) => store.lastEnded(id)?.body.taint);
      return succeed({ value: { jobs: own.map((job) => jobs.shown(job)) }, ...ownOf([...own.map(({ body }) => body.taint), ...last]) });
    }
    case "runs": {
      const runs = store.runs(call.id, Number.MAX_SAFE_INTEGER, TOLD_RUNS);
      return succeed({ value: { runs: runs.map(shownRun) }, ...ownOf(runs.map(({ body }) => body.taint)) });
    }
    case "add":
    case "update": {
      const done = call.kind === "add" ? await jobs.add(call.params, call.taint) : await jobs.update(call.params, call.taint);
      if (!done.ok) return done;
      const { job, times } = done.value;
      return succeed({ value: { job, nextTimes: times.map((time) => new Date(time).toISOString()) } });
    }
    case "remove":
      return succeed({ value: { removed: store.remove(call.id) } });
    case "run": {
      const begun = jobs.runNow(call.id);
      return begun.ok ? succeed({ value: begun.value }) : begun;
    }
  }
}
