/** Export of traces to the owner's collector (gateway/spec/telemetry.md). Off until it has an address. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { HandedOnPort } from "../../ports/delegation.ts";
import type { RunStoryPort } from "../../ports/run-story.ts";
import { succeed } from "../../ports/result.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { TelemetryPort } from "../../ports/telemetry.ts";
import { tracesUrl } from "../../telemetry/endpoint.ts";
import type { ExportTarget } from "./exporter.ts";
import { TELEMETRY_MIGRATIONS } from "./migrations.ts";
import { TelemetryStore } from "./store.ts";

export interface TelemetryPorts
  extends Pick<KernelPorts, "armFor" | "background" | "config" | "database" | "ids" | "log" | "now" | "scrub">,
    HandedOnPort,
    RunStoryPort,
    Pick<SessionsPort, "ask"> {
  readonly collector: { readonly version: string; readonly fetch: (url: string, init: RequestInit) => Promise<Response> };
}
/** Runs that end together are exported together. */
const DELAY_MS = 1_000;
/** Longer than a pass takes (PASS_MS of the exporter). If the gateway is stopped during a pass, its alarm runs the next one after this. */
export const LEASE_MS = 600_000;
/** Long ago: the platform refuses an alarm at 0. */
const AT_ONCE = 1;
/** Delegations above a run. */
const MAX_DEPTH = 32;
const ENDS: ReadonlySet<unknown> = new Set(["final", "error", "aborted"]);

export const telemetryFeature: FeatureDefinition<TelemetryPorts, { readonly telemetryRpc: TelemetryPort }> = {
  name: "telemetry",
  migrations: TELEMETRY_MIGRATIONS,
  create(ports) {
    const { config, now, armFor, handedBy } = ports;
    const store = new TelemetryStore(ports.database);
    const url = (): string | undefined => tracesUrl(config.effective().telemetry?.otlp);
    const target = (): ExportTarget | undefined => {
      const to = url();
      if (to === undefined) return undefined;
      const content = config.effective().telemetry?.otlp?.content === true;
      return { url: to, headers: config.telemetryHeaders(), content, version: config.version() };
    };
    let leasedUntil: number | undefined;
    const due = (): number | undefined => {
      const next = store.nextDue();
      if (next === undefined) return undefined;
      if (url() === undefined) return AT_ONCE;
      const { pausedUntil = 0, pausedVersion, failedAt = AT_ONCE } = store.state();
      // Other settings end the pause.
      return pausedUntil > 0 && pausedVersion !== config.version() ? failedAt : Math.max(next, pausedUntil);
    };
    const load = once(() =>
      import("./telemetry.lazy.ts").then(
        ({ TelemetryExporter }) =>
          new TelemetryExporter({
            store,
            now,
            target,
            sha256: (text) => ports.ids.sha256(text),
            record: (wanted) => recordOf(ports, wanted),
            fetch: (to, init) => ports.collector.fetch(to, init),
            scrub: ports.scrub,
            resource: { "service.name": "gsv", "service.version": ports.collector.version },
            warn: (event, fields) => ports.log.warn(event, fields),
          }),
      ),
    );
    const pass = async (): Promise<void> => {
      try {
        await (await load()).run();
        leasedUntil = undefined;
      } catch (error) {
        leasedUntil = now() + DELAY_MS * 60;
        throw error;
      } finally {
        armFor(next());
      }
    };
    const next = (): number | undefined => {
      const at = due();
      return at === undefined ? undefined : Math.max(at, leasedUntil ?? 0);
    };
    const rootOf = (sessionKey: string, runId: string): { readonly sessionKey: string; readonly runId: string } => {
      let top = { sessionKey, runId };
      for (let depth = 0; depth < MAX_DEPTH; depth++) {
        const above = handedBy(top.sessionKey, top.runId);
        if (above === undefined) break;
        top = { sessionKey: above.sessionKey, runId: above.runId };
      }
      return top;
    };
    return {
      offers: {
        telemetryRpc: {
          published: (sessionKey, news) => {
            if (url() === undefined) return;
            for (const { event, payload } of news) {
              if (event !== "chat" || !ENDS.has(payload.state) || payload.runId === undefined) continue;
              const { runId } = payload;
              const root = rootOf(sessionKey, runId);
              const dueAt = now() + DELAY_MS;
              const parentCall = handedBy(sessionKey, runId)?.callId;
              store.add({ sessionKey, runId, rootKey: root.sessionKey, rootRun: root.runId, parentCall, dueAt });
              armFor(next());
            }
          },
        },
      },
      methods: {
        "telemetry.status": () => {
          const { exported, dropped, exportedAt, failedAt, problem } = store.state();
          const endpoint = config.effective().telemetry?.otlp?.endpoint;
          const nextAt = problem === undefined || store.waiting() === 0 ? undefined : due();
          return succeed({
            enabled: url() !== undefined,
            ...(endpoint === undefined ? {} : { endpoint }),
            waiting: store.waiting(),
            exported,
            dropped,
            ...(exportedAt === undefined ? {} : { exportedAt }),
            ...(problem === undefined ? {} : { problem }),
            ...(failedAt === undefined ? {} : { failedAt }),
            ...(nextAt === undefined ? {} : { nextAt }),
          });
        },
      },
      alarms: [
        {
          name: "telemetry",
          next,
          // A slow collector holds up no other alarm.
          run: (at) => {
            if (url() === undefined) return store.clear();
            leasedUntil = at + LEASE_MS;
            ports.background("export_traces", pass());
          },
        },
      ],
      sessionGone: ({ key }) => store.forget(key),
    };
  },
};

/** The stored record of a run, with what the audit has of its calls. */
async function recordOf(
  { ask, withAudit }: TelemetryPorts,
  { sessionKey, runId, texts }: { readonly sessionKey: string; readonly runId: string; readonly texts: boolean },
) {
  const record = await ask(sessionKey, (session) => session.record({ runId, texts }));
  return record.ok ? succeed({ ...record.value, story: await withAudit(sessionKey, record.value.story) }) : record;
}
