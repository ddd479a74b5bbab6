/** Earlier contents of files and conversations, with the built program: versions, edits on the disk, transcripts, damage. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { DEFAULT_SESSION, Machine } from "./support.ts";

describe("[S10] [P3.2] earlier contents are kept", () => {
  const machine = new Machine();
  const file = (path: string): string => join(machine.home, "workspace", "agents", "main", path);
  before(async () => {
    await machine.up();
    await machine.ok("chat", "hello");
  });
  after(() => machine.end());

  it("a person's edit on the disk and the content that it replaced can be restored", async () => {
    writeFileSync(file("notes.md"), "by hand\n");
    const put = join(machine.folder, "put.txt");
    writeFileSync(put, "by the gateway\n");
    await machine.ok("workspace", "put", "notes.md", put);
    assert.match(await machine.ok("workspace", "diff", "notes.md"), /^--- [\s\S]*\n-by hand\n\+by the gateway\n/);
    await machine.ok("workspace", "restore", "notes.md");
    assert.equal(readFileSync(file("notes.md"), "utf8"), "by hand\n");
    await machine.ok("workspace", "rm", "notes.md");
    assert.equal(existsSync(file("notes.md")), false);
    assert.match(await machine.ok("workspace", "log", "notes.md"), /^1 [\s\S]*^2 [\s\S]*^3 /m);
    await machine.ok("workspace", "restore", "notes.md", "2");
    assert.equal(readFileSync(file("notes.md"), "utf8"), "by the gateway\n");
  });
  it("[WF3] a file that is too large to keep is deleted with --permanently", async () => {
    writeFileSync(file("film.bin"), new Uint8Array(26 * 1024 * 1024));
    const refused = await machine.gsv(["workspace", "rm", "film.bin"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /gsv workspace rm --permanently PATH/);
    assert.equal(existsSync(file("film.bin")), true);
    await machine.ok("workspace", "rm", "--permanently", "film.bin");
    assert.equal(existsSync(file("film.bin")), false);
  });
  it("a conversation that was reset is shown and exported, and cannot be forged through the workspace", async () => {
    await machine.ok("chat", "say the first conversation");
    await machine.ok("session", "reset", DEFAULT_SESSION);
    await machine.ok("chat", "say the second one");
    const { archives } = JSON.parse(await machine.ok("session", "history", DEFAULT_SESSION, "--json")) as {
      archives: { path: string; sessionId: string }[];
    };
    const archive = archives[0]?.path ?? "";
    assert.match(
      await machine.ok("session", "show", archive),
      /You [\s\S]*say the first conversation[\s\S]*Agent [\s\S]*the first conversation/,
    );
    assert.match(await machine.ok("session", "show", DEFAULT_SESSION), /the second one/);
    const out = join(machine.folder, "out.md");
    await machine.ok("session", "export", archives[0]?.sessionId ?? "", "-o", out);
    assert.match(readFileSync(out, "utf8"), /## You[\s\S]*the first conversation/);
    assert.equal(statSync(out).mode & 0o777, 0o600);
    const forged = await machine.gsv(["workspace", "put", archive, out]);
    assert.deepEqual([forged.code, /workspace\.protected/.test(forged.stderr)], [3, true], forged.stderr);
    truncateSync(file(archive), statSync(file(archive)).size - 10);
    const damaged = await machine.gsv(["session", "show", archive]);
    assert.equal(damaged.code, 1);
    assert.match(damaged.stderr, /archive\.damaged/);
    assert.match(await machine.ok("session", "show", DEFAULT_SESSION), /the second one/, "the gateway goes on");
    rmSync(file(archive));
    assert.deepEqual(readdirSync(file("sessions")), []);
    assert.match((await machine.gsv(["session", "show", archive])).stderr, /path\.not_found/);
  });
});
