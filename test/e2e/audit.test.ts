/** The audit of a running gateway, checked by the built program. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { Machine } from "./support.ts";

/** The database of the gateway's object: the one with an audit. */
function auditDatabase(machine: Machine): string {
  const durable = join(machine.home, "gateway", "do");
  const found = readdirSync(durable, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".sqlite") && file.includes("gsv-Gateway"))
    .map((file) => join(durable, file))
    .filter((file) => {
      const database = new DatabaseSync(file, { readOnly: true });
      const has = database.prepare("SELECT 1 AS there FROM sqlite_master WHERE name = 'audit'").get() !== undefined;
      database.close();
      return has;
    });
  assert.equal(found.length, 1, found.join(", "));
  return found[0] ?? "";
}

describe("the audit", () => {
  const machine = new Machine();
  before(() => machine.up());
  after(() => machine.end());

  it("[AU3] [S16] a whole log passes; a row that was changed on the disk is named, and the command fails", async () => {
    await machine.ok("config", "set", "userTimezone", "UTC");
    await machine.ok("config", "set", "limits.stepsPerRun", "7");
    const whole = await machine.ok("audit", "--verify");
    assert.match(whole, /The audit log is intact: \d+ entries/);
    await machine.ok("down");
    const database = new DatabaseSync(auditDatabase(machine));
    const { seq } = database.prepare("SELECT seq FROM audit WHERE target = 'userTimezone'").get() as { seq: number };
    database.prepare("UPDATE audit SET actor = 'a forger' WHERE seq = ?").run(seq);
    database.close();
    await machine.up();
    const { code, stderr } = await machine.gsv(["audit", "--verify"]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, new RegExp(`broken at entry ${seq} \\(`));
  });
});
