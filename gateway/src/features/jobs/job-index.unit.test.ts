import assert from "node:assert/strict";
import { test } from "node:test";
import { checkJobSummary } from "../../../../protocol/gen/validators/checks.js";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import type { IndexSpace, NewJob } from "../../ports/jobs.ts";
import { indexKey, listJobs, summaryOf } from "./job-index.ts";
import { NEW_STATE } from "./machine.ts";

const job = (id: string, createdAt: number, instructions = "x"): NewJob => ({
  id,
  createdAt,
  tenantId: "t",
  agentId: "a".repeat(64),
  bodySha256: "",
  request: { agent_name: "💥".repeat(32), instructions },
});
/** As a KV namespace: in the order of keys, at most 1,000 a page. */
function space(jobs: readonly NewJob[], status: "queued" | "failed" = "queued"): IndexSpace & { calls: number } {
  const keys = jobs
    .map((each) => ({ name: indexKey(each), metadata: summaryOf(each, { ...NEW_STATE, status }, undefined) as unknown }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    calls: 0,
    put: async () => undefined,
    delete: async () => undefined,
    async list({ limit, cursor }) {
      this.calls++;
      assert.ok(limit >= 1 && limit <= 1_000);
      const from = cursor === undefined ? 0 : Number(cursor);
      const page = keys.slice(from, from + limit);
      const end = from + page.length;
      return end >= keys.length ? { keys: page, list_complete: true } : { keys: page, list_complete: false, cursor: `${end}` };
    },
  };
}

test("[JB9] the summary of any job fits the metadata of a key, and the contract", () => {
  for (const instructions of ["💥", '"\\', "\u0000\u0007", "\u2028\u{e0001}", "ä\n\n", "a", "\ud800"].map((text) => text.repeat(20_000))) {
    const state = { ...NEW_STATE, status: "budget_exceeded", startedAt: 9_999_999_999_999, endedAt: 9_999_999_999_999 } as const;
    const report = { cost_usd: 0.123456789012345, usage: { input: 1, output: 1, total: 2 } };
    const summary = summaryOf(job("x".repeat(26), 9_999_999_999_999, instructions), state, report);
    assert.equal(summary.cost_usd, report.cost_usd);
    assert.equal(
      summaryOf(job("x", 1, instructions), state, { ...report, cost_usd: 0 }).cost_usd,
      undefined,
      "a model without a known price",
    );
    assert.ok(checkJobSummary(summary), instructions.slice(0, 4));
    const bytes = utf8Bytes(JSON.stringify(summary));
    assert.ok(bytes <= 1_024, `${bytes} bytes`);
  }
});

test("[JB10] the newest first, in pages of the size that is asked for, without gap or double", async () => {
  const kv = space(Array.from({ length: 230 }, (_, number) => job(`j${number}`, 1_000 + number)));
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listJobs(kv, { limit: 50, ...(cursor === undefined ? {} : { cursor }) });
    assert.ok(page.jobs.length <= 50);
    seen.push(...page.jobs.map(({ job_id }) => job_id));
    cursor = page.cursor;
  } while (cursor !== undefined);
  assert.deepEqual(
    seen,
    Array.from({ length: 230 }, (_, number) => `j${229 - number}`),
  );
  assert.equal(kv.calls, 5);
});

test("[JB10] a rare status costs a bounded number of calls, each for a full page, and the page says how far it looked", async () => {
  const kv = space(
    Array.from({ length: 21_000 }, (_, number) => job(`j${number}`, number)),
    "failed",
  );
  const page = await listJobs(kv, { status: "queued", limit: 50 });
  assert.deepEqual([page.jobs, kv.calls, page.searched, page.cursor], [[], 20, 20_000, "20000"]);
});

test("[JB10] a filtered list has pages of the size that is asked for, without gap or double, in few calls", async () => {
  const count = 2_500;
  const kv = space(Array.from({ length: count }, (_, number) => job(`j${number}`, 1_000 + number)));
  const seen: string[] = [];
  let cursor: string | undefined;
  let searched = 0;
  do {
    const page = await listJobs(kv, { status: "queued", limit: 150, ...(cursor === undefined ? {} : { cursor }) });
    assert.ok(page.jobs.length <= 150);
    seen.push(...page.jobs.map(({ job_id }) => job_id));
    searched += page.searched ?? 0;
    cursor = page.cursor;
  } while (cursor !== undefined);
  assert.deepEqual(
    seen,
    Array.from({ length: count }, (_, number) => `j${count - 1 - number}`),
  );
  assert.equal(searched, count);
  assert.ok(kv.calls <= 20, `${kv.calls} calls`);
});

test("[JB10] a key of something else is left out", async () => {
  const kv = space([job("a", 1)]);
  const real = kv.list.bind(kv);
  kv.list = async (options) => {
    const page = await real(options);
    return { ...page, keys: [...page.keys, { name: "job/x" }, { name: "job/y", metadata: { job_id: 4 } }] };
  };
  assert.deepEqual(
    (await listJobs(kv, {})).jobs.map(({ job_id }) => job_id),
    ["a"],
  );
});
