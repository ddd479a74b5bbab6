/**
 * The pack commerce with the built program and a real gateway, a scripted model and a fake shop that speaks Shopify's wire: order triage in
 * its three outcomes, a refund over a kill of the gateway, and the weekly report at its time.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeShopify, startFakeShopify } from "../fakes/fake-shopify.ts";
import { canSetClock, Clock } from "./clock.ts";
import { type FakeModel, Machine, startFakeModel, until } from "./support.ts";

interface Report {
  readonly status: string;
  readonly summary: string;
  readonly delegations?: readonly { readonly agent_name: string; readonly status?: string }[];
}
interface Event {
  readonly id: string;
  readonly topic: string;
  readonly status: string;
  readonly label?: string;
}
const DAY_MS = 86_400_000;
const ANNA = "anna@example.com";
const ORDER = "gid://shopify/Order/1042";
const LETTER = "Dear Anna, we are sorry about the towel. Your 49 SEK are on their way.";

describe("[PK2] [PK4] [PK7] [PK8] the pack commerce", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let shop: FakeShopify;
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await machine.ok(...args, "--json")) as T;
  const events = async (): Promise<readonly Event[]> => (await json<{ events: readonly Event[] }>("events", "list")).events;
  const reaches = (id: string, status: string): Promise<Event> =>
    until(`event ${id} is ${status}`, async () => {
      const { event } = await json<{ event: Event }>("events", "show", id);
      return event.status === status ? event : undefined;
    });
  const run = async (agent: string, instructions: string, payload: object): Promise<Report> => {
    const response = await fetch(`http://127.0.0.1:${machine.port}/run`, {
      method: "POST",
      body: JSON.stringify({ agent_name: agent, instructions, payload }),
      headers: { Authorization: `Bearer ${machine.token}` },
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text) as Report;
  };
  const calls = (name: string, args: object) => ({ toolCalls: [{ name, arguments: args as Record<string, unknown> }] });
  /** Triage finds the order and asks refund_decision, whose answers these are; communication writes. */
  function script(...decision: readonly object[]): void {
    fake.enqueue(
      calls("shopify_get_order_by_email", { email: ANNA }),
      calls("delegate_to_refund_decision", { instructions: "Decide.", payload: { order_id: ORDER, amount: "49.00 SEK", ageDays: 12 } }),
      calls("recall_memory", { query: `refund history of ${ANNA}` }),
      ...decision,
      calls("delegate_to_communication", { instructions: "Tell Anna." }),
      { text: LETTER },
      { text: `Done. ${LETTER}` },
    );
  }
  const triage = (): Promise<Report> =>
    run("triage", "A customer wrote. Sort the request.", { from: ANNA, text: "My towel of #1042 is defective. I want a refund." });
  const asked = (from: number): string => JSON.stringify(fake.requests.slice(from).map(({ body }) => body));
  const refund = { action: "refund", order_id: ORDER, order_name: "#1042", amount: "49.00", currency: "SEK", reason: "Defective towel." };

  before(async () => {
    fake = await startFakeModel();
    shop = await startFakeShopify([
      { number: 1042, email: ANNA, amount: "49.00", createdAt: new Date(Date.now() - 12 * DAY_MS), item: "Defective towel" },
      { number: 1050, email: "bob@example.com", amount: "98.00", createdAt: new Date(Date.now() + DAY_MS), item: "Two towels" },
    ]);
    await machine.up();
    await machine.useModel(fake);
    const unknown = await machine.gsv(["config", "set", "packs.enabled", '["comerce"]']);
    assert.notEqual(unknown.code, 0);
    assert.match(unknown.stderr, /There is no pack comerce\. Did you mean commerce\?/);
    await machine.ok("config", "set", "packs.settings.commerce.shop", shop.url);
    const { code, stderr } = await machine.gsv(["config", "set", "packs.secrets.commerce.token", "-"], { input: shop.token });
    assert.equal(code, 0, stderr);
    await machine.ok("config", "set", "packs.enabled", '["commerce"]');
    for (const text of [`${ANNA}: one valid refund before, in May.`, `${ANNA} orders again and again.`])
      await machine.ok("memory", "add", text, "--agent", "agent-refund-decision");
  });
  after(async () => {
    await machine.end();
    await fake.close();
    await shop.close();
  });

  it("auto-approve: one refund after the owner's word, also when the gateway is killed while the shop refunds", async () => {
    script(calls("emit_event", { topic: "shopify_actions", payload: refund }), { text: "auto-approve: clean record." });
    const from = fake.requests.length;
    const report = await triage();
    assert.deepEqual([report.status, report.summary], ["completed", `Done. ${LETTER}`]);
    assert.ok(LETTER.split(/\s+/).length < 120);
    assert.deepEqual(
      report.delegations?.map(({ agent_name, status }) => [agent_name, status]),
      [
        ["refund_decision", "completed"],
        ["communication", "completed"],
      ],
    );
    const bodies = asked(from);
    for (const word of ["Defective towel", "one valid refund before", "orders again and again"]) assert.ok(bodies.includes(word), word);
    assert.ok(!bodies.includes(shop.token));
    const [event, ...others] = await events();
    assert.deepEqual([event?.topic, others], ["shopify_actions", []]);
    const id = event?.id ?? "";
    // What came from the shop is text of others, and so is what was decided after it.
    assert.equal((await reaches(id, "waiting_approval")).label, "world");
    assert.equal(shop.refunds.length, 0);
    assert.match(await machine.ok("notifications"), /Refund 49\.00 SEK of order #1042\?/);

    const moved = shop.holdNextRefund();
    await machine.ok("events", "resolve", id, "approve");
    await moved;
    await machine.killWorkerd();
    await reaches(id, "done");
    assert.deepEqual(
      shop.refunds.map(({ amount, orderId, key }) => [amount, orderId, key]),
      [["49.00", ORDER, id]],
    );
  });
  it("escalate: the question is the owner's, and no money moves", async () => {
    script(
      calls("emit_event", {
        topic: "human_review",
        payload: { question: "Refund #1042 a second time?", reason: "It was refunded before." },
      }),
      { text: "escalate: refunded before." },
    );
    assert.equal((await triage()).status, "completed");
    const event = (await events()).find(({ topic }) => topic === "human_review");
    await reaches(event?.id ?? "", "waiting_approval");
    assert.match(await machine.ok("notifications"), /Refund #1042 a second time\?/);
    await machine.ok("events", "resolve", event?.id ?? "", "reject");
    assert.equal(shop.refunds.length, 1);
  });
  it("deny: nothing is emitted; and without the pack, its agents and tools are gone", async () => {
    script({ text: "deny: the towel was washed too hot." });
    const before = (await events()).length;
    assert.equal((await triage()).status, "completed");
    assert.deepEqual([(await events()).length, shop.refunds.length], [before, 1]);
    await machine.ok("config", "set", "packs.enabled", "[]");
    assert.doesNotMatch(await machine.ok("agent", "list"), /triage/);
    assert.doesNotMatch(await machine.ok("tools", "list"), /shopify/);
    await machine.ok("config", "set", "packs.enabled", '["commerce"]');
    assert.match(await machine.ok("tools", "list"), /shopify_products/);
  });
  it("[SC3] the weekly report is written on Monday at six, from what the shop says", { skip: !canSetClock }, async () => {
    const added = await machine.gsv([
      ...["cron", "add", "Write the weekly report.", "--cron", "0 6 * * MON", "--tz", "UTC", "--agent", "agent-merchandising"],
      ...["--name", "Weekly"],
    ]);
    assert.equal(added.code, 0, added.stderr);
    const now = new Date();
    const monday = new Date(
      Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + ((8 - now.getUTCDay()) % 7 || 7), 6, 0, 5),
    );
    await machine.ok("down");
    const clock = new Clock();
    try {
      clock.set(monday);
      const from = fake.requests.length;
      const report = "# Weekly report\n\n## Summary\nOne order of 98.00 SEK.\n";
      fake.enqueue(
        {
          toolCalls: [
            { name: "shopify_shop_info", arguments: {} },
            { name: "shopify_products", arguments: { limit: 50 } },
            { name: "shopify_recent_orders", arguments: { days: 7 } },
          ],
        },
        { text: report },
      );
      const up = await machine.gsv(["up", "--port", String(machine.port)], { env: clock.env });
      assert.equal(up.code, 0, up.stderr);
      const [done] = await until("the report is written", async () => {
        const { runs } = await json<{ runs: readonly { status: string; summary?: string }[] }>("cron", "runs");
        const ended = runs.filter(({ status }) => status === "ok");
        return ended.length > 0 ? ended : undefined;
      });
      assert.match(done?.summary ?? "", /Weekly report/);
      const bodies = asked(from);
      assert.ok(bodies.includes("Towel 049") && !bodies.includes("Towel 050") && bodies.includes("Two towels"));
      // Read only: three queries, and no mutation.
      assert.deepEqual(shop.operations.slice(-3).toSorted(), ["Orders", "Products", "Shop"]);
    } finally {
      clock.end();
    }
  });
});
