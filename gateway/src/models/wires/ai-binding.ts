/**
 * `fetch` over the `AI` binding of Cloudflare: takes the requests that OpenAI's wire would send, and asks Workers AI without a key.
 * Answers of older models come in a format of their own, which the guard of the stream converts.
 */
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import type { ModelAi } from "../../ports/model.ts";
import type { Fetch } from "../transport.ts";

export const bindingFetch =
  (ai: ModelAi): Fetch =>
  async (_input, init) => {
    const body: unknown = JSON.parse(typeof init?.body === "string" ? init.body : "{}");
    const { model, ...inputs } = isJsonObject(body) ? body : {};
    try {
      return await ai.run(String(model), inputs, { returnRawResponse: true, ...(init?.signal ? { signal: init.signal } : {}) });
    } catch (error) {
      if (init?.signal?.aborted === true) throw error;
      return refusal(error);
    }
  };

/** The binding throws what its server refuses: `3040: Capacity temporarily exceeded`. */
function refusal(error: unknown): Response {
  const message = error instanceof Error ? error.message : "";
  const code = /^\s*(\d{4}):/.exec(message)?.[1] ?? "";
  const status = STATUS[code] ?? (/rate limit|too many/i.test(message) ? 429 : 500);
  return Response.json({ error: { message, code } }, { status });
}
/** Codes that Workers AI documents. 3040 is 429 there, but it speaks of capacity and not of the account's limit. */
const STATUS: Readonly<Record<string, number>> = {
  "3006": 413,
  "3007": 408,
  "3023": 403,
  "3036": 429,
  "3040": 503,
  "3041": 403,
  "3042": 404,
  "5004": 400,
  "5007": 404,
  "5016": 403,
  "5018": 403,
};
