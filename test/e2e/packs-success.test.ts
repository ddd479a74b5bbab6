/**
 * The pack success with the built program and a real gateway: the chain of its three agents, and a job for each of many accounts, with kills
 * of the gateway in the middle. `GSV_E2E_LONG` has 2,000 accounts.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeAccounts, startFakeAccounts } from "../fakes/fake-accounts.ts";
import { Rig, tag } from "./kill-support.ts";
import { until } from "./support.ts";

const IS_LONG = process.env["GSV_E2E_LONG"] !== undefined;
const COUNT = IS_LONG ? 2_000 : 100;
const WITHIN_MS = IS_LONG ? 1_000_000 : 240_000;
/** Jobs that are submitted at once: each is a request that the gateway answers when it is on disk. */
const AT_ONCE = 8;

interface Event {
  readonly id: string;
  readonly topic: string;
  readonly status: string;
}

describe("[PK1] [PK8] the pack success", { timeout: WITHIN_MS + 120_000 }, () => {
  let rig: Rig;
  let crm: FakeAccounts;
  const post = async (path: string, body: object, key: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${rig.machine.port}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { Authorization: `Bearer ${rig.machine.token}`, "Idempotency-Key": key },
    });
    const text = await response.text();
    assert.ok(response.ok, text);
    return JSON.parse(text);
  };
  const event = (topic: string, payload: object) => ({ name: "emit_event", arguments: { topic, payload } });
  const events = async (topic: string): Promise<readonly Event[]> =>
    (JSON.parse(await rig.machine.ok("events", "list", "--topic", topic, "--json")) as { events: readonly Event[] }).events;

  before(async () => {
    crm = await startFakeAccounts();
    rig = await Rig.start();
    await rig.machine.ok("config", "set", "packs.settings.success.accountsUrl", crm.url);
    const { code, stderr } = await rig.machine.gsv(["config", "set", "packs.secrets.success.token", "-"], { input: crm.token });
    assert.equal(code, 0, stderr);
    await rig.machine.ok("config", "set", "packs.enabled", '["success"]');
    await rig.machine.ok("config", "set", "jobs.maxConcurrent", "16");
  });
  after(async () => {
    await rig.end();
    await crm.close();
  });

  it("three agents rate an account, find the causes and propose a task, which waits for the owner", async () => {
    rig.model.serve("health", {
      answer: ({ results }) =>
        [
          { toolCalls: [{ name: "success_usage", arguments: { account: "acme" } }] },
          { toolCalls: [event("success_scores", { account: "acme", score: 20, reason: "Few are active." })] },
          { toolCalls: [{ name: "delegate_to_risk_analysis", arguments: { instructions: tag("risk") } }] },
        ][results.length] ?? { text: "20: at risk." },
    });
    rig.model.serve("risk", {
      answer: ({ results }) =>
        [
          { toolCalls: [{ name: "success_tickets", arguments: { account: "acme" } }] },
          { toolCalls: [{ name: "delegate_to_success_plan", arguments: { instructions: tag("plan") } }] },
        ][results.length] ?? { text: "The export is broken." },
    });
    rig.model.serve("plan", {
      answer: ({ results }) =>
        results.length === 0
          ? { toolCalls: [event("success_tasks", { account: "acme", title: "Call them", why: "The export is broken." })] }
          : { text: "Call them." },
    });
    const report = (await post("/run", { agent_name: "account_health", instructions: `Rate acme. ${tag("health")}` }, "chain")) as {
      status: string;
      delegations: readonly { agent_name: string; depth: number }[];
    };
    assert.deepEqual(
      [report.status, ...report.delegations.map(({ agent_name: name, depth }) => [name, depth])],
      ["completed", ["risk_analysis", 1], ["success_plan", 2]],
    );
    assert.match(rig.model.turns("risk").at(-1)?.results[0] ?? "", /Export is broken/);
    await until("the score is stored", () => crm.scores.get("acme")?.size === 1 || undefined);
    const [task] = await until("the task waits", async () => {
      const found = (await events("success_tasks")).filter(({ status }) => status === "waiting_approval");
      return found.length === 1 ? found : undefined;
    });
    assert.equal(crm.tasks.size, 0);
    await rig.machine.ok("events", "resolve", task?.id ?? "", "approve");
    await until("the task is given", () => crm.tasks.get("acme")?.size === 1 || undefined);
  });

  it(`[JB4] ${COUNT} accounts get a job each, the gateway is killed in the middle, and each account is rated exactly once`, async () => {
    const ids = Array.from({ length: COUNT }, (_, number) => `acct-${number}`);
    for (const account of ids)
      rig.model.serve(account, {
        answer: ({ results }) =>
          [
            { toolCalls: [{ name: "success_usage", arguments: { account } }] },
            { toolCalls: [event("success_scores", { account, score: 80, reason: "It grows." })] },
          ][results.length] ?? { text: `${account} is rated.` },
      });
    const waiting = [...ids];
    const lane = async (): Promise<void> => {
      for (let account = waiting.shift(); account !== undefined; account = waiting.shift())
        await post("/jobs", { agent_name: "account_health", instructions: `Rate ${account}. ${tag(account)}` }, account);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    const rated = (): number => ids.filter((account) => crm.scores.has(account)).length;
    for (const share of [0.2, 0.6]) {
      await until(`${share * 100} % are rated`, () => rated() >= COUNT * share || undefined, WITHIN_MS, 50);
      await rig.machine.killWorkerd();
    }
    await until("all are rated", () => rated() === COUNT || undefined, WITHIN_MS, 200);
    for (const account of ids) assert.equal(crm.scores.get(account)?.size, 1, account);
    // The same key is the same job: an account that is submitted again is not rated again.
    await post("/jobs", { agent_name: "account_health", instructions: `Rate acct-0. ${tag("acct-0")}` }, "acct-0");
    assert.deepEqual(
      (await events("success_scores")).filter(({ status }) => status === "dead"),
      [],
    );
  });
});
