/** What the built program prints about rules, grants, modes and later commands, and the words that answer a question at the prompt. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { DEFAULT_SESSION, type FakeModel, Machine, type NodeProcess, until, withModel } from "./support.ts";
import { noTerminal, Terminal } from "./terminal.ts";

interface Grants {
  readonly grants: readonly { readonly id: string; readonly sessionKey?: string; readonly createdAt: number; readonly expiresAt: number }[];
}

describe("texts of the command line about what is allowed", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  let terminal: Terminal | undefined;
  withModel(machine, (model) => {
    fake = model;
  });
  before(async () => {
    node = await machine.node("laptop");
  });
  after(() => terminal?.kill());

  const uses = (tool: string, args: Readonly<Record<string, unknown>>) => [{ name: `laptop__${tool}`, arguments: args }];
  const both = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await machine.gsv(args);
    assert.equal(code, 0, stdout + stderr);
    return stdout + stderr;
  };
  const grants = async (): Promise<Grants["grants"]> => (JSON.parse(await machine.ok("approval", "grants", "--json")) as Grants).grants;

  it("[UN6] `gsv undo` names the commands of later runs, and not when a run is named", async () => {
    fake.enqueue({ toolCalls: uses("Write", { path: "note.txt", content: "one" }) }, { text: "Written." });
    await machine.ok("chat", "write it");
    assert.doesNotMatch(await both("undo", "--dry-run"), /runs after this one/);
    fake.enqueue({ toolCalls: uses("Bash", { command: "echo later > later.txt" }) }, { text: "Run." });
    await machine.ok("chat", "run it");
    const plan = await both("undo", "--dry-run");
    assert.match(plan, /would remove {2}note\.txt/);
    const [, call = ""] =
      /runs after this one started 1 command \(the first: (\S+) on laptop\); what they changed is not kept and not undone/.exec(plan) ?? [];
    assert.match(await machine.ok("why", call), /laptop__Bash/);
    const [, key = ""] = /See what they did: `gsv session preview (\S+)`\./.exec(plan) ?? [];
    assert.match(await machine.ok("session", "preview", key), /echo later > later\.txt/);
    const run = /^Run (\S+)/m.exec(plan)?.[1] ?? assert.fail(plan);
    assert.doesNotMatch(await both("undo", "--dry-run", run), /runs after this one/);
    // What was asked about is named once more when it is done without a question.
    assert.match(await both("undo", "--yes"), /runs after this one started 1 command/);
    assert.deepEqual([node.lines("note.txt"), node.lines("later.txt")], [[], ["later"]]);
  });

  it("[PO8] `gsv status` shows mode full with its end, and nothing for the mode that is configured", async () => {
    fake.enqueue({ text: "Hello." });
    await machine.ok("chat", "hello");
    const row = async (): Promise<string> => /^.*cli:dm:main.*$/m.exec(await machine.ok("status"))?.[0] ?? "";
    assert.ok((await row()) !== "" && !/mode/.test(await row()), await row());
    await machine.ok("chat", "/mode full 2h");
    const { settings } = JSON.parse(await machine.ok("session", "get", "--json")) as { settings: { modeUntil: number } };
    const shown = async (): Promise<string | undefined> => /mode full until (\d\d:\d\d)/.exec(await row())?.[1];
    assert.equal(await until("the status shows the mode", shown), new Date(settings.modeUntil).toTimeString().slice(0, 5));
    // The list of sessions has it, so that no session is asked.
    const { sessions } = JSON.parse(await machine.ok("status", "--json")) as {
      sessions: { sessionKey: string; mode?: string; modeUntil?: number }[];
    };
    assert.deepEqual(
      sessions.map(({ sessionKey, mode, modeUntil }) => [sessionKey, mode, modeUntil]),
      [[DEFAULT_SESSION, "full", settings.modeUntil]],
    );
    await machine.ok("chat", "/mode default");
    await until("the status shows no mode", async () => !/mode/.test(await row()));
    // A reset ends mode full.
    await machine.ok("chat", "/mode full");
    await until("the status shows the mode again", shown);
    await machine.ok("session", "reset");
    await until("the status shows no mode after the reset", async () => !/mode/.test(await row()));
  });

  it("[GR1] [GR8] `gsv approval grants` lists the rules that allow, with their ids and how to remove each", async () => {
    const rules = [
      { id: "status", tool: "*__Bash", decision: "allow", when: [{ path: "command", op: "equals", value: ["git", "status"] }] },
      { id: "no-rm", tool: "*__Bash", decision: "deny", when: [{ path: "command", op: "startsWith", value: ["rm"] }] },
      { id: "reads", tool: "*__Read", decision: "allow" },
    ];
    await machine.ok("config", "set", "toolApproval.rules", JSON.stringify(rules));
    const listed = await both("approval", "grants");
    assert.match(listed, /You have allowed nothing for a time\./);
    assert.match(
      listed,
      /^rule status, until you remove it\n {2}`\*__Bash` where command is `git status`, in the folder of the workspace, in the sandbox/m,
    );
    assert.doesNotMatch(listed, /no-rm/);
    const remove = /Remove it with `gsv ([^`]+)`/.exec(listed)?.[1] ?? assert.fail(listed);
    assert.equal(remove, "approval revoke rule:status");
    assert.match(await both(...remove.split(" ")), /rule:status is removed/);
    const again = await machine.gsv(remove.split(" "));
    assert.equal(again.code, 1);
    assert.match(again.stderr, /There is no rule with this id\..*\n.*`gsv approval grants`/);
    assert.match(await machine.ok("audit"), /config\.unset +toolApproval\.rules\.0 /);
    const left = await both("approval", "grants");
    assert.ok(!/rule status/.test(left) && /^rule reads/m.test(left), left);
    assert.match(await machine.ok("config", "get", "toolApproval.rules"), /no-rm/);
    await machine.ok("config", "unset", "toolApproval.rules");
  });

  it("[PO9] a call of one's own that a rule asks about names that rule and how to change it, and one that the mode asks about does not", async () => {
    const call = async (command: string): Promise<string> => {
      const { code, stderr } = await machine.gsv(["tools", "call", "laptop__Bash", `command=${command}`]);
      assert.equal(code, 3, stderr);
      return stderr;
    };
    const rule = { id: "ask-make", tool: "*__Bash", decision: "ask", when: [{ path: "command", op: "startsWith", value: ["make"] }] };
    await machine.ok("config", "set", "toolApproval", JSON.stringify({ mode: "ask", rules: [{ ...rule, reason: "builds cost" }] }));
    const byRule = await call("make all");
    assert.match(byRule, /this call needs your approval\. The owner's rule ask-make \(builds cost\) asks about it\./);
    assert.match(byRule, /Change or remove that rule: `gsv config get toolApproval` shows it\./);
    assert.doesNotMatch(byRule, /toolApproval\.mode/);
    assert.match(await machine.ok("config", "get", "toolApproval"), /ask-make/);
    const byMode = await call("touch made.txt");
    assert.match(
      byMode,
      /this call needs your approval\..*Allow such calls with a rule \(`toolApproval\.rules`\) or another `toolApproval\.mode`\./s,
    );
    assert.doesNotMatch(byMode, /that rule/);
    await machine.ok("config", "set", "toolApproval", JSON.stringify({ defaultDecision: "ask" }));
    assert.match(await call("touch made.txt"), /or another `toolApproval\.defaultDecision`/);
    assert.deepEqual(node.lines("made.txt"), []);
    await machine.ok("config", "unset", "toolApproval");
  });

  it("[CF4] [PO6] `gsv config set` names the place of a mistake in JSON, and says which paths a rule is not compared with", async () => {
    const set = (value: string) => machine.gsv(["config", "set", "toolApproval.rules", value]);
    const wrong = await set('[{"id": "a", "tool": "*__Read", "decision": "deny",}]');
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /^error: The value is not valid JSON: trailing comma at line 1 column \d+\. \[config\.invalid\]$/m);
    const rule = { id: "a", tool: "*__Read", decision: "deny", when: [{ path: "path", op: "startsWith", value: "/srv/" }] };
    const stored = await set(JSON.stringify([rule]));
    assert.equal(stored.code, 0);
    assert.match(stored.stderr, /rules\[0\]: its path is not compared with relative paths of a call\. .*add a rule/);
    const relative = { ...rule, id: "b", when: [{ path: "path", op: "startsWith", value: "srv/" }] };
    assert.doesNotMatch((await set(JSON.stringify([rule, relative]))).stderr, /compared/);
    await machine.ok("config", "unset", "toolApproval.rules");
  });

  it("[AP12] [GR1] [GR7] at the prompt, `s` allows calls like it in the conversation, until its reset", { skip: noTerminal }, async () => {
    await machine.ok("config", "set", "toolApproval", JSON.stringify({ mode: "ask" }));
    fake.enqueue({ toolCalls: uses("Bash", { command: "touch one.txt" }) }, { text: "The first is made." });
    terminal = new Terminal(machine, "chat", "--session", "agent:main:cli:dm:prompt");
    await terminal.shows("/help shows commands");
    terminal.types("make the first\r");
    await terminal.shows("s calls like it in this conversation");
    await terminal.shows("y, s or n");
    terminal.types("s\r");
    await terminal.shows("For this conversation, at most 24 hours: ");
    await terminal.shows("The first is made.");
    fake.enqueue({ toolCalls: uses("Bash", { command: "touch two.txt" }) }, { text: "The second is made." });
    terminal.types("make the second\r");
    await terminal.shows("The second is made.");
    terminal.types("/quit\r");
    await terminal.succeeds();
    assert.equal(terminal.printed.split("y, s or n?").length, 2, terminal.printed);
    const [grant, ...others] = await grants();
    assert.deepEqual([grant?.sessionKey, others], ["agent:main:cli:dm:prompt", []]);
    // [GR7] It ends with the conversation.
    await machine.ok("session", "reset", "agent:main:cli:dm:prompt");
    await until("the grant is listed no more", async () => (await grants()).length === 0);
  });

  it("[AP12] [GR1] at the prompt, `allow CODE for 8h` allows calls like it for this time", { skip: noTerminal }, async () => {
    fake.enqueue({ toolCalls: uses("Bash", { command: "touch three.txt" }) }, { text: "The third is made." });
    terminal = new Terminal(machine, "chat", "--session", "agent:main:cli:dm:hours");
    await terminal.shows("/help shows commands");
    terminal.types("make the third\r");
    await terminal.shows("y, s or n");
    const code = /([2-9A-Z]{5}): y, s or n\?/.exec(terminal.printed)?.[1] ?? assert.fail(terminal.printed);
    terminal.types(`allow ${code} for 8h\r`);
    await terminal.shows("The third is made.");
    terminal.types("/quit\r");
    await terminal.succeeds();
    const [grant, ...others] = await grants();
    assert.ok(grant !== undefined && others.length === 0);
    assert.deepEqual([grant.sessionKey, grant.expiresAt - grant.createdAt], [undefined, 8 * 3_600_000]);
    const used = (times: string) => new RegExp(`^${grant.id} .*\\n {2}7 h \\d+ min left; used ${times}`, "m");
    assert.match(await machine.ok("approval", "grants"), used("0 times;"));
    // It holds in other conversations, too.
    fake.enqueue({ toolCalls: uses("Bash", { command: "touch four.txt" }) }, { text: "The fourth is made." });
    assert.match(await machine.ok("chat", "--session", "agent:main:cli:dm:other", "make the fourth"), /The fourth is made\./);
    assert.match(await machine.ok("approval", "grants"), used("1 time, last "));
    // [PO8] A change of the mode says when it ends.
    const full = await machine.gsv(["session", "set", "agent:main:cli:dm:hours", "--mode", "full"]);
    assert.match(full.stderr, /agent:main:cli:dm:hours from now on: mode full until /);
  });
});
