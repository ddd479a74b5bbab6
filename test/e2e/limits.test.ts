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
    assert.match(await machine.ok("session", "preview"), /hello/);
    assert.deepEqual(await waiting(), []);
  });
  it("ends when it is denied, and says how to raise the limit", async () => {
    await machine.ok("approval", "deny", await paused());
    await idle();
    assert.match(await machine.ok("why"), /with an error: The run used up its 1 step\. .*limits\.stepsPerRun/);
  });
  it("ends with the next message, which is answered", async () => {
    await paused();
    assert.match(await machine.ok("chat", "hello there"), /./);
    assert.deepEqual(await waiting(), []);
  });
  it("--approve all raises no limit: the run ends", async () => {
    const { code, stderr } = await machine.gsv(["chat", "--approve", "all", "run: echo again"]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /The run used up its 1 step/);
  });
});
