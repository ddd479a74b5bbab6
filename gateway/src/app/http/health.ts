/** `GET /health`. Not one of the routes: each start waits for its answer, and would wait for the library that reads them. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { PROTOCOL_FINGERPRINT } from "../../../../protocol/gen/methods.ts";
import type { HealthResult } from "../../../../protocol/gen/types.ts";
import { SAFE_HEADERS } from "./problem.ts";

export function healthResponse(version: string): Response {
  const body: HealthResult = { ok: true, version, protocol: LIMITS.protocolVersion, fingerprint: PROTOCOL_FINGERPRINT };
  return Response.json(body, { headers: SAFE_HEADERS });
}
