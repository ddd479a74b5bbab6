/** A run at its limit, with the built program and a real gateway: the owner is asked for more, from the command line. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Machine, until } from "./support.ts";

interface Listed {
  readonly approvals: readonly { readonly code: string; readonly limit?: boolean; readonly text: string; readonly rule: string }[];
}

describe("[SP10] [K12] a run that has used up a limit", () => {
  const machine = new Machine();
  const waiting = async (): Promise<Listed["approvals"]> =>
    (JSON.parse(await machine.ok("approval", "list", "--json")) as Listed).approvals;
  /** A run of two steps, where one is allowed. */
  async function paused(): Promise<string> {
    const { code, stderr } = await machine.gsv(["chat", "run: echo hello"]);
    assert.equal(code, 5, stderr);
    assert.match(stderr, /The run used up its 1 step\. \(limits\.stepsPerRun\)\n *\| Continue with 1 more step\?/);
    const asked = /^ *([2-9A-Z]{5}) {2}a paused run, for /m.exec(stderr)?.[1] ?? assert.fail(stderr);
    assert.match(stderr, new RegExp(`gsv approval allow ${asked}`));
    return asked;
  }
  const idle = (): Promise<unknown> =>
    until("the run ends", async () => {
      const stats = JSON.parse(await machine.ok("session", "stats", "--json")) as { isProcessing: boolean };
      return !stats.isProcessing || undefined;
    });

  before(async () => {
    await machine.up();
    await machine.node("laptop");
    await machine.ok("config", "set", "toolApproval.defaultDecision", "allow");
    await machine.ok("config", "set", "limits.stepsPerRun", "1");
  });
  after(() => machine.end());

  it("pauses with status 5, keeps its question through a crash, and goes on when it is allowed", async () => {
    const code = await paused();
    await machine.killWorkerd();
    const known = await until("the question is there again", async () => {
      const { code: exit, stdout } = await machine.gsv(["approval", "list", "--json"]);
      return exit === 0 ? (JSON.parse(stdout) as Listed).approvals : undefined;
    });
    assert.deepEqual(
      known.map(({ code: again, limit, text, rule }) => ({ again, limit, text, rule })),
      [{ again: code, limit: true, text: "Continue with 1 more step?", rule: "limits.stepsPerRun" }],
    );
    await machine.ok("approval", "allow", code);
    await idle();
    // The message itself has the word, so the answer that follows the call is what shows that the run went on.
    assert.match(await machine.ok("session", "preview"), /`laptop__Bash` answered:\s+```\nhello/);
    assert.deepEqual(await waiting(), []);
  });
  it("[AP16] [AP12] says that it waits, with the code, and a question about a limit cannot be allowed for longer", async () => {
    const code = await paused();
    const waits = `waits for your answer (${code})`;
    assert.ok((await machine.ok("status")).includes(waits));
    assert.ok((await machine.ok("session", "list")).includes(waits));
    assert.ok((await machine.ok("session", "stats")).includes(waits));
    assert.match(await machine.ok("why"), new RegExp(`not yet: it waits for your answer .*${code}`));
    assert.match(await machine.ok("chat", "/status"), new RegExp(`Question: ${code} waits for your answer`));
    const longer = await machine.gsv(["approval", "allow", code, "--for", "1h"]);
    assert.equal(longer.code, 2);
    assert.match(longer.stderr, /is about a limit: the answer counts for this run only/);
    const denied = await machine.gsv(["approval", "deny", code]);
    assert.match(denied.stderr, /denied, the run ends here, and what it has done stays/);
    await idle();
    const again = await machine.gsv(["approval", "allow", code]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /was denied before \(.*, by gsv \(token first-\w+\)\)/);
  });
  it("ends when it is denied, and says how to raise the limit", async () => {
    await machine.ok("approval", "deny", await paused());
    await idle();
    assert.match(await machine.ok("why"), /with an error: The run used up its 1 step\. .*limits\.stepsPerRun/);
  });
  it("ends with the next message, which is answered", async () => {
    const code = await paused();
    const next = await machine.gsv(["chat", "hello there"]);
    assert.equal(next.code, 0, next.stderr);
    assert.match(
      next.stderr,
      new RegExp(
        `the run before this message has ended: The run used up its 1 step\\. Before the question ${code} was answered, a new message`,
      ),
    );
    assert.deepEqual(await waiting(), []);
  });
  it("--approve all raises no limit: the run ends", async () => {
    const { code, stderr } = await machine.gsv(["chat", "--approve", "all", "run: echo again"]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /--approve all allows calls and raises no limit, so it is denied/);
    assert.equal(stderr.match(/or raise `limits\.stepsPerRun`/g)?.length, 1, stderr);
  });
});
