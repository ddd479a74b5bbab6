/** Several `scripts/start` at a time share gateway and node. The real functions of starts.sh, with a stand-in for the gsv program. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { ROOT } from "./root.ts";

let home = "";
let running: ChildProcess[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "gsv-starts-"));
  running = [];
  // A node is online while its process runs. As the real one, it refuses to run beside another of its name, has its pid in the lock of its
  // ledger, ends in order at the first SIGTERM, and at once at a second one.
  const gsv = `#!${process.execPath}
const fs = require("node:fs");
const lock = "${home}/node/lap/ledger/lock";
const isAlive = (pid) => { try { process.kill(pid, 0); return true; } catch { return false; } };
if (process.argv[2] === "down") fs.appendFileSync("${home}/downs", "down\\n");
if (process.argv[2] === "node") {
  if (fs.existsSync(lock) && isAlive(Number(fs.readFileSync(lock, "utf8")))) { fs.appendFileSync("${home}/refused", "x"); process.exit(1); }
  fs.mkdirSync("${home}/node/lap/ledger", { recursive: true });
  fs.writeFileSync(lock, String(process.pid));
  let terms = 0;
  process.on("SIGTERM", () => {
    fs.appendFileSync("${home}/terms", process.pid + "\\n");
    if (++terms > 1) process.exit(130);
    setTimeout(() => process.exit(0), 100);
  });
  process.on("SIGUSR1", () => process.exit(3));
  setInterval(() => undefined, 1000);
  fs.writeFileSync("${home}/online", String(process.pid));
  fs.appendFileSync("${home}/nodes", process.pid + "\\n");
}
`;
  writeFileSync(join(home, "gsv"), gsv, { mode: 0o700 });
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  const nodes = existsSync(join(home, "nodes")) ? readFileSync(join(home, "nodes"), "utf8").trim().split("\n") : [];
  for (const pid of nodes.map(Number)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  const terms = existsSync(join(home, "terms")) ? readFileSync(join(home, "terms"), "utf8").trim().split("\n") : [];
  rmSync(home, { recursive: true, force: true });
  assert.equal(new Set(terms).size, terms.length, "a second SIGTERM ends a node in the middle of its calls");
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
const nodePids = (): number[] => readFileSync(join(home, "nodes"), "utf8").trim().split("\n").map(Number);
const log = (): string => readFileSync(join(home, "node.log"), "utf8");
const keeperPid = (): number => Number(readFileSync(join(home, "starts/node-lap"), "utf8").split("\n")[0]);
const files = (): string[] => readdirSync(join(home, "starts"));

interface Start {
  readonly child: ChildProcess;
  /** Its lines so far. */
  said(): string;
  /** Ends its chat. Answers when the whole start has ended. */
  end(): Promise<void>;
}
/** Joins and opens a "chat", which lasts until its stdin ends. Answers when the chat is open. */
async function start(options: { readonly once?: boolean; readonly startsGateway?: boolean; readonly waits?: number } = {}): Promise<Start> {
  const script = `set -euo pipefail
home=${home}; id=lap; once=${options.once ?? false}; GSV=${home}/gsv; scratch=${home}
say() { printf '%s\\n' "$*"; }
die() { say "$*"; exit 1; }
is_online() { [ -f "${home}/online" ] && kill -0 "$(cat "${home}/online")" 2>/dev/null; }
is_working() { [ -f "${home}/working" ]; }
source ${ROOT}/scripts/lib/starts.sh
connect_tenths=${options.waits ?? 150}
finish() { trap - EXIT; leave_starts; }
trap finish EXIT
join_starts
gateway_runs ${options.startsGateway ?? false}
ensure_machine ${home}/work
say "chat is open"
read -r _ || true
await_runs`;
  const child = spawn("bash", ["-c", script], { stdio: ["pipe", "pipe", "inherit"] });
  running.push(child);
  let text = "";
  child.stdout.setEncoding("utf8");
  for await (const [piece] of onData(child)) {
    text += piece;
    if (text.includes("chat is open")) break;
  }
  child.stdout.on("data", (piece: string) => (text += piece));
  const end = async (): Promise<void> => {
    const closed = once(child, "close");
    child.stdin.end();
    await closed;
  };
  return { child, said: () => text, end };
}
async function* onData(child: ChildProcess): AsyncGenerator<readonly [string]> {
  const { stdout } = child;
  assert.ok(stdout);
  while (true) {
    const first: readonly unknown[] = await Promise.race([once(stdout, "data"), once(child, "close").then(() => [])]);
    if (typeof first[0] !== "string") assert.fail("the start ended before its chat");
    yield [first[0]];
  }
}

async function until(check: () => boolean): Promise<void> {
  const end = performance.now() + 10_000;
  while (!check()) {
    assert.ok(performance.now() < end, "waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a node stays as long as any start uses it, and the last one stops it", async () => {
  const first = await start();
  const second = await start();
  assert.match(second.said(), /already connected/);
  const [node] = nodePids();
  assert.ok(node !== undefined && isAlive(node));
  await first.end();
  assert.match(first.said(), /keeps running, because another start uses it/);
  assert.ok(isAlive(node), "the second start still uses it");
  await second.end();
  assert.ok(!isAlive(node), "the last start stops it");
  assert.doesNotMatch(first.said(), /is stopped/);
  assert.match(second.said(), /The node lap is stopped, .* start it again, .*node --id lap --workspace .*work/);
  assert.deepEqual([nodePids(), files()], [[node], []]);
});
test("one answer waits with what it started for another run that is under way", async () => {
  writeFileSync(join(home, "working"), "");
  const only = await start({ once: true, startsGateway: true });
  const [node] = nodePids();
  const ended = only.end();
  await until(() => only.said().includes("Another run is under way"));
  assert.ok(node !== undefined && isAlive(node));
  assert.ok(!existsSync(join(home, "downs")));
  rmSync(join(home, "working"));
  await ended;
  assert.ok(!isAlive(node));
  assert.equal(readFileSync(join(home, "downs"), "utf8"), "down\n");
});
test("a run that is under way when the chat ends keeps the node until it has ended, or until Ctrl-C", async () => {
  for (const interrupts of [false, true]) {
    rmSync(join(home, "nodes"), { force: true });
    writeFileSync(join(home, "working"), "");
    const only = await start();
    const [node] = nodePids();
    const ended = only.end();
    await until(() => only.said().includes("A run is under way and may use this machine"));
    assert.ok(node !== undefined && isAlive(node));
    if (interrupts) only.child.kill("SIGINT");
    else rmSync(join(home, "working"));
    await ended;
    assert.ok(!isAlive(node));
    assert.equal(only.said().includes("The node stops while a run is under way"), interrupts, only.said());
  }
});
test("another start that uses the node is no reason to wait for a run", async () => {
  writeFileSync(join(home, "working"), "");
  const first = await start();
  const second = await start();
  await first.end();
  assert.doesNotMatch(first.said(), /A run is under way/);
  rmSync(join(home, "working"));
  await second.end();
});
test("a start that was killed is no longer one that uses the node", async () => {
  const first = await start();
  const second = await start();
  second.child.kill("SIGKILL");
  await once(second.child, "close");
  await first.end();
  assert.ok(!isAlive(nodePids()[0] ?? 0));
  assert.deepEqual(files(), []);
});
test("the node of a start that was killed goes on, and the next start that ends stops it", async () => {
  const first = await start();
  first.child.kill("SIGKILL");
  await once(first.child, "close");
  const second = await start();
  assert.match(second.said(), /already connected/);
  await second.end();
  assert.ok(!isAlive(nodePids()[0] ?? 0));
});
test("a start waits for one that is stopping the node, and starts its own", async () => {
  const first = await start();
  // As if the first had begun to stop its node: what `take` writes. Its process still runs, so the second waits.
  const taken = `node-lap.ends-${first.child.pid}`;
  const record = readFileSync(join(home, "starts/node-lap"), "utf8");
  const self = readFileSync(join(home, `starts/start-${first.child.pid}`), "utf8").split("\n")[1];
  rmSync(join(home, "starts/node-lap"));
  writeFileSync(join(home, "starts", `${taken}.by`), `${first.child.pid}\n${self}\n`);
  writeFileSync(join(home, "starts", taken), record);
  const second = start();
  await first.end();
  for (const name of [taken, `${taken}.by`]) rmSync(join(home, "starts", name), { force: true });
  assert.match((await second).said(), /working in/);
  const [old, fresh] = nodePids();
  assert.ok(old !== undefined && fresh !== undefined && !isAlive(old) && isAlive(fresh));
  await (await second).end();
  assert.ok(!isAlive(fresh));
});
test("a node that no start began is used and never stopped", async () => {
  writeFileSync(join(home, "online"), String(process.pid));
  const only = await start();
  assert.match(only.said(), /already connected/);
  await only.end();
  assert.ok(!existsSync(join(home, "nodes")));
});
test("a gateway that was started for one answer ends with the last start, unless a chat has used it", async () => {
  const downs = (): boolean => existsSync(join(home, "downs"));
  const answer = await start({ once: true, startsGateway: true });
  const second = await start({ once: true });
  await answer.end();
  assert.ok(!downs(), "another start still uses the gateway");
  await second.end();
  assert.ok(downs());
  rmSync(join(home, "downs"));
  const third = await start({ once: true, startsGateway: true });
  const chat = await start();
  await third.end();
  await chat.end();
  assert.ok(!downs(), "a chat leaves the gateway running");
});
test("a gateway that one answer has started again under an open chat goes on when the chat has ended", async () => {
  const downs = (): boolean => existsSync(join(home, "downs"));
  const chat = await start({ startsGateway: true });
  // The gateway was killed meanwhile.
  const one = await start({ once: true, startsGateway: true });
  await one.end();
  assert.equal(downs(), false);
  await chat.end();
  const other = await start({ once: true });
  await other.end();
  assert.equal(downs(), false);
});

test("a start whose state folder was removed still stops its own node", async () => {
  const only = await start();
  rmSync(join(home, "starts"), { recursive: true });
  await only.end();
  assert.ok(!isAlive(nodePids()[0] ?? 0));
});

test("a node that dies is started again, which is said, and the last start stops the new one", async () => {
  const first = await start();
  const second = await start();
  await first.end();
  for (const times of [2, 3]) {
    process.kill(nodePids()[times - 2] ?? 0, "SIGKILL");
    await until(() => nodePids().length === times && isAlive(nodePids()[times - 1] ?? 0));
  }
  await until(() => existsSync(join(home, "online")));
  await second.end();
  assert.ok(!nodePids().some(isAlive));
  assert.equal(nodePids().length, 3);
  const said = readFileSync(join(home, "node.log"), "utf8");
  assert.match(said, /The node lap ended \(exit status 137\)\. It is started again in 1 s\./);
  assert.match(said, /It is started again in 2 s\./, "the pauses grow");
  assert.deepEqual(files(), []);
});
test("a start that comes while the node is about to start again waits for it", async () => {
  const first = await start();
  const keeper = keeperPid();
  process.kill(nodePids()[0] ?? 0, "SIGKILL");
  await until(() => log().includes("It is started again in 1 s."));
  const second = await start();
  assert.match(second.said(), /already connected/);
  assert.equal(keeperPid(), keeper);
  await first.end();
  assert.match(first.said(), /keeps running, because another start uses it/);
  await second.end();
  assert.deepEqual([nodePids().length, nodePids().some(isAlive), isAlive(keeper), files()], [2, false, false, []]);
});
test("a start for which the node does not come again in time takes over, and no one else starts it", async () => {
  const first = await start();
  const keeper = keeperPid();
  process.kill(nodePids()[0] ?? 0, "SIGKILL");
  await until(() => log().includes("It is started again in 1 s."));
  const second = await start({ waits: 4 });
  assert.match(second.said(), /working in/);
  assert.ok(keeperPid() !== keeper && !isAlive(keeper));
  await first.end();
  const taker = keeperPid();
  await second.end();
  assert.deepEqual([nodePids().length, nodePids().some(isAlive), isAlive(taker), files()], [2, false, false, []]);
});
test("a process that no longer is the recorded one does not start the node again", async () => {
  const only = await start();
  const keeper = keeperPid();
  process.kill(nodePids()[0] ?? 0, "SIGKILL");
  await until(() => log().includes("It is started again in 1 s."));
  writeFileSync(join(home, "starts/node-lap"), `${process.pid}\nanother\n`);
  await until(() => !isAlive(keeper));
  assert.equal(nodePids().length, 1);
  await only.end();
});
for (const isConnected of [true, false])
  test(`a node that another process runs, ${isConnected ? "connected here" : "elsewhere"}, is not started again`, async () => {
    const only = await start();
    const keeper = keeperPid();
    process.kill(nodePids()[0] ?? 0, "SIGKILL");
    await until(() => log().includes("It is started again in 1 s."));
    const other = spawn(join(home, "gsv"), ["node", "--id", "lap"], { stdio: "ignore" });
    running.push(other);
    await until(() => nodePids().length === 2);
    if (isConnected) rmSync(join(home, "node"), { recursive: true });
    else rmSync(join(home, "online"), { force: true });
    await until(() => log().includes("Another process runs the node lap, so it is not started again here."));
    await until(() => !isAlive(keeper));
    await only.end();
    assert.ok(other.pid !== undefined && isAlive(other.pid), "it is not stopped either");
    assert.ok(!existsSync(join(home, "refused")));
    assert.deepEqual(files(), []);
  });
test("one answer whose gateway stops next offers no command that needs the gateway", async () => {
  writeFileSync(join(home, "working"), "");
  const only = await start({ once: true, startsGateway: true });
  const ended = only.end();
  await until(() => only.said().includes("Press Ctrl-C to stop them now"));
  only.child.kill("SIGINT");
  await ended;
  assert.doesNotMatch(only.said(), /chat \/stop/);
  assert.match(only.said(), /It continues when the gateway starts again/);
});
test("a node whose token is refused, and one that someone has stopped, are not started again", async () => {
  for (const [signal, status] of [
    ["SIGUSR1", 3],
    ["SIGTERM", 0],
  ] as const) {
    rmSync(join(home, "nodes"), { force: true });
    const only = await start();
    process.kill(nodePids()[0] ?? 0, signal);
    const ended = `The node lap ended (exit status ${status}) and is not started again.`;
    await until(() => readFileSync(join(home, "node.log"), "utf8").includes(ended));
    await only.end();
    assert.equal(nodePids().length, 1);
    assert.deepEqual(files(), []);
  }
});
