/** What the policy decides without rules: modes, messages to the owner, deletions, harmless commands. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ApprovalConfig } from "../../../protocol/gen/types.ts";
import { PolicyModeValues } from "../../../protocol/gen/types.ts";
import { engine, onNode, native, bash, decided, verdict, rule, command } from "../../test/policy/decisions.ts";
import type { Decision, PolicyCall, PolicyMode } from "../ports/policy.ts";
import { DEFAULT_MODE, decide, policyOf } from "./decide.ts";

describe("[PO7] the mode decides what no rule decides", () => {
  const calls: Readonly<Record<string, PolicyCall>> = {
    "reads a machine's file": onNode("Read", "read_private", { path: "a" }),
    "reads the workspace": native("gsv__ReadFile", "read_private", { path: "a" }),
    "reads public data": native("gsv__Web", "read_public"),
    "looks at a process": onNode("Process", "exec", { action: "poll", sessionId: "p1" }),
    "writes to a process": onNode("Process", "exec", { action: "write", sessionId: "p1", data: "x" }),
    "process, strange action": onNode("Process", "exec", { action: ["poll"] }),
    "writes the workspace": native("gsv__WriteFile", "write_workspace", { path: "notes/a.md" }),
    remembers: native("gsv__Remember", "write_workspace", { text: "x" }),
    "writes SOUL.md": native("gsv__WriteFile", "write_workspace", { path: "soul.MD" }),
    "writes a skill": native("gsv__EditFile", "write_workspace", { path: "skills/a/SKILL.md" }),
    "writes a path that is none": native("gsv__WriteFile", "write_workspace", { path: ["SOUL.md"] }),
    "writes a file inside": onNode("Write", "write_files", { path: "src/a.ts" }),
    "writes a file outside": onNode("Write", "write_files", { path: "/etc/passwd" }),
    "writes upwards": onNode("Edit", "write_files", { path: "a/../../b" }),
    "writes at home": onNode("Write", "write_files", { path: "~/.bashrc" }),
    "writes a hook": onNode("Write", "write_files", { path: "sub/.GIT/hooks/pre-commit" }),
    "writes to a drive": onNode("Write", "write_files", { path: "C:\\x" }),
    "writes a hidden name": onNode("Write", "write_files", { path: ".g\u200bit/config" }),
    "deletes without a path": onNode("Delete", "write_files", {}),
    "runs a command": bash("git status"),
    "sends a message": native("gsv__Message", "egress"),
    "changes the gateway": native("gsv__Config", "control"),
    "runs a command in the sandbox": { ...bash("git status && npm test > out"), sandbox: "workspace" },
    "runs a command in a strict sandbox": { ...bash("make"), sandbox: "strict" },
    "runs a command that only reads": { ...onNode("Bash", "exec", { command: "make", sandbox: "read-only" }), sandbox: "workspace" },
    "runs a command that only reads on a machine without a sandbox": onNode("Bash", "exec", { command: "make", sandbox: "read-only" }),
    "gives input to a command that only reads": {
      ...onNode("Process", "exec", { action: "write", data: "x", sandbox: "read-only" }),
      sandbox: "workspace",
    },
    "runs a command on a machine whose sandbox is off": { ...bash("make"), sandbox: "off" },
    "runs a command outside the sandbox": { ...onNode("Bash", "exec", { command: "make", sandbox: "off" }), sandbox: "workspace" },
    "asks for a host in the sandbox": {
      ...onNode("Bash", "exec", { command: "curl a.org", sandbox: "workspace+net", hosts: ["a.org"] }),
      sandbox: "workspace",
    },
    "gives input to a command with hosts": {
      ...onNode("Process", "exec", { action: "write", data: "x", sandbox: "workspace+net" }),
      sandbox: "workspace",
    },
    "says something strange about the sandbox": { ...onNode("Bash", "exec", { command: "make", sandbox: null }), sandbox: "workspace" },
    "runs another tool of a machine with a sandbox": { ...onNode("Launch", "exec", {}), sandbox: "workspace" },
    "gives input in the sandbox": { ...onNode("Process", "exec", { action: "write", data: "x" }), sandbox: "workspace" },
    "gives input outside the sandbox": {
      ...onNode("Process", "exec", { action: "write", data: "x", sandbox: "off" }),
      sandbox: "workspace",
    },
    "ends a command": onNode("Process", "exec", { action: "kill", sessionId: "p1" }),
    "asks what system it is": bash("uname -a && date +%s"),
    "asks and changes": bash("uname -a && touch x"),
    "changes a protected file": native("gsv__Cron", "write_protected"),
  };
  /** The verdicts of plan, ask, auto and full, and without a mode. */
  const table: Readonly<Record<string, string>> = {
    "reads a machine's file": "allow allow allow allow allow",
    "reads the workspace": "allow allow allow allow allow",
    "reads public data": "allow allow allow allow allow",
    "looks at a process": "allow allow allow allow allow",
    "writes to a process": "deny ask ask allow allow",
    "process, strange action": "deny ask ask allow allow",
    "writes the workspace": "deny allow allow allow allow",
    remembers: "deny allow allow allow allow",
    "writes SOUL.md": "deny ask allow allow allow",
    "writes a skill": "deny ask allow allow allow",
    "writes a path that is none": "deny ask allow allow allow",
    "writes a file inside": "deny ask allow allow allow",
    "writes a file outside": "deny ask ask allow allow",
    "writes upwards": "deny ask ask allow allow",
    "writes at home": "deny ask ask allow allow",
    "writes a hook": "deny ask ask allow allow",
    "writes to a drive": "deny ask ask allow allow",
    "writes a hidden name": "deny ask ask allow allow",
    "deletes without a path": "deny ask ask allow allow",
    "runs a command": "deny ask ask allow allow",
    "sends a message": "deny ask ask allow allow",
    "changes the gateway": "deny ask ask allow allow",
    "runs a command in the sandbox": "deny ask allow allow allow",
    "runs a command in a strict sandbox": "deny ask allow allow allow",
    "runs a command that only reads": "deny ask allow allow allow",
    "runs a command that only reads on a machine without a sandbox": "deny ask ask allow allow",
    "gives input to a command that only reads": "deny ask ask allow allow",
    "runs a command on a machine whose sandbox is off": "deny ask ask allow allow",
    "runs a command outside the sandbox": "deny ask ask allow allow",
    "asks for a host in the sandbox": "deny ask ask allow allow",
    "gives input to a command with hosts": "deny ask ask allow allow",
    "says something strange about the sandbox": "deny ask ask allow allow",
    "runs another tool of a machine with a sandbox": "deny ask ask allow allow",
    "gives input in the sandbox": "deny ask allow allow allow",
    "gives input outside the sandbox": "deny ask ask allow allow",
    "ends a command": "deny ask allow allow allow",
    "asks what system it is": "deny ask allow allow allow",
    "asks and changes": "deny ask ask allow allow",
    "changes a protected file": "deny ask allow allow allow",
  };
  for (const [name, call] of Object.entries(calls))
    test(name, () => {
      const modes: readonly (PolicyMode | undefined)[] = [...PolicyModeValues, undefined];
      assert.equal(modes.map((mode) => verdict(call, undefined, mode === undefined ? {} : { mode })).join(" "), table[name]);
      // The same when the mode is configured; `full` cannot be.
      for (const mode of ["plan", "ask", "auto"] as const)
        assert.equal(verdict(call, { mode }), table[name]?.split(" ")[PolicyModeValues.indexOf(mode)]);
    });
  test("a name with a dot at the front, and HEAD of a repository, is more than a file, unless it is known as a mere setting", () => {
    const written = (path: string): string => verdict(onNode("Write", "write_files", { path }), { mode: "auto" });
    for (const path of [
      ".local/bin/uname",
      ".tmux.conf",
      ".pre-commit-config.yaml",
      "src/.mocharc.js",
      ".Gradle/init.gradle",
      ".x",
      "a/.../b",
      "HEAD",
      "sub/head",
    ])
      assert.equal(written(path), "ask", path);
    for (const path of [".gitignore", "src/.editorconfig", "./a", "a/.env.example", "a.b", "src/head.ts"])
      assert.equal(written(path), "allow", path);
  });
  test("a session's mode overrides the configured one, and mode or default are named as the rule", () => {
    assert.deepEqual(decided(bash("id"), { mode: "plan" }, { mode: "full" }), { verdict: "allow", rule: "mode:full" });
    assert.equal(decided(bash("id"), { mode: "plan" }).rule, "mode:plan");
    assert.equal(decided(bash("id")).rule, "toolApproval.defaultDecision");
  });
  test("the question says what the call would do, and where", () => {
    const why = (call: PolicyCall, mode: PolicyMode): string => {
      const decision = decided(call, undefined, { mode });
      return decision.verdict === "ask" ? decision.why : decision.verdict;
    };
    const outside = onNode("Write", "write_files", { path: "/etc/passwd" });
    assert.equal(why(outside, "auto"), "It changes a file on lap that may be outside the workspace.");
    for (const path of [".envrc", "a/.git/hooks/pre-commit"])
      assert.equal(
        why(onNode("Write", "write_files", { path }), "auto"),
        "It changes a file on lap that other programs run, or read their settings from.",
      );
    assert.equal(why(outside, "ask"), why(outside, "auto"));
    assert.equal(why(onNode("Write", "write_files", { path: "src/a.ts" }), "ask"), "It changes a file on lap.");
    assert.match(
      why(bash("rm -rf old"), "ask"),
      /^It runs a program on lap, which has no sandbox\. The command `rm` may delete more than 50 files on lap.*cannot be undone\. It may reach every host\.$/,
    );
    for (const [command, what] of [
      ["ls && git -C a clean -fd", /The command `git clean` may delete.*: its arguments do not name each of them/],
      ["/bin/rm -rf a 'b c'", /The command `rm` may delete/],
      ["rm -rf old/*", /The command `rm` may delete/],
      ["for f in *; do rm -r $f; done", /The command `rm` may delete/],
      ["ls | xargs rm", /\. It may delete more.*: its text does not tell for certain what it runs, or what that deletes\./],
      ["$RM a", /\. It may delete more.*: its text does not tell/],
    ] as const)
      assert.match(why(bash(command), "ask"), what, command);
    assert.equal(why(bash("make"), "ask"), "It runs a program on lap, which has no sandbox. It may reach every host.");
    assert.equal(why(bash("make"), "auto"), "It runs a program on lap, which has no sandbox. It may reach every host.");
    const leaving = (tool: string): PolicyCall => ({ ...onNode(tool, "exec", { action: "write", sandbox: "off" }), sandbox: "workspace" });
    assert.equal(why(leaving("Bash"), "auto"), "It runs a program on lap outside the sandbox. It may reach every host.");
    assert.equal(why(leaving("Process"), "auto"), "It gives input to a program on lap outside the sandbox. It may reach every host.");
  });
  test("[PO13] only the text of a shell is read as a command that may delete", () => {
    const kill = { ...onNode("Process", "exec", { action: "kill", command: "rm -rf old" }), sandbox: "workspace" } as const;
    assert.equal(verdict(kill, { mode: "auto" }), "allow");
    // [PO7] The end of a command is asked about nowhere, whatever it says of the sandbox.
    for (const sandbox of ["off", "workspace", "workspace+net"] as const)
      for (const asked of ["off", "workspace+net", undefined])
        assert.equal(
          verdict({ ...kill, sandbox, args: { ...kill.args, ...(asked === undefined ? {} : { sandbox: asked }) } }, { mode: "auto" }),
          "allow",
          `${asked} in ${sandbox}`,
        );
    assert.equal(verdict({ ...bash("rm -rf old"), sandbox: "workspace" }, { mode: "auto" }), "ask");
  });
  test("of several commands with the same verdict the first names its rule", () => {
    const denied = (...names: string[]) => names.map((name) => rule("deny", "lap__Bash", command("equals", [name])));
    const rules = denied("c", "b");
    assert.equal(decided(bash("a; b; c"), { rules }).rule, `rule:${rules[1]?.id}`);
  });
  test("without a mode the default decision holds for what no rule decides", () => {
    for (const defaultDecision of ["allow", "ask", "deny"] as const)
      assert.equal(verdict(onNode("Read", "read_private", {}), { defaultDecision }), defaultDecision);
    const allowed = { defaultDecision: "deny", rules: [rule("allow", "lap__Read")] } as const;
    assert.equal(verdict(onNode("Read", "read_private", {}), { ...allowed, rules: [...allowed.rules] }), "allow");
  });
});

describe("[PO16] a message to the owner", () => {
  const OWN = ["test/default/dm/me", "whatsapp/work/dm/31612345678@s.whatsapp.net"];
  const to = (args: Record<string, unknown>): PolicyCall => native("gsv__Message", "egress", { text: "milk", ...args });
  const found = (call: PolicyCall, mode: PolicyMode = "auto", more: Partial<Parameters<typeof decide>[1]> = {}): string =>
    decide(call, { policy: policyOf(undefined, engine), mode, isOwners: true, ownPlaces: OWN, ...more }).verdict;
  test("asks nothing in mode auto, with files too; the other modes are as for any message", () => {
    for (const place of OWN) {
      assert.equal(found(to({ to: place })), "allow");
      assert.equal(found(to({ to: place, files: ["notes.md"] })), "allow");
    }
    assert.equal(found(to({ to: OWN[0] }), "ask"), "ask");
    assert.equal(found(to({ to: OWN[0] }), "plan"), "deny");
  });
  test("asks when anyone else may have written in the conversation", () => {
    for (const label of ["peer", "world"] as const)
      assert.equal(found(to({ to: OWN[0] }), "auto", { taint: { label, source: "x" } }), "ask");
    assert.equal(found(to({ to: OWN[0] }), "auto", { taint: { label: "self", source: "x" } }), "allow");
  });
  test("any other place asks, however it is written", () => {
    const places: readonly Record<string, unknown>[] = [
      {},
      { to: "test/default/dm/anna" },
      { to: "test/default/dm/me/" },
      { to: "test/default/dm/ME" },
      { to: "test/other/dm/me" },
      { to: "test/-/dm/me" },
      { to: "test/default/group/me" },
      { to: "other/default/dm/me" },
      { to: ["test/default/dm/me"] },
      { to: OWN[0], peerId: "anna" },
      { to: OWN[0], channel: "test" },
      { channel: "test", account: "default", peerKind: "dm", peerId: "me" },
    ];
    for (const args of places) assert.equal(found(to(args)), "ask", JSON.stringify(args));
    assert.equal(found(native("gsv__SessionSend", "egress", { to: OWN[0] })), "ask");
    assert.equal(found({ ...to({ to: OWN[0] }), target: { kind: "node", nodeId: "lap" } }), "ask");
    assert.equal(found(to({ to: OWN[0] }), "auto", { ownPlaces: [] }), "ask");
    assert.equal(found(to({ to: OWN[0] }), "auto", { isOwners: false, policy: policyOf({ mode: "auto" }, engine) }), "ask");
  });
  test("[SC11] a job that sends its answers to another place asks like a message to that place", () => {
    const job = (args: Record<string, unknown>): PolicyCall => native("gsv__Cron", "control", { action: "add", ...args });
    assert.equal(found(job({})), "allow");
    for (const place of OWN) assert.equal(found(job({ to: place })), "allow");
    for (const place of ["test/default/dm/anna", "test/default/group/me", "test/other/dm/me", "somewhere", "", [OWN[0]], null]) {
      assert.equal(found(job({ to: place })), "ask", JSON.stringify(place));
      assert.equal(found(job({ action: "update", to: place })), "ask", JSON.stringify(place));
    }
    const asked = decide(job({ to: "test/default/dm/anna" }), {
      policy: policyOf(undefined, engine),
      mode: "auto",
      isOwners: true,
      ownPlaces: OWN,
    });
    assert(asked.verdict === "ask" && /a job that sends its answers to others/.test(asked.why));
  });
  test("[SC11] from the fourth job of a run and the 21st of a day, to make or change a job asks", () => {
    const job = (args: Record<string, unknown>): PolicyCall => native("gsv__Cron", "control", args);
    const add = job({ action: "add", every: "1d" });
    const after = (call: PolicyCall, run: number, day: number, mode: PolicyMode = "auto"): string =>
      found(call, mode, { jobsMade: { run, day } });
    assert.deepEqual([after(add, 2, 19), after(add, 3, 3), after(add, 0, 20)], ["allow", "ask", "ask"]);
    for (const part of ["at", "every", "cron", "message"])
      assert.equal(after(job({ action: "update", id: "x", [part]: "1d" }), 3, 3), "ask", part);
    for (const plain of [{ action: "update", id: "x", enabled: false }, { action: "remove", id: "x" }, { action: "list" }])
      assert.equal(after(job(plain), 9, 99), "allow", plain.action);
    assert.equal(after(add, 9, 99, "full"), "allow");
    assert.equal(after(native("gsv__Message", "egress", { action: "add", to: OWN[0] }), 9, 99), "allow");
    const asked = decide(add, { policy: policyOf(undefined, engine), mode: "auto", isOwners: true, jobsMade: { run: 3, day: 3 } });
    assert(asked.verdict === "ask" && asked.why === "This run has made or changed 3 jobs already.");
  });
  test("a rule of the owner comes first", () => {
    const rules = policyOf({ rules: [rule("deny", "gsv__Message")] }, engine);
    assert.equal(found(to({ to: OWN[0] }), "auto", { policy: rules }), "deny");
  });
});

describe("[PO11] a model's calls have the mode auto where nothing is set", () => {
  const found = (call: PolicyCall, config?: ApprovalConfig): Decision =>
    decide(call, { policy: policyOf(config, engine), isOwners: true, unset: DEFAULT_MODE });
  test("it decides as if it were configured", () => {
    assert.equal(found(bash("make")).rule, "mode:auto");
    assert.equal(found(bash("make")).verdict, "ask");
    assert.equal(found({ ...bash("make"), sandbox: "workspace" }).verdict, "allow");
  });
  test("a configured mode or default decision comes first", () => {
    assert.equal(found(bash("make"), { mode: "plan" }).rule, "mode:plan");
    assert.deepEqual(found(bash("make"), { defaultDecision: "allow" }), { verdict: "allow", rule: "toolApproval.defaultDecision" });
    const denies = rule("deny", "*");
    assert.equal(found(bash("make"), { rules: [denies] }).rule, `rule:${denies.id}`);
  });
  test("another person's session is asked about a protected file", () => {
    const write = native("gsv__WriteFile", "write_workspace", { path: "SOUL.md" });
    assert.equal(found(write).verdict, "allow");
    assert.equal(decide(write, { policy: policyOf(undefined, engine), isOwners: false, unset: DEFAULT_MODE }).verdict, "ask");
  });
});

describe("[PO13] deleting many files", () => {
  const inSandbox = (command: string): PolicyCall => ({ ...bash(command), sandbox: "workspace" });
  test("asks in mode auto inside the sandbox too, and says why", () => {
    for (const command of ["rm -rf ~/old/*", "cd src && git clean -fdx", "sh -c 'rm -r old'"]) {
      const decision = decided(inSandbox(command), { mode: "auto" });
      assert.equal(decision.verdict, "ask", command);
      assert.match(decision.verdict === "ask" ? decision.why : "", /more than 50 files on lap.*cannot be undone/);
    }
    assert.equal(verdict(inSandbox("rm a.txt b.txt"), { mode: "auto" }), "allow");
    const outside = decided({ ...onNode("Bash", "exec", { command: "rm -r a", sandbox: "off" }), sandbox: "workspace" }, { mode: "auto" });
    assert.match(outside.verdict === "ask" ? outside.why : "", /outside the sandbox\..*cannot be undone\./);
  });
  test("other modes are as they were", () => {
    const modes = [...PolicyModeValues, undefined];
    assert.equal(
      modes.map((mode) => verdict(inSandbox("rm -r a"), undefined, mode === undefined ? {} : { mode })).join(" "),
      "deny ask ask allow allow",
    );
  });
  test("a rule that names the whole command allows it", () => {
    const config: ApprovalConfig = { mode: "auto", rules: [rule("allow", "*__Bash", command("equals", "rm -rf dist"))] };
    assert.equal(verdict(inSandbox("rm -rf dist"), config), "allow");
    assert.equal(verdict(inSandbox("rm -rf dist src"), config), "ask");
  });
});

describe("[PO12] commands that change nothing", () => {
  const isAllowed = (command: string): boolean => verdict(bash(command), { mode: "auto" }) === "allow";
  test("run without a sandbox, alone and together", () => {
    for (const command of [
      "uname -a",
      "pwd",
      "whoami",
      "id -u",
      "hostname",
      "date",
      "date -u +%Y",
      "echo 'a b' && true | uname",
      "nproc; arch",
      "uptime 2>/dev/null",
    ])
      assert.ok(isAllowed(command), command);
  });
  test("other commands, other words of theirs, and what the shell changes, ask", () => {
    for (const command of [
      "ls",
      "cat /etc/passwd",
      "hostname evil",
      "arch -x86_64 sh x",
      "date -s 0",
      "date -f /etc/passwd",
      "date --set=0",
      "env",
      "uname > x",
      "echo $HOME",
      "echo `id`",
      "PATH=. id",
      "./uname",
      "/tmp/id",
      "id & rm x",
      "uname; rm x",
      "",
      "echo a\nrm b",
    ])
      assert.ok(!isAllowed(command), command);
  });
});
