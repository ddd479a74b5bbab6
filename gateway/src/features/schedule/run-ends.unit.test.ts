/** The ends of runs whose answers do not arrive. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { failure } from "../../ports/result.ts";
import type { Delivery } from "./delivery.ts";
import type { Job, JobRun } from "./job.ts";
import { RunEnds, type RunEndPorts } from "./run-ends.ts";

type Ended = Parameters<RunEnds["finish"]>[1];
const FINAL: Ended = { state: "final", text: "the report" } as Ended;

function stage(body: object = { name: "Report", spec: { mode: "task", message: "Report.", to: "test:me" }, schedule: { kind: "cron" } }) {
  const job = { id: "report", agentId: "main", enabled: true, nextAt: 9, failures: 0, body } as unknown as Job;
  const run = { id: 1, jobId: "report", body: {} } as unknown as JobRun;
  const told: string[] = [];
  const ended: { status: string; error?: string }[] = [];
  const store = {
    find: () => job,
    end: (_id: number, status: string, { error }: { error?: string }) => {
      ended.push({ status, ...(error === undefined ? {} : { error }) });
      return { job, pausedNow: false };
    },
  };
  const delivery = {
    sendAnswer: async () => failure("channel.failed", "The channel is away."),
    tellFailing: (_job: Job, _key: string, text: string) => void told.push(text),
  };
  const ends = new RunEnds(
    { store, now: () => 1, scrub: (text: string) => text } as unknown as RunEndPorts,
    delivery as unknown as Delivery,
    { inVain: (_job, _run, text) => void told.push(text), over: () => undefined },
  );
  return { ends, run, told, ended };
}

test("[SC7] [OM10] a run that is incomplete and whose answer did not arrive is told once, and its error names both", async () => {
  const { ends, run, told, ended } = stage();
  await ends.finish(run, { ...FINAL, unknown: ["lap__Bash"] } as Ended);
  const undone = "lap__Bash gave no result, so it is not known whether it took effect.";
  assert.deepEqual(told, [undone]);
  assert.deepEqual(ended, [{ status: "error", error: `It is incomplete. ${undone} The answer was not delivered. The channel is away.` }]);
});
test("[SC7] [SC8] a run whose answer did not arrive is an error that is told", async () => {
  const { ends, run, told, ended } = stage();
  await ends.finish(run, FINAL);
  assert.deepEqual(ended, [{ status: "error", error: "The answer was not delivered. The channel is away." }]);
  assert.match(told.join(), /^The job "Report" failed: The answer was not delivered\./);
});
