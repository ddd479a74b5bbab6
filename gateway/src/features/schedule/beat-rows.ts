/**
 * The heartbeats of the configuration as rows of the scheduler (rules HB1, HB2): one for each agent that has one. Small, because it is part
 * of the start; what a heartbeat does is loaded when one comes.
 */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { Result } from "../../ports/result.ts";
import { type BeatSettings, beatLine, beatSettings } from "../../schedule/beat.ts";
import { beatId, type Job } from "./job.ts";
import type { JobStore } from "./job-store.ts";

const DEFAULT_PROMPT =
  "Read HEARTBEAT.md, which is among your instructions, and do what is due now. If there is nothing to tell your human, answer HEARTBEAT_OK and nothing else.";

type ConfigPort = Pick<KernelPorts, "config">;

export class BeatRows {
  readonly #store: JobStore;
  readonly #config: ConfigPort["config"];
  #version: number | undefined;

  constructor(store: JobStore, config: ConfigPort["config"]) {
    this.#store = store;
    this.#config = config;
  }
  /** The value undefined: the agent has no heartbeat. */
  settings(agentId: string): Result<BeatSettings | undefined> {
    const { agents, userTimezone } = this.#config.effective();
    const own = this.#config.agents().find(({ id }) => id === agentId)?.heartbeat;
    return beatSettings(own, agents?.defaultHeartbeat, userTimezone);
  }
  /** Makes the rows those of the configuration, when it has changed. */
  sync(now: number): void {
    const version = this.#config.version();
    if (version === this.#version) return;
    const agents = this.#config.agents().map(({ id }) => id);
    const ids = new Set(agents.map(beatId));
    for (const id of this.#store.knownBeats()) if (!ids.has(id)) this.#store.forget(id);
    for (const agentId of agents) {
      const read = this.settings(agentId);
      if (read.ok && read.value !== undefined) this.#write(agentId, read.value, now);
      else this.#store.retire(beatId(agentId));
    }
    this.#version = version;
  }
  /** Heartbeats that the gateway paused go on. */
  unpause(now: number): void {
    this.sync(now);
    for (const { paused: _was, ...job } of this.#store.beats())
      if (!job.enabled && job.body.beat !== undefined)
        this.#store.update({ ...job, enabled: true, failures: 0, ...timeOf(job.body.beat.settings, now) });
  }
  #write(agentId: string, settings: BeatSettings, now: number): void {
    const known = this.#store.find(beatId(agentId));
    if (known !== undefined && JSON.stringify(known.body.beat?.settings) === JSON.stringify(settings)) return;
    const job: Job = {
      id: beatId(agentId),
      agentId,
      body: {
        name: "Heartbeat",
        createdAt: known?.body.createdAt ?? now,
        updatedAt: now,
        schedule: { kind: "beat" },
        spec: { mode: "systemEvent", text: settings.prompt ?? DEFAULT_PROMPT },
        beat: { marks: {}, ...known?.body.beat, settings },
      },
      enabled: true,
      failures: 0,
      ...timeOf(settings, now),
    };
    this.#store.update(job);
  }
}
function timeOf(settings: BeatSettings, now: number): Pick<Job, "nextAt" | "lookedAt"> {
  const nextAt = beatLine(settings).after(now);
  return { lookedAt: now, ...(nextAt === undefined ? {} : { nextAt }) };
}
