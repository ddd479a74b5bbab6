/** Jobs: how fast they are taken and run, and what many that wait cost in memory. */
import { usageOf } from "./process.ts";
import type { Gsv } from "./system.ts";

/** Requests of the sender at once. */
const AT_ONCE = 16;
const LOOK_MS = 5;
const PATIENCE_MS = 600_000;

export interface JobCosts {
  readonly takenPerSecond: number;
  readonly perSecond: number;
  /** The highest while they waited and ran. */
  readonly peakMb: number;
}
export async function jobCosts(system: Gsv, count: number): Promise<JobCosts> {
  const send = async (path: string, init: RequestInit = {}): Promise<Record<string, unknown>> => {
    const response = await fetch(`${system.url}${path}`, { ...init, headers: { Authorization: `Bearer ${system.token}` } });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  let peakMb = 0;
  const look = (): void => {
    peakMb = Math.max(peakMb, usageOf(system.pid).rssMb);
  };
  const ids: string[] = [];
  const body = JSON.stringify({ agent_name: "main", instructions: "[text 1]" });
  const from = performance.now();
  let left = count;
  const sender = async (): Promise<void> => {
    while (left-- > 0) {
      const { job_id: id } = await send("/jobs", { method: "POST", body });
      ids.push(String(id));
      if (ids.length % 50 === 0) look();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sender));
  const takenMs = performance.now() - from;
  for (const id of ids) {
    for (;;) {
      const { status } = await send(`/jobs/${id}`);
      if (status === "succeeded") break;
      if (status !== "queued" && status !== "running") throw new Error(`a job is ${String(status)}`);
      if (performance.now() - from > PATIENCE_MS) throw new Error("the jobs did not end in time");
      look();
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
  return { takenPerSecond: (count * 1000) / takenMs, perSecond: (count * 1000) / (performance.now() - from), peakMb };
}
