/** Jobs through the Worker: their objects, the gateway and the sessions are real; only the model and the clock are made up. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { AgentJob, JobListResult, JobTaken, ProblemDetails } from "../../../../protocol/gen/types.ts";
import { QueueStore } from "../../../src/features/jobs/queue-store.ts";
import { ADMIN, eventually, fetchWorker, gateway } from "../../support/gateway.ts";

export const TASK = { agent_name: "main", instructions: "Count the words." };
export const object = (id: string) => env.JOB.getByName(id);
export const jobAlarm = (id: string): Promise<boolean> => runDurableObjectAlarm(object(id));
export const send = (
  method: string,
  path: string,
  { body, key, auth = ADMIN }: { readonly body?: unknown; readonly key?: string; readonly auth?: string } = {},
): Promise<Response> =>
  fetchWorker(`http://gsv.test${path}`, {
    method,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    headers: { Authorization: `Bearer ${auth}`, ...(key === undefined ? {} : { "Idempotency-Key": key }) },
  });
async function answered<T>(response: Response, status: number): Promise<T> {
  const text = await response.text();
  expect(response.status, text).toBe(status);
  return JSON.parse(text) as T;
}
export const submit = async (body: unknown = TASK, key?: string): Promise<string> =>
  (await answered<JobTaken>(await send("POST", "/jobs", { body, ...(key === undefined ? {} : { key }) }), 202)).job_id;
export const show = async (id: string): Promise<AgentJob> => answered(await send("GET", `/jobs/${id}`), 200);
export const cancel = async (id: string): Promise<AgentJob> => answered(await send("DELETE", `/jobs/${id}`), 200);
export const list = async (query = ""): Promise<JobListResult> => answered(await send("GET", `/jobs${query}`), 200);
export const refused = async (response: Response): Promise<[number, string]> => {
  const { reason } = await response.json<ProblemDetails>();
  return [response.status, reason];
};
/** Fires the job's alarm until it stands so. */
export async function stands(id: string, status: AgentJob["status"]): Promise<AgentJob> {
  await eventually(async () => {
    if ((await show(id)).status !== status) await jobAlarm(id);
    expect((await show(id)).status).toBe(status);
  });
  return show(id);
}
/** Fires the job's alarm without waiting: its handler waits for the run. */
export const push = (id: string): void => void jobAlarm(id).catch(() => undefined);
export const inQueue = <T>(work: (store: QueueStore) => T): Promise<T> =>
  runInDurableObject(gateway(), (_gateway, state) => work(new QueueStore(state.storage)));
