/** The pack success against a fake service of accounts. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { EventEnvelope } from "../../../protocol/gen/types.ts";
import { type FakeAccounts, startFakeAccounts } from "../../../test/fakes/fake-accounts.ts";
import type { PackContext } from "../../src/packs/pack.ts";
import { success } from "./index.ts";
import { content } from "./success.lazy.ts";

let crm: FakeAccounts;
let waits = 0;
before(async () => {
  crm = await startFakeAccounts();
});
after(() => crm.close());
const context = (more: Partial<PackContext> = {}): PackContext => ({
  settings: { accountsUrl: crm.url },
  secrets: { token: crm.token },
  fetch: (url, init) => fetch(url, init),
  limit: (ms) => AbortSignal.timeout(ms),
  wait: async () => void waits++,
  signal: new AbortController().signal,
  excerpt: (text, chars) => text.slice(0, chars),
  now: () => 0,
  ...more,
});
const [usage] = content.tools;
const [scores] = content.topics;
const read = (given: PackContext) => usage?.run({ account: "acme" } as never, given, "c1");

test("reads the usage of an account, and says what is missing or refused", async () => {
  assert.deepEqual(await read(context()), { ok: true, value: { account: "acme", seats: 40, activeUsers: 9, trend: "down" } });
  for (const [more, reason] of [
    [{ settings: {} }, "pack.not_configured"],
    [{ secrets: {} }, "pack.not_configured"],
    [{ secrets: { token: "other" } }, "pack.rejected"],
  ] as const) {
    const result = await read(context(more));
    assert.equal(result?.ok === false && result.error.reason, reason);
  }
  assert.match(usage?.problem({ account: "../x" }) ?? "fits", /account/);
});
test("asks again where the service fails, three times in all", async () => {
  let asked = 0;
  const failing = (answers: readonly number[]) => context({ fetch: async () => new Response("{}", { status: answers[asked++] ?? 200 }) });
  assert.equal((await read(failing([503, 429])))?.ok, true);
  assert.deepEqual([asked, waits], [3, 2]);
  asked = 0;
  const lost = await read(failing([500, 502, 500, 500]));
  assert.deepEqual([lost?.ok === false && lost.error.reason, asked], ["pack.unavailable", 3]);
});
test("[PK8] a score is stored once for a key", async () => {
  const event = { idempotency_key: "k1", payload: { account: "acme", score: 20, reason: "Few." } } as EventEnvelope;
  for (const _ of [1, 2]) assert.deepEqual(await scores?.handle(event, context()), { ok: true, value: undefined });
  assert.deepEqual([...(crm.scores.get("acme") ?? [])], ["k1"]);
  assert.match(scores?.problem({ account: "acme", score: 101, reason: "x" }) ?? "fits", /score/);
});
test("[PK8] what was written is done, whatever the service answers to it", async () => {
  const event = { idempotency_key: "k2", payload: { account: "acme", score: 20, reason: "Few." } } as EventEnvelope;
  let asked = 0;
  for (const body of ["Created", "x".repeat(300_000), ""]) {
    const fetch = async () => {
      asked++;
      return new Response(body, { status: 201 });
    };
    assert.deepEqual(await scores?.handle(event, context({ fetch })), { ok: true, value: undefined });
  }
  assert.equal(asked, 3);
});
test("reads no more of an answer than it may have", async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: (to) => {
      sent += 65_536;
      to.enqueue(new Uint8Array(65_536).fill(32));
    },
  });
  const result = await read(context({ fetch: async () => new Response(endless) }));
  assert.equal(result?.ok === false && result.error.reason, "pack.rejected");
  assert.ok(sent < 1_000_000, `${sent} bytes were read`);
});
test("[PK7] takes no answer that is nested too deeply", async () => {
  const result = await read(context({ fetch: async () => new Response(`${"[".repeat(65)}${"]".repeat(65)}`) }));
  assert.equal(result?.ok === false && result.error.message, "The answer is nested more than 64 levels deep.");
});
test("takes https addresses and a server on this machine, and nothing else", () => {
  const problem = (url: string): boolean => success.settings["accountsUrl"]?.problem(url) !== undefined;
  assert.deepEqual(["https://crm.example.com/api", "http://127.0.0.1:80/api"].map(problem), [false, false]);
  for (const other of ["http://crm.example.com", "https://a.example/", "ftp://x", "https://u:p@x"]) assert.ok(problem(other), other);
});
