import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import { parsePath, type WorkspacePath } from "../keys.ts";
import { isMemory, placeRefusal, type Protection, protectionOf, refusal } from "./protection.ts";

const path = (text: string): WorkspacePath => {
  const parsed = parsePath(text);
  if (!parsed.ok) throw new Error(text);
  return parsed.value;
};
const TABLE: readonly (readonly [string, Protection])[] = [
  ["SOUL.md", "protected"],
  ["IDENTITY.md", "protected"],
  ["USER.md", "protected"],
  ["AGENTS.md", "protected"],
  ["TOOLS.md", "protected"],
  ["HEARTBEAT.md", "protected"],
  ["BOOTSTRAP.md", "protected"],
  ["MEMORY.md", "protected"],
  ["agent.yaml", "definition"],
  ["Agent.YAML", "definition"],
  ["notes/agent.yaml", "plain"],
  ["workspace.json", "mark"],
  ["Workspace.JSON", "mark"],
  ["notes/workspace.json", "plain"],
  ["MEMORY.md/y", "protected"],
  ["soul.MD/a/b", "protected"],
  ["agent.yaml/x", "protected"],
  ["workspace.json/x", "protected"],
  ["skills/mail/SKILL.md", "protected"],
  ["skills/mail/deep/notes.txt", "protected"],
  ["sessions/s-1.jsonl.gz", "sealed"],
  ["sessions/anything", "sealed"],
  ["sessions", "sealed"],
  ["results/ab-r1-0-0.txt", "sealed"],
  ["results", "sealed"],
  ["memory", "folder"],
  ["skills", "folder"],
  ["memory/2026-01-31.md", "plain"],
  ["memory/quarantine", "quarantine"],
  ["Memory/Quarantine/K7Q2ABCD.json", "quarantine"],
  ["memory/quarantine.md", "plain"],
  ["notes.md", "plain"],
  ["notes/SOUL.md", "plain"],
  ["notes/sessions/x", "plain"],
  ["sessions.md", "plain"],
  // The same file on a disk that folds names.
  ["soul.md", "protected"],
  ["Memory.MD", "protected"],
  ["SKILLS/mail/SKILL.md", "protected"],
  ["Sessions/s-1.jsonl.gz", "sealed"],
  ["\u017fessions/x", "sealed"],
  ["./sessions/x", "sealed"],
];

describe("[WF5][S10][AD5] protected files", () => {
  for (const [name, protection] of TABLE) {
    it(`${JSON.stringify(name)} is ${protection}`, () => {
      assert.equal(protectionOf(path(name)), protection);
      const owner = refusal(path(name), "owner", "work")?.reason;
      const other = refusal(path(name), "other", "work")?.reason;
      const expected = {
        sealed: ["workspace.protected", "workspace.protected"],
        quarantine: ["workspace.protected", "workspace.protected"],
        definition: ["workspace.protected", "workspace.protected"],
        mark: ["workspace.protected", "workspace.protected"],
        folder: ["path.not_a_file", "path.not_a_file"],
        protected: [undefined, "workspace.protected"],
        plain: [undefined, "auth.forbidden"],
      } as const;
      assert.deepEqual([owner, other], expected[protection]);
    });
  }
  it("only the gateway writes the mark of the default files", () => {
    assert.equal(refusal(path("workspace.json"), "gateway", "work"), undefined);
    assert.equal(refusal(path("agent.yaml"), "gateway", "work"), undefined);
  });
  it("nothing can be below a file that the gateway knows by name", () => {
    for (const name of ["MEMORY.md/y", "SOUL.md/a/b", "heartbeat.md/y", "agent.yaml/x", "workspace.json/x"])
      assert.equal(placeRefusal(path(name))?.reason, "workspace.protected", name);
    for (const name of ["MEMORY.md", "notes/MEMORY.md/y", "memory/a.md", "skills/MEMORY.md", "MEMORY.md.old/y"])
      assert.equal(placeRefusal(path(name)), undefined, name);
    assert.deepEqual([isMemory(path("MEMORY.md/y")), isMemory(path("MEMORY.md.old/y"))], [true, false]);
  });
  it("a refusal tells what the owner can do", () => {
    const told = (name: string, writer: "owner" | "other"): string => {
      const error = refusal(path(name), writer, "work");
      return error === undefined ? "" : `${error.message} ${error.hint ?? ERRORS[error.reason].hint}`;
    };
    assert.match(told("SOUL.md", "other"), /gsv workspace edit SOUL\.md/);
    assert.match(told("notes.md", "other"), /owner can/);
    assert.match(told("agent.yaml", "owner"), /`gsv agent edit work`/);
    for (const name of ["agent.yaml", "sessions/x", "memory/quarantine/a.json"])
      assert.doesNotMatch(told(name, "owner"), /gsv workspace edit/, "it is refused for this file too");
  });
});
