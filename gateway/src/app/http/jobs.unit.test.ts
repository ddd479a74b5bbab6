/** Requests of `POST /jobs` before they reach the gateway: how many at once, how long, and in which form. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { JobTaken } from "../../../../protocol/gen/types.ts";
import type { JobsHttpPort } from "../../ports/jobs.ts";
import type { Result } from "../../ports/result.ts";
import { jobsResponse } from "./jobs.ts";

const TASK = JSON.stringify({ agent_name: "triage", instructions: "Sort it." });
const URL_ = new URL("http://gsv.test/jobs");
const TAKEN = { ok: true, value: { job_id: "j1", status: "queued" } } as const;
function post(
  body: string | ReadableStream<Uint8Array>,
  submitJob: () => Promise<Result<JobTaken>> = () => Promise.resolve(TAKEN as never),
) {
  const request = new Request(URL_, { method: "POST", body, duplex: "half" } as RequestInit);
  return jobsResponse(request, URL_, { address: "" }, () => ({ submitJob }) as unknown as JobsHttpPort);
}

test("[JB10] a parameter that is given twice is refused", async () => {
  const listed = async (query: string) => {
    const url = new URL(`http://gsv.test/jobs?${query}`);
    const listJobs = () => Promise.resolve({ ok: true, value: { jobs: [] } });
    const response = await jobsResponse(new Request(url), url, { address: "" }, () => ({ listJobs }) as unknown as JobsHttpPort);
    return [response.status, ((await response.json()) as { detail?: string }).detail];
  };
  assert.deepEqual(await listed("status=running&status=failed"), [400, "status: the parameter is given more than once."]);
  assert.deepEqual(await listed("status=running&limit=2"), [200, undefined]);
});
test("[JB1] another method gets 405, with the methods that the address takes", async () => {
  for (const [path, allow] of [
    ["/jobs", "GET, POST"],
    ["/jobs/j1", "DELETE, GET"],
  ] as const) {
    const url = new URL(`http://gsv.test${path}`);
    const response = await jobsResponse(new Request(url, { method: "PUT" }), url, { address: "" }, () => ({}) as JobsHttpPort);
    assert.deepEqual([response.status, response.headers.get("Allow")], [405, allow]);
    assert.equal(((await response.json()) as { title: string }).title, "This address does not take this method.");
  }
});

describe("POST /jobs", () => {
  test("[RT1] takes so many requests at once, and answers more with 429 without reading them", async () => {
    const hold = Promise.withResolvers<void>();
    const held = Array.from({ length: LIMITS.taskBodiesAtOnce }, () => post(TASK, () => hold.promise.then(() => TAKEN as never)));
    const read = mock.fn(() => new Promise<void>(() => undefined));
    const refused = await post(new ReadableStream({ pull: read }, { highWaterMark: 0 }));
    assert.deepEqual([refused.status, refused.headers.get("Retry-After"), read.mock.callCount()], [429, "1", 0]);
    const { reason, retryable } = (await refused.json()) as { reason: string; retryable?: boolean };
    assert.deepEqual([reason, retryable], ["limit.rate", true]);
    hold.resolve();
    assert.deepEqual(new Set((await Promise.all(held)).map(({ status }) => status)), new Set([202]));
    assert.equal((await post(TASK)).status, 202);
  });
  test("[RT1] a body that does not arrive in time may be sent again", async (context) => {
    context.mock.timers.enable({ apis: ["setTimeout"] });
    const slow = post(new ReadableStream({ pull: () => new Promise(() => undefined) }));
    context.mock.timers.tick(LIMITS.webhookBodyMs);
    const response = await slow;
    const { reason, retryable } = (await response.json()) as { reason: string; retryable?: boolean };
    assert.deepEqual([response.status, reason, retryable], [408, "protocol.late", true]);
  });
  test("[RT1] a number that the agent would get as another one is refused with its place", async () => {
    const sent = (number: string) => post(`{"agent_name": "triage", "instructions": "Sort it.", "payload": {"a": [{"id": ${number}}]}}`);
    for (const number of ["1e999", "-1e999", "12345678901234567890", "-9007199254740993", "1e-400", "9007199254740993.0"]) {
      const response = await sent(number);
      const { reason, detail } = (await response.json()) as { reason: string; detail?: string };
      assert.deepEqual(
        [response.status, reason, detail],
        [400, "protocol.invalid_params", "payload.a[0].id: the agent would get this number as another one."],
        number,
      );
    }
    for (const number of ["1e20", "9007199254740991", "-0", "0.1", "1.10", "1e3", '"12345678901234567890"'])
      assert.equal((await sent(number)).status, 202, number);
  });
  test("[RT1] such a number is named by its path", async () => {
    for (const [payload, path] of [
      ['{"a": [1, 1e999]}', "payload.a[1]"],
      ['{"": {"b c": 1e999}}', 'payload[""]["b c"]'],
    ]) {
      const response = await post(`{"agent_name": "triage", "instructions": "Sort it.", "payload": ${payload}}`);
      assert.equal(((await response.json()) as { detail: string }).detail.split(":")[0], path);
    }
    assert.match(((await (await post("1e999")).json()) as { detail: string }).detail, /^the body:/);
  });
  test("[RT1] a body that is no JSON is told so", async () => {
    for (const body of ["nojson", "", "{"]) {
      const response = await post(body);
      const { reason, detail } = (await response.json()) as { reason: string; detail?: string };
      assert.deepEqual([response.status, reason, detail], [400, "protocol.invalid_params", "The body is not JSON."]);
    }
  });
});
