/** `gsv cp` with files of the machine on which it runs, and with folders: the built program is an end itself, and is killed in the middle. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { BIN, type Json, Machine, type NodeProcess, until } from "./support.ts";

const MIB = 1024 * 1024;
const SIZE = 64 * MIB;
const sha256 = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex");

describe("gsv cp with files of this machine", () => {
  const machine = new Machine();
  let desk: NodeProcess;
  let here: string;
  let content: string;
  before(async () => {
    await machine.up();
    desk = await machine.node("desk");
    here = join(machine.folder, "here");
    mkdirSync(here);
    writeFileSync(join(here, "big.bin"), randomBytes(SIZE));
    content = sha256(join(here, "big.bin"));
  });
  after(() => machine.end());
  const at = (...names: string[]): string => join(here, ...names);
  const stored = (path: string): string => join(machine.home, "workspace", "agents", "main", path);
  const begin = (...args: string[]) => spawn(BIN, ["cp", ...args], { env: machine.env(), cwd: here, stdio: "ignore" });
  const partsOf = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
  const storedParts = (folder: string): number =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => /\/\d{6}$/.test(name)).length;
  const left = (): string[] => readdirSync(here).filter((name) => name.startsWith(".gsv-"));

  it("[TF13] [P18] a file goes to the workspace, back and to another machine, byte for byte", async () => {
    const ran = await machine.gsv(["cp", at("big.bin"), "gsv:in/"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /big\.bin copied to gsv:in\/big\.bin, 64 MiB in /);
    assert.equal(sha256(stored("in/big.bin")), content);
    const told = JSON.parse(await machine.ok("cp", "gsv:in/big.bin", at("back.bin"), "--json")) as Json;
    assert.deepEqual([told["state"], told["sha256"]], ["done", content]);
    assert.equal(sha256(at("back.bin")), content);
    await machine.ok("cp", at("big.bin"), "desk:got.bin");
    assert.equal(sha256(desk.file("got.bin")), content);
    await machine.ok("cp", "desk:got.bin", at("again.bin"));
    assert.equal(sha256(at("again.bin")), content);
    assert.deepEqual(left(), []);
  });

  it("[TF13] what can't be copied is said in a sentence, and nothing is left", async () => {
    mkdirSync(at("folder"));
    writeFileSync(at("other.bin"), "other");
    for (const [source, destination, code, words] of [
      [at("none"), "gsv:none", 1, /can't be read/],
      [at("folder"), "gsv:folder", 2, /is a folder.*-r/s],
      [at("big.bin"), at("other.bin"), 2, /Both ends are on this machine/],
      [at("big.bin"), "gsv:in/big.bin", 1, /exists already.*--force/s],
      [at("big.bin"), "gsv:SOUL.md", 3, /defines the agent/],
      [at("big.bin"), "gsv:../out.bin", 1, /path/i],
      ["gsv:in/none", at("none"), 1, /There is no file/],
      ["gsv:in/big.bin", at("other.bin"), 1, /exists already/],
      ["gsv:in/big.bin", "/proc/none/x", 1, /"\/proc\/none/],
      ["/proc/version", "gsv:version", 1, /no size of its own/],
      ["-", "gsv:in/stdin", 2, /stdin or write stdout.*\.\/-/s],
      ["gsv:in/big.bin", "-", 2, /stdin or write stdout/],
    ] as const) {
      const ran = await machine.gsv(["cp", source, destination]);
      assert.match(ran.stderr, words, `${source} ${destination}`);
      assert.equal(ran.code, code, ran.stderr);
    }
    assert.deepEqual(left(), []);
  });

  it("[TF13] [TF4] [K29] a program that is killed while it sends goes on with the same command", async () => {
    const sending = begin(at("big.bin"), "gsv:killed/sent.bin");
    const parts = join(machine.home, "workspace", "transfers");
    const folder = await until("some parts are stored", () => partsOf(parts).find((id) => storedParts(join(parts, id)) >= 2), undefined, 2);
    sending.kill("SIGKILL");
    await once(sending, "close");
    assert(!existsSync(stored("killed/sent.bin")));
    assert(partsOf(parts).includes(folder));
    const ended = JSON.parse(await machine.ok("cp", at("big.bin"), "gsv:killed/sent.bin", "--json")) as { id: string };
    assert.equal(sha256(stored("killed/sent.bin")), content);
    // It was the same transfer, and nothing stays of it.
    assert.equal(ended.id, folder);
    await until("its parts are removed", () => !partsOf(parts).includes(folder));
  });

  it("[TF13] [TF4] [K29] a program that is killed while it receives goes on where its temporary file is", async () => {
    const receiving = begin("gsv:in/big.bin", at("received.bin"));
    const part = await until("some of it has arrived", () => left().find((name) => statSync(at(name)).size >= 4 * MIB), undefined, 2);
    receiving.kill("SIGKILL");
    await once(receiving, "close");
    assert(statSync(at(part)).size >= 4 * MIB && !existsSync(at("received.bin")));
    await machine.ok("cp", "gsv:in/big.bin", at("received.bin"));
    assert.equal(sha256(at("received.bin")), content);
    assert.deepEqual(left(), []);
  });

  it("[TF4] [TF8] the same command beside one that its user has stopped (Ctrl-Z) ends with a sentence, and a third run copies", async () => {
    const first = begin("gsv:in/big.bin", at("twice.bin"));
    await until("some of it has arrived", () => left().find((name) => statSync(at(name)).size >= 4 * MIB), undefined, 2);
    first.kill("SIGSTOP");
    const second = await machine.gsv(["cp", "gsv:in/big.bin", at("twice.bin")]);
    assert.equal(second.code, 1, second.stderr);
    assert.match(second.stderr, /another copy writes .*twice\.bin/);
    first.kill("SIGCONT");
    await once(first, "close");
    await machine.ok("cp", "gsv:in/big.bin", at("twice.bin"));
    assert.equal(sha256(at("twice.bin")), content);
    assert.deepEqual(left(), []);
  });

  it("[TF13] a gateway that does not answer keeps no one who presses Ctrl-C", async () => {
    const sending = begin("desk:got.bin", at("late.bin"));
    const ended = once(sending, "close") as Promise<[number]>;
    await until("it has begun", () => left().length > 0, undefined, 2);
    const pid = machine.state().workerdPid ?? 0;
    process.kill(pid, "SIGSTOP");
    try {
      const from = performance.now();
      sending.kill("SIGINT");
      assert.equal((await ended)[0], 130);
      assert.ok(performance.now() - from < 20_000, "it waits three seconds, and not for the gateway's answer, which takes 30");
    } finally {
      process.kill(pid, "SIGCONT");
    }
    assert.deepEqual(left(), []);
  });

  it("[TF13] [TF5] [W11] a gateway that is killed in the middle is waited for", async () => {
    const sending = begin(at("big.bin"), "gsv:killed/gateway.bin");
    const ended = once(sending, "close") as Promise<[number]>;
    const parts = join(machine.home, "workspace", "transfers");
    await until("some parts are stored", () => partsOf(parts).some((id) => storedParts(join(parts, id)) >= 2), undefined, 2);
    await machine.killWorkerd();
    assert.equal((await ended)[0], 0);
    assert.equal(sha256(stored("killed/gateway.bin")), content);
  });
});

describe("gsv cp -r", () => {
  const machine = new Machine();
  let desk: NodeProcess;
  let tree: string;
  before(async () => {
    await machine.up();
    desk = await machine.node("desk");
    tree = join(machine.folder, "tree");
    mkdirSync(join(tree, "a/empty"), { recursive: true });
    for (const [name, text] of [
      ["a/one.txt", "one"],
      ["a/b c.txt", "two"],
      ["none", ""],
      ["Ünï.txt", "three"],
    ] as const)
      writeFileSync(join(tree, name), text);
    symlinkSync("/etc/hostname", join(tree, "link"));
  });
  after(() => machine.end());
  const stored = (path: string): string => join(machine.home, "workspace", "agents", "main", path);

  it("[TF14] [X14] copies every file, follows no link, says what it left out, and continues with the same command", async () => {
    const ran = await machine.gsv(["cp", "-r", tree, "gsv:tree"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /4 files, 11 B in/);
    assert.match(ran.stderr, /Not copied, because only plain files and folders are: link\./);
    for (const [name, text] of [
      ["a/one.txt", "one"],
      ["a/b c.txt", "two"],
      ["none", ""],
      ["Ünï.txt", "three"],
    ] as const)
      assert.equal(readFileSync(stored(`tree/${name}`), "utf8"), text);
    assert.equal(existsSync(stored("tree/link")), false);
    writeFileSync(join(tree, "new.txt"), "new");
    const again = await machine.gsv(["cp", "-r", tree, "gsv:tree", "--json"]);
    assert.equal(again.code, 0);
    const report = JSON.parse(again.stdout) as { copied: number; before: number; left: unknown[]; skipped: string[] };
    assert.deepEqual([report.copied, report.before, report.left, report.skipped], [1, 4, [], ["link"]]);
  });

  it("[TF14] a changed file is not replaced without --force, and is with it", async () => {
    writeFileSync(join(tree, "a/one.txt"), "changed");
    const ran = await machine.gsv(["cp", "-r", tree, "gsv:tree"]);
    assert.match(ran.stderr, /a\/one\.txt: .*exists already/);
    assert.equal(readFileSync(stored("tree/a/one.txt"), "utf8"), "one");
    await machine.gsv(["cp", "-r", tree, "gsv:tree", "--force"]);
    assert.equal(readFileSync(stored("tree/a/one.txt"), "utf8"), "changed");
  });

  it("[TF14] a file in the way and one that the workspace protects end no other copy", async () => {
    const source = join(machine.folder, "way");
    mkdirSync(join(source, "b"), { recursive: true });
    for (const name of ["b/y", "c", "z"]) writeFileSync(join(source, name), "1");
    await machine.ok("cp", join(source, "c"), "gsv:way/b");
    const ran = await machine.gsv(["cp", "-r", source, "gsv:way", "--json"]);
    const report = JSON.parse(ran.stdout) as { copied: number; left: { path: string; problem: string }[] };
    assert.deepEqual([ran.code, report.copied, report.left.map(({ path }) => path)], [1, 2, ["b/y"]], ran.stderr);
    assert.match(report.left[0]?.problem ?? "", /`way\/b` is a file of the workspace/);
    writeFileSync(join(source, "SOUL.md"), "1");
    rmSync(join(source, "b"), { recursive: true });
    const root = await machine.gsv(["cp", "-r", source, "gsv:."]);
    assert.deepEqual([root.code, existsSync(stored("z"))], [1, true], root.stderr);
    assert.match(root.stderr, /SOUL\.md: .*transfers write only other files/);
    // A link out of the destination on this machine.
    const [back, outside] = [join(machine.folder, "wayback"), join(machine.folder, "elsewhere")];
    for (const folder of [back, outside]) mkdirSync(folder);
    symlinkSync(outside, join(back, "a"));
    const linked = await machine.gsv(["cp", "-r", "gsv:tree", back]);
    assert.deepEqual([linked.code, existsSync(join(back, "none")), readdirSync(outside)], [1, true, []], linked.stderr);
    assert.match(linked.stderr, /a\/one\.txt: .*wayback\/a is a link that leads to no folder inside of /);
  });

  it("[TF14] a folder of the workspace goes to this machine and to another one", async () => {
    const back = join(machine.folder, "back");
    await machine.ok("cp", "-r", "gsv:tree", back);
    assert.equal(readFileSync(join(back, "a/b c.txt"), "utf8"), "two");
    // Into the same folder again, where one file is another one by now.
    writeFileSync(join(back, "none"), "mine");
    const again = await machine.gsv(["cp", "-r", "gsv:tree", back]);
    assert.equal(again.code, 1, again.stderr);
    assert.match(again.stderr, /none: .*exists already/);
    assert.deepEqual([existsSync(join(back, "tree")), readFileSync(join(back, "none"), "utf8")], [false, "mine"]);
    await machine.ok("cp", "-r", "gsv:tree", `${back}/`);
    assert.equal(readFileSync(join(back, "tree/a/b c.txt"), "utf8"), "two");
    // A link in it leads nowhere else.
    const [linked, outside] = [join(machine.folder, "linked"), join(machine.folder, "outside")];
    for (const folder of [linked, outside]) mkdirSync(folder);
    symlinkSync(outside, join(linked, "a"));
    const out = await machine.gsv(["cp", "-r", "gsv:tree", linked]);
    assert.equal(out.code, 1, out.stderr);
    assert.deepEqual(readdirSync(outside), []);
    await machine.ok("cp", "-r", "gsv:tree", "desk:tree");
    assert.equal(readFileSync(desk.file("tree/a/one.txt"), "utf8"), "changed");
    for (const [source, text] of [
      ["desk:tree", /is on this machine.*Write where the folder is on this machine/s],
      ["other:tree", /does not list.*on that machine/s],
    ] as const) {
      const refused = await machine.gsv(["cp", "-r", source, "gsv:other"]);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, text);
    }
  });
});
