/** The first meeting in a new home, and several agents: created, met, imported. With the built program and the demo model. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Machine } from "./support.ts";

describe("[P5.2] the first meeting", () => {
  const machine = new Machine();
  const file = (path: string, agent = "main"): string => join(machine.home, "workspace", "agents", agent, path);
  const sections = async (...args: string[]): Promise<string[]> =>
    (JSON.parse(await machine.ok("prompt", "show", "--json", ...args)) as { sections: { id: string }[] }).sections.map(({ id }) => id);
  before(() => machine.up());
  after(() => machine.end());

  it("begins with a new user's first message", async () => {
    const answer = await machine.ok("chat", "hello");
    assert.match(answer, /Who am I, and who are you\?[\s\S]*your name is Ada and I am Sam[\s\S]*demo model/);
    assert.deepEqual(await sections(), ["base", "bootstrap", "soul", "identity", "user", "runtime"]);
    assert.match(await machine.ok("chat", "say still here"), /^still here/, "the other phrases work meanwhile");
  });
  it("ends with an identity and deletes BOOTSTRAP.md", async () => {
    assert.match(await machine.ok("chat", "your name is Ada and I am Sam"), /Done, Sam\. I am Ada now/);
    assert.equal(existsSync(file("BOOTSTRAP.md")), false);
    assert.match(readFileSync(file("IDENTITY.md"), "utf8"), /Name: Ada/);
    assert.match(readFileSync(file("USER.md"), "utf8"), /Name: Sam/);
    assert.match(readFileSync(file("SOUL.md"), "utf8"), /^# Soul[\s\S]*I am Ada, and I am here for Sam/);
  });
  it("the identity holds in a new conversation", async () => {
    await machine.ok("chat", "/new");
    assert.match(await machine.ok("chat", "who are you?"), /I am Ada[\s\S]*here for Sam/);
    assert.match(await machine.ok("chat", "-s", "main", "who am I?"), /You are Sam/);
    assert.ok(!(await sections()).includes("bootstrap"));
    assert.match(await machine.ok("prompt", "show", "--section", "identity"), /Name: Ada/);
  });
  it("another agent has a first meeting, files and a conversation of its own", async () => {
    await machine.ok("agent", "new", "work", "--description", "for work", "--prompt", "Be brief.");
    assert.match(await machine.ok("chat", "--agent", "work", "hello"), /Who am I/);
    assert.match(await machine.ok("prompt", "show", "-s", "agent:work:main", "--section", "base"), /Be brief\./);
    assert.match(await machine.ok("agent", "list"), /^main +default[\s\S]*^work .*for work \(not met yet\)/m);
    assert.match(await machine.ok("chat", "who are you?"), /I am Ada/, "the first one is who it was");
    const ghost = await machine.gsv(["chat", "--agent", "wrok", "hello"]);
    assert.equal(ghost.code, 1);
    assert.match(ghost.stderr, /Did you mean work\?/);
    assert.equal(existsSync(file("", "wrok")), false);
  });
  it("an imported agent knows who it is; a second import changes nothing", async () => {
    const from = join(machine.folder, "workspace-old");
    for (const [path, text] of [
      ["SOUL.md", "# Soul\n\nKind.\n"],
      ["IDENTITY.md", "# Identity\n\n- Name: Hal\n"],
      ["memory/2026-01-01.md", "- something\n"],
      ["skills/tea/SKILL.md", "---\nname: tea\ndescription: How tea is made here.\n---\nBoil water.\n"],
    ] as const) {
      mkdirSync(dirname(join(from, path)), { recursive: true });
      writeFileSync(join(from, path), text);
    }
    const plan = await machine.ok("agent", "import", from, "--dry-run");
    assert.match(plan, /SOUL\.md +\d.*new[\s\S]*skills\/tea\//);
    assert.equal(existsSync(file("", "old")), false);
    await machine.ok("agent", "import", from);
    assert.equal(existsSync(file("BOOTSTRAP.md", "old")), false);
    assert.equal(readFileSync(file("memory/2026-01-01.md", "old"), "utf8"), "- something\n");
    assert.match(await machine.ok("chat", "--agent", "old", "who are you?"), /I am Hal/);
    const again = await machine.gsv(["agent", "import", from]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /4 unchanged/);
    writeFileSync(join(from, "SOUL.md"), "# Soul\n\nKinder.\n");
    const differs = await machine.gsv(["agent", "import", from]);
    assert.equal(differs.code, 2, differs.stderr);
    await machine.ok("agent", "import", from, "--force");
    assert.match(readFileSync(file("SOUL.md", "old"), "utf8"), /Kinder/);
  });
});
