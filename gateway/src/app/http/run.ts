/** `POST /run`: a task for an agent (rules RT1, RT2). Checks size, form and `Idempotency-Key`; the caller is already authenticated. Jobs come in the same form. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { RunRequest } from "../../../../protocol/gen/types.ts";
import { checkRunRequest } from "../../../../protocol/gen/validators/checks.js";
import { nestsDeeper } from "../../../../protocol/runtime/codec.ts";
import { visible } from "../../prompt/hidden.ts";
import type { HttpCaller, TaskPort, TaskRequest } from "../../ports/http.ts";
import { readAtMost } from "./body.ts";
import { bodyProblem } from "./body-problem.ts";
import { parseExact } from "./exact-number.ts";
import { Slots } from "./slots.ts";
import { failureResponse, methodRefused, problemResponse, SAFE_HEADERS } from "./problem.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;
const AGAIN = "Send it again in a second. With the same `Idempotency-Key` it is the same task.";
const FORM = 'Send one object, such as {"agent_name": "triage", "instructions": "..."}.';
const AS_TEXT = 'Send it as a text, such as "12345678901234567890".';
const PATH_CHARS = 200;
const SHORTER = "Shorten the instructions or the data, or name a file that the agent can read.";
const isTask = (value: unknown): value is RunRequest => checkRunRequest(value);

export async function runResponse(request: Request, caller: HttpCaller, gateway: () => TaskPort): Promise<Response> {
  if (request.method !== "POST") return methodRefused("POST", "Tasks are sent with a POST request.");
  const asked = await inSlot(() => taskOf(request));
  if (asked instanceof Response) return asked;
  const done = await gateway().runTask(caller, asked);
  return done.ok ? jsonResponse(done.value) : failureResponse(done.error);
}
export const jsonResponse = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json", ...SAFE_HEADERS } });

/** Bodies and jobs that are under way take memory, so there are not many at once. The others are not read. */
const slots = new Slots(LIMITS.taskBodiesAtOnce);
export async function inSlot<T>(work: () => Promise<T>): Promise<T | Response> {
  const release = slots.take("tasks");
  if (release === undefined) {
    const busy = problemResponse("limit.rate", `${LIMITS.taskBodiesAtOnce} requests arrive at once, which is the limit.`, { hint: AGAIN });
    busy.headers.set("Retry-After", "1");
    return busy;
  }
  try {
    return await work();
  } finally {
    release();
  }
}
/** The task of a request, or why it is refused. */
export async function taskOf(request: Request): Promise<TaskRequest | Response> {
  const key = request.headers.get("Idempotency-Key") ?? undefined;
  if (key !== undefined && !KEY.test(key))
    return problemResponse("protocol.invalid_params", "Idempotency-Key: expected 1 to 255 visible ASCII characters.", { status: 400 });
  const body = await readAtMost(request, LIMITS.taskBytes, LIMITS.webhookBodyMs);
  if (body === "late") return problemResponse("protocol.late");
  if (body === "large" || body === "full")
    return problemResponse("protocol.too_large", `A task has at most ${LIMITS.taskBytes} bytes.`, { hint: SHORTER });
  const text = textOf(body);
  if (text !== undefined && nestsDeeper(text, LIMITS.valueDepth))
    return problemResponse("protocol.too_deep", `A task is nested at most ${LIMITS.valueDepth} levels deep.`);
  const task = text === undefined ? undefined : parseExact(text);
  if (task === undefined) return problemResponse("protocol.invalid_params", "The body is not JSON.", { status: 400, hint: FORM });
  if ("inexact" in task)
    return problemResponse(
      "protocol.invalid_params",
      `${visible(task.inexact || "the body", PATH_CHARS)}: the agent would get this number as another one.`,
      { status: 400, hint: AS_TEXT },
    );
  const wrong = bodyProblem("RunRequest", task.value);
  if (wrong !== undefined || !isTask(task.value)) return problemResponse("protocol.invalid_params", wrong, { status: 400 });
  const { agent_name, instructions, payload } = task.value;
  return { task: { agent_name, instructions, ...(payload === undefined ? {} : { payload }) }, ...(key === undefined ? {} : { key }) };
}
function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
  } catch {
    return undefined;
  }
}
