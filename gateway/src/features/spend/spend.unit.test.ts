/** Grants, borders of days, and texts: the pure parts of the ledger. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { CONFIG_DEFAULTS } from "../../../../protocol/gen/config.ts";
import { sentence } from "../../ports/result.ts";
import { addSum, guestOf, newIn, type SpendSum } from "../../ports/spend.ts";
import { type Counted, rule, type Scope, shareOf } from "./caps.ts";
import { nextDay } from "../../prompt/dates.ts";
import { dayOf } from "./days.ts";
import { amountText } from "../../calls/limit-question.ts";
import { fullError, warning, whyFull } from "./texts.ts";

const counted = (costUsd: number, tokens = 0, reserved = 0): Counted => ({
  used: { costUsd, tokens },
  reserved: { costUsd: reserved, tokens: 0 },
  raised: { costUsd: 0, tokens: 0 },
});
const asks = (need: number, least = need) => ({ need: { costUsd: need, tokens: 0 }, least: { costUsd: least, tokens: 0 } });

describe("a grant", () => {
  const limits = { dayCostUsd: 10, guestDayCostUsd: 1, dayTokens: 1_000 };
  test("[SP1] covers several calls, but not more than a quarter of what is left", () => {
    assert.deepEqual(rule(limits, { day: counted(0) }, asks(0.1)), { kind: "granted", amount: { costUsd: 0.8, tokens: 0 } });
    assert.deepEqual(rule(limits, { day: counted(9) }, asks(0.2)), { kind: "granted", amount: { costUsd: 0.25, tokens: 0 } });
  });
  test("[SP1] is what is left when that is less than the call may need, but not less than its least", () => {
    assert.deepEqual(rule(limits, { day: counted(9.5) }, asks(0.75, 0.25)), { kind: "granted", amount: { costUsd: 0.5, tokens: 0 } });
    const ruling = rule(limits, { day: counted(9.5) }, asks(0.75, 0.6));
    assert.ok(ruling.kind === "full");
    const { missing, ...full } = ruling.full;
    assert.deepEqual(full, { scope: "day", unit: "costUsd", limit: 10, used: 9.5, least: 0.6 });
    assert.ok(Math.abs(missing - 0.1) < 1e-9);
  });
  test("[SP1] what is left to the last cent is enough, although sums of dollars are inexact", () => {
    assert.equal(rule({ dayCostUsd: 0.3 }, { day: counted(0.1 + 0.1) }, asks(0.1)).kind, "granted");
    assert.equal(rule({ dayCostUsd: 0.3 }, { day: counted(0.2 + 1e-6) }, asks(0.1)).kind, "full");
    // A difference of a billionth of a dollar is rounding.
    assert.equal(rule({ dayCostUsd: 1 }, { day: counted(1e-9) }, asks(1)).kind, "granted");
    const tokens = (used: number) =>
      rule({ dayTokens: 10 }, { day: counted(0, used) }, { need: { costUsd: 0, tokens: 4 }, least: { costUsd: 0, tokens: 4 } }).kind;
    assert.deepEqual([tokens(6), tokens(7)], ["granted", "full"]);
  });
  test("[SP6] the share of a limit; a limit of nothing is full with the first cent", () => {
    assert.deepEqual([shareOf(8, 10), shareOf(0, 10), shareOf(0, 0), shareOf(1, 0)], [0.8, 0, 0, 1]);
  });
  test("[SP1] leaves what others have set aside", () => {
    assert.equal(rule(limits, { day: counted(1, 0, 8.95) }, asks(0.1)).kind, "full");
  });
  test("[SP3] names the narrowest limit that is used up", () => {
    const ruling = rule(limits, { guest: counted(1), day: counted(10) }, asks(0.1));
    assert.equal(ruling.kind === "full" && ruling.full.scope, "guest");
  });
  test("[SP3] [F17] of a model without a price takes tokens, and dollars don't matter to it", () => {
    const tokens = { need: { costUsd: 0, tokens: 600 }, least: { costUsd: 0, tokens: 600 } };
    assert.equal(rule(limits, { day: counted(99, 400) }, tokens).kind, "granted");
    assert.equal(rule(limits, { day: counted(0, 401) }, tokens).kind, "full");
  });
  test("[SP3] a free call fits every limit, also an exceeded one and a limit of nothing", () => {
    assert.equal(rule({ dayCostUsd: 0 }, { day: counted(5) }, asks(0)).kind, "granted");
  });
  test("[SP1] never exceeds what any limit leaves, and is never less than the least", () => {
    const money = fc.double({ min: 0, max: 20, noNaN: true });
    const scopes: readonly Scope[] = ["session", "guest", "day", "month"];
    fc.assert(
      fc.property(
        fc.array(fc.record({ limit: money, used: money, reserved: money }), { minLength: 4, maxLength: 4 }),
        money,
        money,
        (all, left, right) => {
          const [need, least] = [Math.max(left, right), Math.min(left, right)];
          const given = all.map(({ limit }) => limit);
          const ruling = rule(
            { sessionDayCostUsd: given[0] ?? 0, guestDayCostUsd: given[1] ?? 0, dayCostUsd: given[2] ?? 0, monthCostUsd: given[3] ?? 0 },
            Object.fromEntries(scopes.map((scope, index) => [scope, counted(all[index]?.used ?? 0, 0, all[index]?.reserved ?? 0)])),
            asks(need, least),
          );
          if (ruling.kind === "full" || need === 0) return;
          const leftMost = Math.min(...all.map(({ limit, used, reserved }) => limit - used - reserved));
          assert.ok(ruling.amount.costUsd <= leftMost && ruling.amount.costUsd >= least - 1e-6);
        },
      ),
      { numRuns: 2_000 },
    );
  });
  test("[F17] by default a run, a guest's day and a day have limits in dollars and in tokens", () => {
    const { runCostUsd, guestDayCostUsd, dayCostUsd, runTokens, guestDayTokens, dayTokens } = CONFIG_DEFAULTS.limits;
    assert.deepEqual([runCostUsd, guestDayCostUsd, dayCostUsd], [1, 1, 10]);
    assert.ok(runTokens > 0 && guestDayTokens > 0 && dayTokens > guestDayTokens);
  });
});

describe("[SP4] days of the owner's zone", () => {
  const at = (text: string): number => Date.parse(text);
  test("end at midnight there, also in zones with half hours", () => {
    assert.equal(nextDay(at("2026-11-22T15:00:00Z"), "Europe/Berlin"), at("2026-11-22T23:00:00Z"));
    assert.equal(nextDay(at("2026-11-22T18:29:59Z"), "Asia/Kolkata"), at("2026-11-22T18:30:00Z"));
    assert.equal(nextDay(at("2026-12-31T23:59:59Z"), "UTC"), at("2027-01-01T00:00:00Z"));
  });
  test("have 23 and 25 hours when clocks change", () => {
    assert.equal(nextDay(at("2026-03-28T23:00:00Z"), "Europe/Berlin"), at("2026-03-29T22:00:00Z"));
    assert.equal(nextDay(at("2026-10-24T22:00:00Z"), "Europe/Berlin"), at("2026-10-25T23:00:00Z"));
  });
  test("the end of a day is the first moment of another one, in every zone", () => {
    const zones = ["Pacific/Kiritimati", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "UTC", "no/zone"];
    fc.assert(
      fc.property(fc.integer({ min: at("2020-01-01"), max: at("2030-01-01") }), fc.constantFrom(...zones), (now, zone) => {
        const end = nextDay(now, zone);
        assert.ok(end > now && end <= now + 26 * 3_600_000);
        assert.notEqual(dayOf(end, zone), dayOf(now, zone));
        assert.equal(dayOf(end - 1, zone), dayOf(now, zone));
      }),
    );
  });
});

describe("sums", () => {
  const sum = (over: Partial<SpendSum> = {}): SpendSum => ({
    day: "2026-11-22",
    model: "p/m",
    calls: 1,
    input: 10,
    output: 5,
    cacheRead: 0,
    cacheWrite: 0,
    costUsd: 0.25,
    tokens: 0,
    ...over,
  });
  test("[SP2] what is new is what was added, by day, model and guest", () => {
    const before = addSum([], sum());
    const after = addSum(addSum(addSum(before, sum()), sum({ guest: "g" })), sum({ day: "2026-11-23" }));
    assert.deepEqual(newIn(after, before), [sum(), sum({ guest: "g" }), sum({ day: "2026-11-23" })]);
    assert.deepEqual(newIn(before, after), []);
  });
  test("[SP7] a guest is an exact sender; the owner is no guest", () => {
    const theirs = { key: "agent:main:discord:group:1", ref: "r", agentId: "main", isOwnersSession: false };
    const channel = { kind: "channel", channel: "discord", accountId: "a", senderId: "7" } as const;
    assert.equal(guestOf(theirs, { ...channel, role: "guest" }), "discord:a:7");
    assert.equal(guestOf(theirs, { ...channel, role: "owner" }), undefined);
    assert.equal(guestOf(theirs, { kind: "client", clientId: "c" }), undefined);
    assert.equal(guestOf(theirs, { kind: "node_event", nodeId: "lap" }), theirs.key);
    assert.equal(guestOf({ ...theirs, isOwnersSession: true }, { kind: "node_event", nodeId: "lap" }), undefined);
  });
});

describe("texts", () => {
  const full = { scope: "day", unit: "costUsd", limit: 10, used: 9.984, least: 0.06, missing: 0.044 } as const;
  test("[SP5] what was used, which limit, how to raise it", () => {
    const { reason, message, hint } = fullError(full, false, "00:00 (Europe/Berlin)");
    assert.equal(reason, "budget.day");
    assert.match(message, /\$9\.98 of \$10\.00/);
    assert.match(hint ?? "", /`gsv config set limits\.dayCostUsd 20`, or wait until 00:00 \(Europe\/Berlin\)/);
    const tokens = fullError({ ...full, scope: "month", unit: "tokens", limit: 0, used: 1, least: 4_500 }, false, "the next month");
    assert.match(tokens.hint ?? "", /`gsv config set limits\.monthTokens 10000`/);
    assert.equal(
      whyFull(full),
      "Today's limit leaves too little for the next model call: it may cost up to $0.06, and $9.98 of $10.00 are used.",
    );
    assert.match(
      whyFull({ ...full, used: 0.0024, least: 0.5, missing: 0.1 }),
      /up to \$0\.50, and \$0\.0024 of \$10\.00 are used, and other runs have set aside a part of the rest\.$/,
    );
    assert.match(whyFull({ ...full, used: 10 }), /^Today's limit is reached: \$10\.00 of \$10\.00 were used/);
    // [SP10] A limit that was lowered after the owner had allowed more.
    const allowed = { ...full, limit: 0.1, allowed: 0.1, used: 0.11 };
    assert.match(
      whyFull(allowed),
      /^Today's limit is reached: \$0\.11 were used; the limit is \$0\.10 \(\$0\.00 set \+ \$0\.10 that you allowed today\),/,
    );
    assert.match(
      warning(allowed, true),
      /^Today's limit is reached: \$0\.11 used; the limit is \$0\.10 \(\$0\.00 set \+ \$0\.10 that you allowed today\), 110 %\./,
    );
    const tokensOfMonth = { scope: "month", unit: "tokens", limit: 470_000, allowed: 470_000, used: 588_980, least: 9 } as const;
    assert.match(
      warning(tokensOfMonth, true),
      /588,980 tokens used; the limit is 470,000 tokens \(0 tokens set \+ 470,000 tokens that you allowed this month\)/,
    );
    assert.match(warning(full, true), /^Today's limit leaves too little for the next model call: \$9\.98 of \$10\.00/);
    // A limit that was set below what was used.
    assert.match(
      warning({ ...full, unit: "tokens", limit: 1_000, used: 11_824 }, true),
      /`gsv usage` shows.*limits\.dayTokens 24000` raises it/,
    );
  });
  for (const [unit, value, text] of [
    ["costUsd", 0, "$0.00"],
    ["costUsd", 0.00123, "$0.0012"],
    ["costUsd", 0.009_99, "$0.010"],
    ["costUsd", 0.01, "$0.01"],
    ["costUsd", 12.345, "$12.35"],
    ["tokens", 1_234_567.4, "1,234,567 tokens"],
    ["tokens", 0, "0 tokens"],
  ] as const)
    test(`[SP5] ${value} is shown as ${text}`, () => assert.equal(amountText(unit, value), text));
  test("[SP7] a guest is told when to write again", () => {
    const said = (scope: Scope): string => sentence(fullError({ ...full, scope }, true, "00:00"));
    assert.equal(said("month"), "I can't answer any more this month. Please write again next month.");
    for (const scope of ["guest", "guests", "day"] as const)
      assert.equal(said(scope), "I can't answer any more today. Please write again tomorrow.");
  });
  test("[SP6] a warning names the guest only for a guest's limit, and no share of a limit of nothing", () => {
    assert.match(warning({ ...full, used: 8 }, false, "x:a:7"), /^Today's limit is nearly used up: \$8\.00 of \$10\.00, 80 %\. /);
    assert.match(
      warning({ ...full, scope: "guest", used: 1, limit: 0 }, true),
      /^The guest's limit for today is reached: \$1\.00 of \$0\.00\. /,
    );
  });
  test("[SP7] a guest is told neither money nor settings", () => {
    for (const scope of ["guest", "day", "month"] as const) {
      const message = sentence(fullError({ ...full, scope }, true, "00:00"));
      assert.match(message, /^I can't answer any more .*Please write again/);
      assert.doesNotMatch(message, /\$|limits|gsv/);
    }
  });
  test("[SP6] a warning says how much of it is used", () => {
    assert.match(
      warning({ ...full, used: 8 }, false),
      /^Today's limit is nearly used up: \$8\.00 of \$10\.00, 80 %\..*gsv config set limits\.dayCostUsd 20/,
    );
    assert.match(
      warning({ ...full, scope: "guest", used: 1, limit: 1 }, true, "x:a:7"),
      /^The limit of the guest "x:a:7" for today is reached/,
    );
  });
});
