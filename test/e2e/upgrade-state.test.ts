/** The first start of another version, on the real gateway: the state is copied before, and comes back when the start fails (gateway/spec/upgrade.md). */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { inConstructor, runtimeVariant, type Variant } from "./runtime-variant.ts";
import { Machine, RUNTIME, until } from "./support.ts";

const CURRENT = (JSON.parse(readFileSync(join(RUNTIME, "manifest.json"), "utf8")) as { version: string }).version;

/** A machine that can start other versions. */
class UpgradedMachine extends Machine {
  runtime(name: string, variant: Omit<Variant, "version"> = {}): Readonly<Record<string, string>> {
    const folder = join(this.folder, name);
    return { GSV_RUNTIME_DIR: existsSync(folder) ? folder : runtimeVariant(folder, { version: name, ...variant }) };
  }
  upWith(env: Readonly<Record<string, string>> = {}): ReturnType<Machine["gsv"]> {
    return this.gsv(["up", "--port", String(this.port)], { env });
  }
  gateway(...names: string[]): string {
    return join(this.home, "gateway", ...names);
  }
  /** Every row of every object, while nothing runs. */
  rows(): string {
    const texts: string[] = [];
    for (const folder of ["gsv-Gateway", "gsv-Session"])
      for (const name of readdirSync(this.gateway("do", folder)).sort()) {
        if (!name.endsWith(".sqlite") || name === "metadata.sqlite") continue;
        const database = new DatabaseSync(this.gateway("do", folder, name), { readOnly: true });
        const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'");
        for (const { name: table } of tables.all())
          texts.push(`${name} ${table} ${JSON.stringify(database.prepare(`SELECT * FROM "${table}"`).all())}`);
        database.close();
      }
    return texts.join("\n");
  }
}

describe("[UP1] [UP2] [UP3] the first start of another version", () => {
  const machine = new UpgradedMachine();
  before(async () => {
    await machine.up();
    await machine.ok("chat", "say before the upgrade");
    await machine.ok("config", "set", "apiKeys.openai", "sk-kept-over-upgrades");
    await machine.ok("down");
  });
  after(() => machine.end());
  const asEver = async (): Promise<void> => {
    assert.equal((await machine.upWith()).code, 0);
    assert.match(await machine.ok("session", "show", "agent:main:cli:dm:main"), /before the upgrade/);
    assert.match(await machine.ok("config", "get", "apiKeys.openai"), /\[redacted\]/);
    assert.match(await machine.ok("chat", "say still here"), /^still here/);
    await machine.ok("down");
  };

  it("copies the state once, and the copy goes with the next start", async () => {
    assert.equal(readFileSync(machine.gateway("last-start"), "utf8"), CURRENT);
    assert.ok(!existsSync(machine.gateway("before-upgrade")), "a new home has nothing to copy");
    const env = machine.runtime("100.0.0");
    assert.equal((await machine.upWith(env)).code, 0);
    assert.equal(readFileSync(machine.gateway("last-start"), "utf8"), "100.0.0");
    const about = JSON.parse(readFileSync(machine.gateway("before-upgrade", "upgrade.json"), "utf8")) as { from: string; to: string };
    assert.deepEqual([about.from, about.to], [CURRENT, "100.0.0"]);
    assert.ok(existsSync(machine.gateway("before-upgrade", "do", "gsv-Gateway")));
    await machine.ok("down");
    assert.equal((await machine.upWith(env)).code, 0);
    await until("the copy is gone", () => !existsSync(machine.gateway("before-upgrade")));
    await machine.ok("down");
    await asEver();
    await asEver();
  });

  for (const [what, name, patch] of [
    ["a migration of the gateway throws", "101.0.0", inConstructor("Gateway", 'throw new Error("no such column: planet: SQLITE_ERROR")')],
    [
      "the gateway's tables are converted and no conversation opens",
      "102.0.0",
      (worker: string) =>
        inConstructor(
          "Session",
          'throw new Error("no such column: planet: SQLITE_ERROR")',
        )(inConstructor("Gateway", 'ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS converted(x ANY) STRICT")')(worker)),
    ],
    ["the Worker does not even load", "103.0.0", (worker: string) => `throw new Error("planet");${worker}`],
  ] as const)
    it(`${what}: the state comes back by itself, and the earlier version goes on`, async () => {
      const rows = machine.rows();
      const { code, stderr } = await machine.upWith(machine.runtime(name, { patch }));
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`first start of version ${name}[\\s\\S]*state from before it is back`));
      assert.match(stderr, /failed-upgrade[\s\S]*gsv update --rollback/);
      if (name !== "103.0.0") assert.match(stderr, /no such column: planet/);
      assert.equal(machine.rows(), rows);
      assert.ok(existsSync(machine.gateway("failed-upgrade", "do", "gsv-Gateway")), "kept for a diagnosis");
      assert.ok(!existsSync(machine.gateway("before-upgrade")));
      await asEver();
    });

  it("[UP4] [UP5] a first start that was killed: the same version goes on, an earlier one gets its state back", async () => {
    const rows = machine.rows();
    // It converts the gateway's tables, and never becomes ready.
    const patch = (worker: string): string =>
      inConstructor(
        "Session",
        'throw new Error("no such column: planet: SQLITE_ERROR")',
      )(inConstructor("Gateway", 'ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS converted(x ANY) STRICT")')(worker));
    const killed = async (): Promise<void> => {
      const run = machine.upWith(machine.runtime("104.0.0", { patch }));
      const pids = await until("its workerd runs", () => {
        if (!existsSync(machine.gateway("state.json"))) return undefined;
        const { supervisorPid, workerdPid } = JSON.parse(readFileSync(machine.gateway("state.json"), "utf8")) as Record<string, number>;
        return supervisorPid === undefined || workerdPid === undefined ? undefined : [supervisorPid, workerdPid];
      });
      for (const pid of pids)
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It has ended by itself.
        }
      assert.notEqual((await run).code, 0);
    };
    await killed();
    await killed();
    await asEver();
    assert.ok(!existsSync(machine.gateway("before-upgrade")));
    assert.ok(machine.rows().length > rows.length, "with the messages since");
    assert.doesNotMatch(machine.rows(), /converted/);
  });

  for (const [what, className, change, back] of [
    [
      "of conversations",
      "gsv-Gateway",
      "UPDATE schema_version SET version = version + 50 WHERE owner = 'sessions'",
      "UPDATE schema_version SET version = version - 50 WHERE owner = 'sessions'",
    ],
    ["of the agents' files", "R2", "UPDATE format SET version = 2", "UPDATE format SET version = 1"],
  ] as const)
    for (const last of ["105.0.0", CURRENT])
      it(`[P22] [UP2] tables ${what} of a newer version, when ${last} was ready last: refused with a sentence, and unchanged`, async () => {
        const edit = (statement: string): void => {
          const file = readdirSync(machine.gateway("do", className)).find((name) => /^[0-9a-f]+\.sqlite$/.test(name)) ?? "";
          const database = new DatabaseSync(machine.gateway("do", className, file));
          database.exec(statement);
          database.close();
        };
        edit(change);
        writeFileSync(machine.gateway("last-start"), last, { mode: 0o600 });
        const rows = machine.rows();
        const { code, stderr } = await machine.upWith();
        assert.equal(code, 1, stderr);
        assert.match(stderr, /A newer version of GSV has written this state[\s\S]*Install the newer version/);
        assert.equal(stderr.split("A newer version of GSV").length, 2, `said once:\n${stderr}`);
        assert.doesNotMatch(stderr, /--rollback|is back/);
        assert.equal(machine.rows(), rows);
        edit(back);
      });
});
