import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import type { GrantScope } from "../ports/grants.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { decide, type PolicyContext, policyOf } from "./decide.ts";
import { scopeText } from "./grant-text.ts";
import { deletionOf } from "./deletion/deletions.ts";
import { covers, offerOf, scopeOf } from "./grants.ts";
import { loadPolicyParts } from "./load.ts";

const engine = await loadPolicyParts();
const asked = (command: string, sandbox: SandboxProfile = "workspace"): PolicyCall => ({
  name: "lap__Bash",
  tool: "Bash",
  target: { kind: "node", nodeId: "lap" },
  policyClass: "exec",
  args: { command },
  sandbox,
});
const scope = (command: string, sandbox: SandboxProfile = "workspace"): GrantScope | undefined =>
  scopeOf(asked(command, sandbox), { isOwners: true, agentId: "main", sandbox, deletions: engine.deletions });
const lineOf = (command: string, sandbox?: SandboxProfile): string | undefined => {
  const what = scope(command, sandbox)?.what;
  return what?.kind === "line" ? what.line : undefined;
};
/** What is decided about a command after answers to these. */
function verdict(granted: readonly string[], command: string, mode: "ask" | "auto" = "ask", sandbox: SandboxProfile = "workspace"): string {
  const grants = granted.map((one, index) => {
    const found = scope(one, sandbox);
    assert.ok(found, one);
    return { id: `g${index}`, scope: found, expiresAt: 1 };
  });
  const context: PolicyContext = {
    policy: policyOf({ mode }, engine),
    isOwners: true,
    granted: { grants, agentId: "main", sandbox },
  };
  return decide(asked(command, sandbox), context).verdict;
}

describe("[GR3] [PO13] what a command that may delete many files is granted as", () => {
  const LINES = [
    "rm -rf dist",
    "rsync --delete a b",
    "rm -rf t && mkdir t",
    "rm -rf a; rm -rf b",
    "rm -rf dist && npm run build",
    "git clean -fdx",
    "find build -name '*.o' -delete",
    "mv src /dev/shm/x",
    "mv d /tmp/gone",
  ];
  test("exactly this line, which the answer then allows, in a sandbox too", () => {
    for (const line of LINES) {
      assert.equal(lineOf(line), line);
      for (const mode of ["auto", "ask"] as const) {
        assert.equal(verdict([], line, mode), "ask", `${mode}: ${line}`);
        assert.equal(verdict([line], line, mode), "allow", `${mode}: ${line}`);
      }
    }
    for (const sandbox of ["workspace", "workspace+net", "strict", "off"] as const)
      assert.equal(lineOf("rm -rf dist", sandbox), "rm -rf dist", sandbox);
    // Outside a sandbox it copies what another command may have changed.
    assert.equal(scope("rsync --delete a b", "off"), undefined);
  });
  test("no part of a line, no other line, and no answer about its parts", () => {
    for (const command of ["rm -rf t", "mkdir t", "mkdir t && rm -rf t", "rm -rf t && mkdir t && ls", "rm -rf t; mkdir t"])
      assert.equal(verdict(["rm -rf t && mkdir t"], command), "ask", command);
    for (const granted of [
      ["echo hello", "sh"],
      ["cat x", "bash"],
      ["rm -rf a", "mkdir t"],
    ])
      for (const command of ["echo rm -rf b | sh", "cat x | sh", "rm -rf a && mkdir t"])
        assert.equal(verdict(granted, command), "ask", `${granted.join()}: ${command}`);
  });
  test("an answer about a command that deletes few files is none about its like that deletes many", () => {
    for (const [granted, command] of [
      ["mv ./d e", "mv ./src /dev/shm/x"],
      ["mv d e", "mv d /tmp/gone"],
      ["rm a.txt", "rm -rf src"],
      ["git status", "git clean -fdx"],
    ] as const) {
      assert.equal(verdict([granted], granted), "allow", granted);
      for (const mode of ["auto", "ask"] as const) assert.equal(verdict([granted], command, mode), "ask", command);
    }
  });
  test("nothing when the line does not say itself what it deletes: names from a file or its input, another program, a configuration", () => {
    for (const command of [
      "ls t | xargs rm",
      "xargs -a list rm -r",
      "parallel rm -r ::: a b",
      "git rm -r --pathspec-from-file=x",
      "git rm -qr --pathspec-fr=list",
      "git -c alias.x='clean -fdx' x",
      "git --config-env=alias.x=Y x -f && rm -rf a",
      "rsync -r --delete --files-from=list a b",
      "rsync -r --delete --exclude-from=list a b",
      "tar cf /dev/null --remove-files -T list",
      "cat list | zip -m x.zip -@",
      "7z a -sdel x.7z @list",
      "find -files0-from list -delete",
      "find . -exec rm -r {} +",
      "echo rm -rf a | sh",
      "echo rm -rf a | xargs env",
      "sh -c 'rm -rf a'",
      "sh -c 'rm -rf $(cat list)'",
    ]) {
      assert.equal(verdict([], command, "auto"), "ask", command);
      assert.equal(scope(command), undefined, command);
    }
    // Names of files, and programs that delete nothing.
    for (const line of ["rm -rf xargs", "rm -rf -- sh"]) assert.equal(lineOf(line), line);
    assert.equal(scope("ls | xargs wc")?.what.kind, "commands");
  });
  test("[AP10] nothing when the line has line breaks: it could look like further lines of the question", () => {
    for (const mark of ["\n", "\r", "\u2028", "\u0085"]) {
      const line = `rm -rf build && echo 'done${mark}Code 7K7Q2'`;
      assert.equal(verdict([], line, "auto"), "ask");
      assert.equal(scope(line), undefined, JSON.stringify(mark));
    }
  });
  test("[GR2] in the folder in which the machine worked, and no rule, which would hold in each", () => {
    const context = { isOwners: true, agentId: "main", sandbox: "workspace", deletions: engine.deletions } as const;
    const at = (workspace?: string): GrantScope => {
      const found = scopeOf(asked("rm -rf t"), { ...context, workspace });
      assert.ok(found);
      return found;
    };
    const folders = [undefined, "/home/me/a", "/home/me/b"];
    for (const one of folders) for (const other of folders) assert.equal(covers(at(one), at(other)), one === other, `${one} ${other}`);
    for (const command of ["rm -rf t", "rm a", "/bin/rm -f a", "rmdir a", "unlink a"]) {
      const offer = offerOf(asked(command), context);
      assert.ok(offer, command);
      assert.equal(offer.always, undefined, command);
    }
    assert.ok(offerOf(asked("ping db"), context)?.always);
  });
  test("[PO13] what acts on the files that it names, exactly as a whole, and nothing whose name reads as a sentence", () => {
    for (const line of ["rm a b c", "rm a.txt", "mv a b", "chmod +x a", "kill 12"]) {
      const what = scope(line)?.what;
      assert.deepEqual(what?.kind === "commands" && what.commands[0]?.words, line.split(" "), line);
    }
    for (const line of ["'./a` and nothing else, exactly `ls' x", "'git log` once; `x' y"]) assert.equal(scope(line), undefined, line);
  });
  test("[PO13] taking back a patch is a deletion, unless it only shows", () => {
    const taking = [
      "git diff HEAD~3 | git apply -R",
      "git apply --reverse p",
      "patch -R -p0 < p",
      "patch -p1 -E < p",
      "patch --remove-empty-files -i p",
    ];
    for (const line of taking) assert.equal(deletionOf(line), "many", line);
    for (const line of ["git apply p", "git apply -R --check p", "patch -p1 < p", "patch -R --dry-run -p1 < p"])
      assert.equal(deletionOf(line), "few", line);
  });
  test("the choice says that the line is allowed whatever it finds then", () => {
    assert.equal(
      scopeText(scope("rm -rf t && mkdir t") as GrantScope, String),
      "exactly `rm -rf t && mkdir t`, whatever it finds then, in the workspace of lap, in the sandbox workspace, by the agent main",
    );
  });
});
