/** Calls that need your word, with the built program, a real gateway and a real node: the command line asks, and answers from elsewhere. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Machine, type NodeProcess, until } from "./support.ts";

interface Listed {
  readonly approvals: readonly { readonly code: string; readonly text: string; readonly nodeId?: string; readonly why: string }[];
}

describe("[P15] [S13] [S14] [AP1] [AP3] [AP6] [AP12] approvals", () => {
  const machine = new Machine();
  let node: NodeProcess;
  const rule = (id: string) => JSON.stringify([{ id, tool: "*__Bash", decision: "ask" }]);
  const waiting = async (): Promise<Listed["approvals"]> =>
    (JSON.parse(await machine.ok("approval", "list", "--json")) as Listed).approvals;
  const lines = (name: string): readonly string[] => node.lines(name);
  /** Sends a message whose call waits; gives the code. */
  async function paused(command: string): Promise<string> {
    const { code, stderr } = await machine.gsv(["chat", `run: ${command}`]);
    assert.equal(code, 5, stderr);
    assert.ok(stderr.includes(`| ${command}`), stderr);
    const asked = /^ *([2-9A-Z]{5}) {2}laptop__Bash on laptop/m.exec(stderr)?.[1] ?? assert.fail(stderr);
    assert.match(stderr, new RegExp(`gsv approval allow ${asked}`));
    return asked;
  }
  const isIdle = (): Promise<unknown> =>
    until("the run ends", async () => {
      const stats = JSON.parse(await machine.ok("session", "stats", "--json")) as { isProcessing: boolean };
      return !stats.isProcessing || undefined;
    });

  before(async () => {
    await machine.up();
    node = await machine.node("laptop");
    await machine.ok("config", "set", "toolApproval.rules", rule("programs"));
  });
  after(() => machine.end());

  it("a call waits with status 5, is listed with all that it will do, and runs once when it is allowed", async () => {
    const code = await paused("echo once >> allowed.txt");
    assert.deepEqual(
      (await waiting()).map(({ code, text, nodeId }) => ({ code, text, nodeId })),
      [{ code, text: "echo once >> allowed.txt", nodeId: "laptop" }],
    );
    assert.match(await machine.ok("status"), new RegExp(`1 question waits for your word: \`gsv approval show ${code}\``));
    assert.deepEqual(lines("allowed.txt"), []);
    await machine.ok("approval", "allow", code.toLowerCase());
    // A repeated answer gets the result of the first.
    const again = await machine.gsv(["approval", "allow", code]);
    assert.deepEqual([again.code, /was allowed before \(.*, by gsv \(token first-\w+\)\)/.test(again.stderr)], [0, true], again.stderr);
    await isIdle();
    assert.deepEqual(lines("allowed.txt"), ["once"]);
    assert.deepEqual(await waiting(), []);
    const late = await machine.gsv(["approval", "deny", code]);
    assert.equal(late.code, 1);
    assert.match(late.stderr, /was allowed before/);
    assert.deepEqual(lines("allowed.txt"), ["once"]);
  });

  it("a message behind a question ends with status 5 and names the question, and is answered after it", async () => {
    const code = await paused("echo first >> behind.txt");
    const behind = await machine.gsv(["chat", "say: after the question"]);
    assert.equal(behind.code, 5, behind.stderr);
    assert.match(behind.stderr, /Your message is accepted and waits: the run before it needs your answer first/);
    assert.match(behind.stderr, new RegExp(`\\| echo first >> behind.txt[^]*gsv approval allow ${code}`));
    assert.deepEqual(lines("behind.txt"), []);
    await machine.ok("approval", "allow", code);
    await isIdle();
    assert.deepEqual(lines("behind.txt"), ["first"]);
    assert.match(await machine.ok("session", "preview"), /after the question/);
  });

  it("a denied call runs nothing, and the agent is told the owner's word", async () => {
    const code = await paused("echo twice >> denied.txt");
    await machine.ok("approval", "deny", code, "use", "git", "instead");
    await isIdle();
    assert.deepEqual(lines("denied.txt"), []);
    assert.match(await machine.ok("session", "preview"), /use git instead/);
    // The record names the decision, and the rule that asked.
    const log = await machine.ok("audit");
    assert.match(log, new RegExp(`approval\\.end +laptop__Bash +denied +${code} denied`));
    assert.match(log, /tool\.call +laptop__Bash +allowed +approval:/);
  });

  it("a changed policy makes the answer void: the call is asked about again, with a new code", async () => {
    const code = await paused("echo third >> changed.txt");
    await machine.ok("config", "set", "toolApproval.rules", rule("other"));
    const { code: exit, stderr } = await machine.gsv(["approval", "allow", code]);
    assert.equal(exit, 1);
    const again = /gsv approval show ([2-9A-Z]{5})/.exec(stderr)?.[1] ?? assert.fail(stderr);
    assert.notEqual(again, code);
    assert.deepEqual(lines("changed.txt"), []);
    await until("the new question", async () => (await waiting()).some((entry) => entry.code === again) || undefined);
    await machine.ok("approval", "allow", again);
    await isIdle();
    assert.deepEqual(lines("changed.txt"), ["third"]);
  });

  it("--approve decides without a question", async () => {
    const never = await machine.gsv(["chat", "--approve", "never", "run: echo no >> decided.txt"]);
    assert.equal(never.code, 0, never.stderr);
    assert.match(
      never.stderr,
      /asks for laptop__Bash on laptop: echo no >> decided\.txt\. It asked because: .*\n.*denied, nothing of it is done/,
    );
    assert.deepEqual(lines("decided.txt"), []);
    await machine.ok("chat", "--approve", "all", "run: echo yes >> decided.txt");
    assert.deepEqual(lines("decided.txt"), ["yes"]);
  });

  it("[K11] a restart of the gateway keeps the question and its code", async () => {
    const code = await paused("echo after >> restarted.txt");
    await machine.ok("down");
    await machine.up();
    await until("the question", async () => (await waiting()).some((entry) => entry.code === code) || undefined);
    await until("the machine", async () => /laptop__Bash/.test(await machine.ok("tools", "list")) || undefined);
    await machine.ok("approval", "allow", code);
    await isIdle();
    assert.deepEqual(lines("restarted.txt"), ["after"]);
  });

  it("[AP6] [GR2] neither an open question nor an answer for a time holds in another folder of the machine", async () => {
    const folders = ["a", "b"].map((name) => join(machine.folder, `moved ${name}`));
    const [first = "", second = ""] = folders;
    const fill = (): void => {
      for (const folder of folders) for (const name of ["asked", "granted"]) mkdirSync(join(folder, name), { recursive: true });
    };
    const there = (folder: string, name: string): boolean => existsSync(join(folder, name));
    const work = async (folder: string): Promise<void> => {
      await node.kill("SIGTERM");
      node = await machine.node("laptop", folder);
      await until("the machine", async () => (await machine.ok("nodes", "list", "--json")).includes(folder) || undefined);
    };
    await machine.ok("config", "unset", "toolApproval.rules");
    fill();
    await work(first);
    const open = await paused("rm -rf asked");
    await work(second);
    const { code: exit, stderr } = await machine.gsv(["approval", "allow", open]);
    assert.equal(exit, 1, stderr);
    const again = /gsv approval show ([2-9A-Z]{5})/.exec(stderr)?.[1] ?? assert.fail(stderr);
    assert.ok(there(first, "asked") && there(second, "asked"));
    await machine.ok("approval", "deny", again);
    await isIdle();

    await work(first);
    await machine.ok("approval", "allow", await paused("rm -rf granted"), "--for", "8h");
    await isIdle();
    assert.ok(!there(first, "granted"));
    fill();
    // In the same folder it holds.
    await machine.ok("chat", "run: rm -rf granted");
    assert.ok(!there(first, "granted"));
    await work(second);
    await machine.ok("approval", "deny", await paused("rm -rf granted"));
    await isIdle();
    assert.ok(there(second, "granted"));
  });

  it("[PO5] a pattern of a rule is compared by the gateway on this machine, too", async () => {
    const pattern = { path: "command", op: "regex", value: "^touch " };
    await machine.ok(
      "config",
      "set",
      "toolApproval.rules",
      JSON.stringify([{ id: "p", tool: "*__Bash", decision: "deny", when: [pattern] }]),
    );
    const client = await machine.client();
    await assert.rejects(
      client.call("tool.invoke", { tool: "laptop__Bash", args: { command: "touch x" } }),
      /policy\.denied.*denies this call/,
    );
    await client.call("tool.invoke", { tool: "laptop__Bash", args: { command: "true" } });
    client.close();
  });
});
