/** `/jobs` (rules JB1, JB3, JB8, JB10): tasks that wait for their turn, for a caller who was admitted. */
import type { JobListParams } from "../../../../protocol/gen/types.ts";
import { checkJobListParams } from "../../../../protocol/gen/validators/checks.js";
import type { HttpCaller } from "../../ports/http.ts";
import type { JobsHttpPort } from "../../ports/jobs.ts";
import { visible } from "../../prompt/hidden.ts";
import { bodyProblem } from "./body-problem.ts";
import { failureResponse, methodRefused, problemResponse } from "./problem.ts";
import { inSlot, jsonResponse, taskOf } from "./run.ts";

const NAME_CHARS = 64;
const ONCE = "Give each parameter once.";
const ID = /^\/jobs\/([a-z0-9]{1,64})$/;

export async function jobsResponse(request: Request, url: URL, caller: HttpCaller, gateway: () => JobsHttpPort): Promise<Response> {
  const { method } = request;
  if (url.pathname === "/jobs") {
    if (method === "GET") return listed(url, gateway);
    if (method === "POST") return inSlot(() => submitted(request, caller, gateway));
    return methodRefused("GET, POST", "Jobs are listed with GET and submitted with POST.");
  }
  const id = ID.exec(url.pathname)?.[1];
  if (id === undefined) return problemResponse("job.not_found");
  if (method !== "GET" && method !== "DELETE") return methodRefused("DELETE, GET", "A job is read with GET and cancelled with DELETE.");
  const done = await (method === "GET" ? gateway().getJob(id) : gateway().cancelJob(id));
  return done.ok ? jsonResponse(done.value) : failureResponse(done.error);
}
async function submitted(request: Request, caller: HttpCaller, gateway: () => JobsHttpPort): Promise<Response> {
  const asked = await taskOf(request);
  if (asked instanceof Response) return asked;
  const done = await gateway().submitJob(caller, asked);
  return done.ok ? jsonResponse(done.value, 202) : failureResponse(done.error);
}
async function listed(url: URL, gateway: () => JobsHttpPort): Promise<Response> {
  const given = [...url.searchParams].map(([name, value]) => [name, name === "limit" ? numberOf(value) : value] as const);
  const names = given.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    return problemResponse("protocol.invalid_params", `${visible(twice, NAME_CHARS)}: the parameter is given more than once.`, {
      status: 400,
      hint: ONCE,
    });
  const params: unknown = Object.fromEntries(given);
  const wrong = bodyProblem("JobListParams", params);
  if (wrong !== undefined || !isParams(params)) return problemResponse("protocol.invalid_params", wrong, { status: 400 });
  const done = await gateway().listJobs(params);
  return done.ok ? jsonResponse(done.value) : failureResponse(done.error);
}
const isParams = (value: unknown): value is JobListParams => checkJobListParams(value);
/** The contract's check refuses any other text. */
const numberOf = (text: string): number | string => (/^\d{1,9}$/.test(text) ? Number(text) : text);
