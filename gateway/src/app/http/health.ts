/** `GET /health`. Not in routes.lazy.ts: each start waits for this answer, and the router's library would delay it. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { PROTOCOL_FINGERPRINT } from "../../../../protocol/gen/methods.ts";
import type { HealthResult } from "../../../../protocol/gen/types.ts";
import { SAFE_HEADERS } from "./problem.ts";

export function healthResponse(version: string): Response {
  const body: HealthResult = { ok: true, version, protocol: LIMITS.protocolVersion, fingerprint: PROTOCOL_FINGERPRINT };
  return Response.json(body, { headers: SAFE_HEADERS });
}
