/** `./scripts/sim` driven by scripts: a phone is linked, people write, everything restarts, and the conversations continue. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Machine, ROOT, until } from "./support.ts";

const MAIN = join(ROOT, "channels", "fakes", "sim", "main.ts");
const folder = mkdtempSync(join(tmpdir(), "gsv sim e2e "));
after(() => rmSync(folder, { recursive: true, force: true }));

interface Played {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>;
  readonly output: () => string;
}
function play(home: string, script: readonly string[], more: readonly string[] = []): Played {
  const env = { ...new Machine().env(), TMPDIR: folder };
  const child = spawn(process.execPath, [MAIN, "--home", home, ...more], { env, stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  child.stdin.on("error", () => undefined);
  child.stdin.end(script.map((line) => `${line}\n`).join(""));
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.on("close", (code) => resolve({ code, output }));
  });
  return { child, ended, output: () => output };
}
const runs = (home: string): boolean => existsSync(join(home, "state", "gateway", "state.json"));

describe("the simulator", () => {
  it("links a phone, chats on WhatsApp and Discord, and continues after a restart and a kill", async () => {
    const home = join(folder, "whole");
    const { code, output } = await play(home, [
      "# a comment",
      "wa pair",
      "wa ann say the first word",
      "wait WhatsApp Ann: the first word",
      "dc alice say on discord",
      "wait Discord Alice: on discord",
      "restart",
      "wa ann say the second word",
      "wait WhatsApp Ann: the second word",
      "wa group ann say in the group @gsv",
      "wait in the group",
      "kill",
      "dc guild alice say in general @gsv",
      "wait Discord #general: in general",
      "dc slash status",
      "wait Discord slash command",
      "wa bob say let me in",
      "wait WhatsApp Bob: This is",
      "pairs",
      "status",
      "quit",
    ]).ended;
    assert.equal(code, 0, output);
    assert.match(output, /whatsapp: connected[^\n]*\ndiscord: connected/);
    assert.match(output, /whatsapp: Bob 15550003333@s\.whatsapp\.net, code \w+/);
    // The stranger was never answered by the agent.
    assert.ok(!/WhatsApp Bob ◂ let me in/.test(output), output);
    assert.ok(!runs(home));
    const log = readFileSync(join(home, "state", "gateway", "gateway.log"), "utf8");
    for (const words of ["the first word", "on discord", "let me in"]) assert.ok(!log.includes(words), `the gateway logged "${words}"`);
  });

  it("a command that fails ends the script and all processes with status 1; the next start of that home continues", async () => {
    const home = join(folder, "again");
    const script = join(folder, "bad.txt");
    writeFileSync(script, 'gsv chat "say kept"\nwa ann hello\n');
    const failed = await play(home, [], ["--script", script]).ended;
    assert.equal(failed.code, 1, failed.output);
    assert.match(failed.output, /no device is linked/);
    assert.ok(!runs(home));
    const next = await play(home, ["gsv session preview", "quit"]).ended;
    assert.equal(next.code, 0, next.output);
    assert.match(next.output, /say kept/);
  });

  it("a signal ends everything that was started; a folder with other files is refused", async () => {
    const home = join(folder, "signal");
    const played = play(home, ["wait what never comes"]);
    await until("it is up", () => played.output().includes("are up after"));
    assert.ok(runs(home));
    played.child.kill("SIGINT");
    const { code, output } = await played.ended;
    assert.equal(code, 130, output);
    assert.ok(!runs(home));
    writeFileSync(join(folder, "mine.txt"), "mine");
    const refused = await play(folder, []).ended;
    assert.equal(refused.code, 2, refused.output);
    assert.match(refused.output, /is no home of a simulator/);
    assert.ok(readdirSync(folder).includes("mine.txt"));
  });
});
