/** `POST /join`: a machine or program with an invitation (rules RM7 to RM9). Refuses what can be refused without the gateway. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { JoinRequest } from "../../../../protocol/gen/types.ts";
import { checkJoinRequest } from "../../../../protocol/gen/validators/checks.js";
import type { JoinPort } from "../../ports/http.ts";
import { isBrowser, readAtMost } from "./body.ts";
import { failureResponse, NOT_FROM_A_PAGE, methodRefused, problemResponse } from "./problem.ts";
import { jsonResponse } from "./run.ts";
import { Slots } from "./slots.ts";

const slots = new Slots(LIMITS.joinsAtOnce);
const isJoin = (value: unknown): value is JoinRequest => checkJoinRequest(value);

export async function joinResponse(request: Request, address: string, gateway: () => JoinPort): Promise<Response> {
  if (request.method !== "POST") return methodRefused("POST", "Machines join with a POST request: `gsv join CODE`.");
  if (isBrowser(request.headers)) return problemResponse("auth.origin", "Pages in a browser can't join.", { hint: NOT_FROM_A_PAGE });
  const release = slots.take("join");
  if (release === undefined) return problemResponse("limit.rate", "Too many machines join at once.", { hint: "Try again." });
  try {
    const body = await readAtMost(request, LIMITS.joinBytes, LIMITS.webhookBodyMs);
    if (body === "late") return problemResponse("protocol.late");
    if (body === "large" || body === "full") return problemResponse("protocol.too_large");
    const asked = parsed(body);
    // Names no field and shows no value: it may hold the secret.
    if (!isJoin(asked)) return problemResponse("protocol.invalid_params", "This is not a request to join.", { status: 400 });
    const joined = await gateway().join(asked, address);
    return joined.ok ? jsonResponse(joined.value) : failureResponse(joined.error);
  } finally {
    release();
  }
}
function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body));
  } catch {
    return undefined;
  }
}
