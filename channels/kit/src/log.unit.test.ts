import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { logLine } from "./log.ts";

function written(context: TestContext, fields: Readonly<Record<string, string | number>>): string {
  const log = context.mock.method(console, "log", () => {});
  logLine("channel-test", "thing_happened", fields);
  const line = String(log.mock.calls[0]?.arguments[0]);
  log.mock.restore();
  return line;
}

test("[S17] a channel's log hides secrets, phone numbers and ids of people anywhere in a text", (context) => {
  for (const secret of [
    `gsv_channel_abcdefgh_${"0a".repeat(32)}`,
    `sk-${"a1".repeat(12)}`,
    "Bearer abcdefghij",
    "Bot abcdefghij",
    `${"A".repeat(24)}.AbCdEf.${"b".repeat(27)}`,
    `mfa.${"x-y".repeat(10)}`,
    "ab".repeat(20),
    "+31612345678",
    "31612345678:12@s.whatsapp.net",
  ])
    assert.ok(!written(context, { error: `failed with ${secret} today` }).includes(secret), secret);
});

test("[S17] a long reason is cut after 500 characters", (context) => {
  const reason = `${"so ".repeat(166)}so`;
  const logged = (error: string): unknown => JSON.parse(written(context, { error })).error;
  assert.equal(logged(reason), reason);
  assert.equal(logged(`${reason}!`), `${reason}...`);
});
test("[S17] a channel's log hides values with a secret's name, and shows names, numbers and reasons", (context) => {
  for (const name of ["token", "botToken", "password", "qr", "pairingCode", "publicKey"])
    assert.ok(!written(context, { [name]: "plain text" }).includes("plain text"), name);
  const shown = JSON.parse(written(context, { account: "main", count: 12, error: "the socket closed" }));
  assert.deepEqual([shown.component, shown.account, shown.count, shown.error], ["channel-test", "main", 12, "the socket closed"]);
});
test("[LG1] a channel's line has its time, level, event and component; long numbers under a secret's name are hidden", (context) => {
  const line = JSON.parse(
    written(context, { password: 123_456, pin_code: 12_345, password_count: 12_345, count: 123_456, error: "closed" }),
  );
  assert.deepEqual(
    [line.level, line.event, line.component, line.password, line.password_count, line.count],
    ["warn", "thing_happened", "channel-test", "[redacted]", 12_345, 123_456],
  );
  assert.match(line.ts, /^\d{4}-.*Z$/);
  assert.equal(JSON.parse(written(context, { count: 1 })).level, "info");
});
