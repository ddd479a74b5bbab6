/** `POST /run`: a task for an agent (rules RT1, RT2). Checks size, form and key of a caller who was admitted. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { RunRequest } from "../../../../protocol/gen/types.ts";
import { checkRunRequest } from "../../../../protocol/gen/validators/checks.js";
import { nestsDeeper } from "../../../../protocol/runtime/codec.ts";
import type { HttpCaller, TaskPort } from "../../ports/http.ts";
import { readAtMost } from "./body.ts";
import { bodyProblem } from "./body-problem.ts";
import { failureResponse, problemResponse, SAFE_HEADERS } from "./problem.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;
/** A deeper value can't be passed on to the Gateway object. */
const MAX_DEPTH = 64;
const isTask = (value: unknown): value is RunRequest => checkRunRequest(value);

export async function runResponse(request: Request, caller: HttpCaller, gateway: () => TaskPort): Promise<Response> {
  if (request.method !== "POST") return problemResponse("protocol.unsupported", "Tasks are sent with a POST request.", 405);
  const key = request.headers.get("Idempotency-Key") ?? undefined;
  if (key !== undefined && !KEY.test(key))
    return problemResponse("protocol.invalid_params", "Idempotency-Key: expected 1 to 255 visible ASCII characters.", 400);
  const body = await readAtMost(request, LIMITS.taskBytes, LIMITS.webhookBodyMs);
  if (body === "late") return problemResponse("protocol.unsupported", "The request did not arrive in time.", 408);
  if (body === "large" || body === "full") return problemResponse("protocol.too_large", `A task has at most ${LIMITS.taskBytes} bytes.`);
  const text = textOf(body);
  if (text !== undefined && nestsDeeper(text, MAX_DEPTH))
    return problemResponse("protocol.too_deep", `A task is nested at most ${MAX_DEPTH} levels deep.`);
  const task = jsonOf(text);
  const wrong = bodyProblem("RunRequest", task);
  if (wrong !== undefined || !isTask(task)) return problemResponse("protocol.invalid_params", wrong, 400);
  const { agent_name, instructions, payload } = task;
  const done = await gateway().runTask(caller, {
    task: { agent_name, instructions, ...(payload === undefined ? {} : { payload }) },
    ...(key === undefined ? {} : { key }),
  });
  if (!done.ok) return failureResponse(done.error);
  return new Response(JSON.stringify(done.value), { headers: { "Content-Type": "application/json", ...SAFE_HEADERS } });
}
function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
  } catch {
    return undefined;
  }
}
function jsonOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
