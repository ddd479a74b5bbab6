import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionIdentity } from "../../ports/session.ts";
import { changeRefusal, mayList, mayRead, writeRefusal } from "./access.ts";

const owner = { ref: "own", isOwnersSession: true } as unknown as SessionIdentity;
const guest = { ref: "abc", isOwnersSession: false } as unknown as SessionIdentity;

test("[S8] a guest's session reads the files that make the agent, skills and its own results", () => {
  for (const path of ["SOUL.md", "AGENTS.md", "skills/mail/SKILL.md", "results/abc-r1-0-0.txt"])
    assert.equal(mayRead(guest, path), true, path);
  for (const path of ["MEMORY.md", "USER.md", "memory/2026-01-31.md", "results/abd-r1-0-0.txt", "results/abc", "skills", "../x", ""])
    assert.equal(mayRead(guest, path), false, path);
  for (const path of ["MEMORY.md", "../x"]) assert.equal(mayRead(owner, path), true, path);
});
test("[S8] a guest's session lists the whole workspace and skills, no other folder", () => {
  for (const folder of [undefined, "", "skills", "skills/mail"]) assert.equal(mayList(guest, folder), true, folder);
  for (const folder of ["memory", "skillset", "sessions", "../skills"]) assert.equal(mayList(guest, folder), false, folder);
  assert.equal(mayList(owner, "memory"), true);
});
test("[S10] only the owner's session changes files; an invalid path is the store's to refuse", () => {
  assert.equal(writeRefusal(owner, "notes.md"), undefined);
  assert.equal(writeRefusal(owner, "SOUL.md"), undefined);
  assert.equal(writeRefusal(owner, "sessions/x")?.reason, "workspace.protected");
  assert.equal(writeRefusal(owner, "../x"), undefined);
  assert.equal(writeRefusal(guest, "notes.md")?.reason, "auth.forbidden");
  assert.notEqual(writeRefusal(guest, "../x"), undefined);
});
test("[WF5] [AP17] no session writes below a file that the gateway knows by name; what is there can be deleted", () => {
  for (const path of ["MEMORY.md/y", "soul.md/y", "agent.yaml/x", "workspace.json/x"]) {
    assert.equal(writeRefusal(owner, path)?.reason, "workspace.protected", path);
    assert.equal(writeRefusal(owner, path, false), undefined, path);
    assert.deepEqual(
      [changeRefusal("main", path, true)?.error.reason, changeRefusal("main", path, false)],
      ["workspace.protected", undefined],
      path,
    );
  }
  for (const path of ["workspace.json", "sessions/x", "memory/quarantine/x", "agent.yaml"])
    assert.equal(changeRefusal("main", path, false)?.error.reason, "workspace.protected", path);
  for (const path of ["SOUL.md", "notes/a.md", "skills/x/SKILL.md"]) assert.equal(changeRefusal("main", path, true), undefined, path);
});
test("[AP17] the next step of a refused change names the agent, so that it can be pasted", () => {
  assert.match(changeRefusal("work", "agent.yaml", true)?.error.hint ?? "", /`gsv agent edit work`/);
});
