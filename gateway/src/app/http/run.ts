/** `POST /run`: a task for an agent (rules RT1, RT2). Checks size, form and key; the Gateway object checks the token. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { RunRequest } from "../../../../protocol/gen/types.ts";
import { checkRunRequest } from "../../../../protocol/gen/validators/checks.js";
import { explainText } from "../../../../protocol/runtime/explain.ts";
import type { HttpCaller, TaskPort } from "../../ports/http.ts";
import { readAtMost } from "./body.ts";
import { failureResponse, problemResponse, SAFE_HEADERS } from "./problem.ts";

const KEY = /^[\x21-\x7e]{1,255}$/;
const isTask = (value: unknown): value is RunRequest => checkRunRequest(value);

export async function runResponse(request: Request, caller: HttpCaller, gateway: () => TaskPort): Promise<Response> {
  if (request.method !== "POST") return problemResponse("protocol.unsupported", "Tasks are sent with a POST request.", 405);
  const key = request.headers.get("Idempotency-Key") ?? undefined;
  if (key !== undefined && !KEY.test(key))
    return problemResponse("protocol.invalid_params", "Idempotency-Key: expected 1 to 255 visible ASCII characters.", 400);
  const body = await readAtMost(request, LIMITS.taskBytes, LIMITS.webhookBodyMs);
  if (body === "late") return problemResponse("protocol.unsupported", "The request did not arrive in time.", 408);
  if (body === "large" || body === "full") return problemResponse("protocol.too_large", `A task has at most ${LIMITS.taskBytes} bytes.`);
  const task = jsonOf(body);
  if (!isTask(task)) return problemResponse("protocol.invalid_params", `${explainText("RunRequest", task)}.`, 400);
  const { agent_name, instructions, payload } = task;
  const done = await gateway().runTask(caller, {
    task: { agent_name, instructions, ...(payload === undefined ? {} : { payload }) },
    ...(key === undefined ? {} : { key }),
  });
  if (!done.ok) return failureResponse(done.error);
  return new Response(JSON.stringify(done.value), { headers: { "Content-Type": "application/json", ...SAFE_HEADERS } });
}
function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body));
  } catch {
    return undefined;
  }
}
