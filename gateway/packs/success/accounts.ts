/** Asks the service with the accounts: JSON over HTTP, a bearer token, and an idempotency key with each request that writes. */
import { backoffMs } from "../../../protocol/runtime/backoff.ts";
import { isTooDeep, readBounded, TOO_DEEP } from "../../src/packs/answers.ts";
import type { PackContext } from "../../src/packs/pack.ts";
import { type Failure, failure, type Result, succeed } from "../../src/ports/result.ts";

const ATTEMPTS = 3;
const TIME_LIMIT_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;
const MAX_ANSWER_BYTES = 262_144;

export interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object;
  readonly key?: string;
}
export async function accounts(context: PackContext, asked: Asked): Promise<Result<unknown>> {
  const { accountsUrl: base } = context.settings;
  const { token } = context.secrets;
  if (base === undefined)
    return missing("The address of the accounts is not set.", "settings.success.accountsUrl https://crm.example.com/api");
  if (token === undefined) return missing("The token of the accounts is not set.", "secrets.success.token -");
  for (let tries = 1; ; tries++) {
    const result = await once(context, `${base}${asked.path}`, token, asked);
    if (result.ok || result.error.reason !== "pack.unavailable" || tries === ATTEMPTS) return result;
    await context.wait(backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS));
  }
}
const missing = (message: string, setting: string): Failure => ({
  ok: false,
  error: { reason: "pack.not_configured", message, hint: `Set it: \`gsv config set packs.${setting}\`.` },
});
async function once({ fetch, limit }: PackContext, url: string, token: string, { method, body, key }: Asked): Promise<Result<unknown>> {
  try {
    const response = await fetch(url, {
      method,
      redirect: "manual",
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(key === undefined ? {} : { "idempotency-key": key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: limit(TIME_LIMIT_MS),
    });
    const text = await readBounded(response, MAX_ANSWER_BYTES);
    const { status } = response;
    if (status === 429 || status >= 500) return failure("pack.unavailable", `The service of the accounts answered with status ${status}.`);
    if (status >= 300) return failure("pack.rejected", `The service of the accounts refused the request with status ${status}.`);
    // What was written is written, whatever the service says about it.
    if (method === "POST") return succeed(null);
    if (text === undefined) return failure("pack.rejected", `The answer has more than ${MAX_ANSWER_BYTES} bytes.`);
    if (isTooDeep(text)) return failure("pack.rejected", TOO_DEEP);
    return succeed(text === "" ? null : JSON.parse(text));
  } catch {
    return failure("pack.unavailable", "The service of the accounts did not answer, or not with JSON.");
  }
}
