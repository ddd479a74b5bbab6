/** Skills with the built program: one with large binary files is installed and imported whole, and one put there by hand waits for approval. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Machine } from "./support.ts";

describe("skills", () => {
  const machine = new Machine();
  const at = (path: string): string => join(machine.home, "workspace", "agents", path);
  /** Bytes that are not text. */
  const font = Buffer.alloc(3_000_000, Buffer.from([0, 1, 2, 0xff, 0xfe]));
  const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
  const head = (name: string, more = ""): string => `---\nname: ${name}\ndescription: Draws ${name}.\n${more}---\n# ${name}\n`;
  function folder(root: string): string {
    const files: readonly (readonly [string, string | Uint8Array])[] = [
      ["SKILL.md", head("canvas")],
      ["fonts/A.ttf", font],
      ...Array.from({ length: 100 }, (_, index) => [`ref/${index}.md`, `# ${index}\n`] as const),
    ];
    for (const [path, content] of files) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), content);
    }
    return root;
  }
  before(async () => {
    await machine.up();
    // The prompt of an agent that has not met its owner has no skills.
    await machine.ok("prompt", "show");
    await machine.ok("workspace", "rm", "BOOTSTRAP.md");
  });
  after(() => machine.end());

  it("[F52] a skill of 102 files with a font of 3 MB is installed, byte by byte, and can be replaced", async () => {
    const from = folder(join(machine.folder, "canvas"));
    const done = await machine.gsv(["skills", "install", from]);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stderr, /skill canvas is installed and approved; state: ready/);
    assert.equal(hash(readFileSync(at("main/skills/canvas/fonts/A.ttf"))), hash(font));
    assert.match(await machine.ok("skills", "show", "canvas"), /fonts\/A\.ttf/);
    const again = await machine.gsv(["skills", "install", from]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /--replace/);
    writeFileSync(join(from, "ref/0.md"), "# changed\n");
    await machine.ok("skills", "install", from, "--replace");
    assert.equal(readFileSync(at("main/skills/canvas/ref/0.md"), "utf8"), "# changed\n");
  });
  it("[F52] an import takes it too, and a second import sends nothing", async () => {
    const from = join(machine.folder, "workspace-art");
    mkdirSync(from, { recursive: true });
    writeFileSync(join(from, "SOUL.md"), "# Soul\n\nKind.\n");
    folder(join(from, "skills/canvas"));
    await machine.ok("agent", "import", from);
    assert.equal(hash(readFileSync(at("art/skills/canvas/fonts/A.ttf"))), hash(font));
    const again = await machine.gsv(["agent", "import", from]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stderr, /2 unchanged/);
  });
  it("[F52] a skill whose program was not looked for is not called ready", async () => {
    const from = join(machine.folder, "gh");
    mkdirSync(from);
    writeFileSync(join(from, "SKILL.md"), head("gh", 'metadata: {"openclaw": {"requires": {"bins": ["gh"]}}}\n'));
    const done = await machine.gsv(["skills", "install", from]);
    assert.match(done.stderr, /state: not checked[\s\S]*Ready to use\. Needs `gh`; GSV does not check whether it is installed/);
    assert.match(await machine.ok("skills", "list"), /^gh +not checked/m);
    assert.match(await machine.ok("prompt", "show", "--section", "skills"), /<programs>gh \(not checked\)<\/programs>/);
  });
  it("[F12] [F49] a skill that was put there by hand waits for approval; the agent's own skills are listed first", async () => {
    mkdirSync(at("main/skills/zebra"), { recursive: true });
    writeFileSync(at("main/skills/zebra/SKILL.md"), head("zebra"));
    // `skills status` reads the files now; a list may be some seconds old.
    assert.match(await machine.ok("skills", "status"), /^zebra +needs approval.*gsv skills approve zebra/m);
    assert.match((await machine.gsv(["skills", "list"])).stderr, /1 not used until you approve the files/);
    const prompt = (): Promise<string> => machine.ok("prompt", "show", "--section", "skills");
    assert.doesNotMatch(await prompt(), /zebra/);
    await machine.ok("skills", "approve", "zebra", "--yes");
    assert.match(await machine.ok("skills", "list"), /^zebra +ready/m);
    const shown = await prompt();
    assert.ok(shown.indexOf("<name>zebra<") > 0 && shown.indexOf("<name>zebra<") < shown.indexOf("<name>daily-review<"), shown);
  });
});
