/**
 * `./scripts/bench [--quick] [--json FILE]`: prints the costs of GSV beside a lower bound of the same run. With `--against CHECKOUT`:
 * beside another version of GSV that runs at the same time (pair.ts).
 * Never fails because of a number: exit status 1 means that a measurement could not be made.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { channels, timesOf } from "./channels.ts";
import {
  compaction,
  concurrent,
  diskCalls,
  fill,
  firstMessages,
  killedRunGoesOn,
  messages,
  streamBytes,
  textSearch,
  toolRoundTrip,
} from "./measure.ts";
import { jobCosts } from "./jobs.ts";
import { BenchModel } from "./model.ts";
import { pair, pairTable } from "./pair.ts";
import { largePrompt, SKILLED_SESSION } from "./prompt.ts";
import { decisionUs } from "./policy.ts";
import { median, quantile, run, usageOf } from "./process.ts";
import { sandboxCost } from "./sandbox.ts";
import { eventDelay, recallCost, taskOverhead, writeMemories } from "./platform.ts";
import { fixed, table } from "./table.ts";
import { transferCost } from "./transfers.ts";
import { undoOfRun } from "./undo.ts";
import { buildIn, gsv, type Gsv, makeTree, own, root, startFloor, startGsv, startNode } from "./system.ts";

interface Row {
  name: string;
  value: number;
  unit: string;
  /** The lower bound, for ratios. */
  floor?: number;
  target: string;
  ok: boolean;
}
const args = process.argv.slice(2);
const quick = args.includes("--quick");
const jsonAt = args.indexOf("--json");
const jsonFile = jsonAt >= 0 ? args[jsonAt + 1] : undefined;
const againstAt = args.indexOf("--against");
const against = againstAt >= 0 ? args[againstAt + 1] : undefined;
/** So many that the 95th percentile is no single one of them. */
const RECALLS = 200;
const rows: Row[] = [];
const say = (text: string): void => void process.stderr.write(`${text}\n`);

function atMost(name: string, value: number, unit: string, limit: number): void {
  rows.push({ name, value, unit, target: `<= ${limit} ${unit}`, ok: value <= limit });
}
function ratio(name: string, value: number, unit: string, floor: number, limit: number): void {
  rows.push({ name, value, unit, floor, target: `<= ${limit}x floor`, ok: value <= floor * limit });
}
/** The difference to a floor that does the same without something. */
function over(name: string, value: number | undefined, floor: number, limit: number): void {
  if (value === undefined) say(`${name}: this machine does not have it`);
  else rows.push({ name, value, unit: "ms", floor, target: `<= floor + ${limit} ms`, ok: value <= floor + limit });
}
/** As fast as `cp`, or 500 MB/s. */
function speed(name: string, value: number, cp: number): void {
  rows.push({ name, value, unit: "MB/s", floor: cp, target: ">= 500 MB/s or cp", ok: value >= Math.min(500, cp) });
}
function info(name: string, value: number, unit: string, floor?: number): void {
  rows.push({ name, value, unit, ...(floor === undefined ? {} : { floor }), target: "", ok: true });
}

async function search(system: Gsv, tree: string): Promise<void> {
  const client = await system.open("bench-search");
  const times = async (work: () => Promise<unknown>): Promise<number> => {
    const samples: number[] = [];
    for (let i = 0; i < (quick ? 3 : 7); i++) {
      const from = performance.now();
      await work();
      if (i > 0) samples.push(performance.now() - from);
    }
    return median(samples);
  };
  const rg = await run("rg", ["--version"]).catch(() => null);
  const grep = await times(() => client.call("tool.invoke", { tool: "bench__Grep", args: { pattern: "needle" }, timeoutMs: 60_000 }));
  const glob = await times(() => client.call("tool.invoke", { tool: "bench__Glob", args: { pattern: "**/*.rs" }, timeoutMs: 60_000 }));
  if (rg === null) {
    say("rg is not installed: Grep and Glob are shown without their ratio");
    info("Grep", grep, "ms");
    info("Glob", glob, "ms");
  } else {
    ratio("Grep, against rg", grep, "ms", await times(() => run("rg", ["-n", "needle", tree])), 1.2);
    ratio("Glob, against rg --files", glob, "ms", await times(() => run("rg", ["--files", "-g", "**/*.rs", tree])), 1.0);
  }
  client.close();
}

/** The cost of the user's shell profile for each command. */
async function loginShell(): Promise<number> {
  const samples: number[] = [];
  for (let count = 0; count < 10; count++) {
    const from = performance.now();
    await run(process.env["SHELL"] ?? "/bin/sh", ["-l", "-c", "true"]);
    samples.push(performance.now() - from);
  }
  return median(samples);
}

async function main(): Promise<void> {
  const count = quick ? 100 : 400;
  const history = quick ? 400 : 2000;
  const model = await BenchModel.start();
  say("floor ...");
  const floor = await startFloor(model.url);
  const floorCost = await messages(floor, model, "floor", count);
  const floorFirst = await firstMessages(floor, model, count / 4);
  const floorLoad = await concurrent(floor, 50, quick ? 5 : 20);
  await floor.stop();

  say("gsv ...");
  const system = await startGsv(model.url);
  try {
    const few = await messages(system, model, "agent:main:cli:dm:few", count);
    ratio("message overhead", few.overheadMs, "ms", floorCost.overheadMs, 2);
    info("message overhead, p99", few.overheadP99Ms, "ms");
    ratio("CPU per message", few.cpuMs, "ms", floorCost.cpuMs, 2.2);
    ratio("bytes written per message", few.writtenBytes / 1024, "KiB", floorCost.writtenBytes / 1024, 2.5);
    atMost("first delta after the model's first byte", few.firstDeltaMs, "ms", 2);
    info("  the floor's", floorCost.firstDeltaMs, "ms");
    const disk = await diskCalls(system, model, "agent:main:cli:dm:disk", 40);
    if (disk === undefined) say("strace is not there or may not look: fsyncs and reads of the bucket are not counted");
    else {
      atMost("fsyncs per message", disk.fsyncs, "", 3);
      atMost("reads of the bucket per message", disk.objectReads, "", 0);
    }
    say(`history of ${history} ...`);
    await fill(system, "agent:main:cli:dm:many", history);
    const many = await messages(system, model, "agent:main:cli:dm:many", Math.min(count, 100));
    ratio(`message overhead at ${history} messages, against a new conversation`, many.overheadMs, "ms", few.overheadMs, 1.3);
    ratio(`CPU per message at ${history} messages, against a new conversation`, many.cpuMs, "ms", few.cpuMs, 1.3);
    ratio(`bytes written at ${history} messages`, many.writtenBytes / 1024, "KiB", floorCost.writtenBytes / 1024, 2.5);
    const compacted = await compaction(system, model, "agent:main:cli:dm:many");
    rows.push({
      name: `compaction of ${compacted.messages} messages, without the model's time`,
      value: compacted.perSecond,
      unit: "messages/s",
      target: ">= 2000 messages/s",
      ok: compacted.perSecond >= 2000,
    });
    say("50 skills ...");
    const prompt = await largePrompt(system, quick ? 10 : 40);
    atMost("prompt of 50 skills and a full workspace, again", prompt.againMs, "ms", 40);
    atMost("  after a change", prompt.changedMs, "ms", 60);
    info("  its size", prompt.bytes / 1024, "KiB");
    const skilled = await diskCalls(system, model, SKILLED_SESSION, 20);
    if (skilled !== undefined) atMost("  reads of the bucket per message", skilled.objectReads, "", 0);
    say("50 sessions ...");
    const load = await concurrent(system, 50, quick ? 5 : 20);
    rows.push({
      name: "messages/s over 50 sessions",
      value: load.perSecond,
      unit: "/s",
      floor: floorLoad.perSecond,
      target: ">= 1/2 floor",
      ok: load.perSecond >= floorLoad.perSecond / 2,
    });
    ratio("CPU per message over 50 sessions", load.cpuMs, "ms", floorLoad.cpuMs, 2.2);
    atMost("frames for another session's socket", load.strayFrames, "", 0);
    atMost("bytes to the client per byte of text", await streamBytes(system, model, "agent:main:cli:dm:stream"), "x", 5);
    say("tools ...");
    ratio(
      "native tool round trip, against a bare turn",
      await toolRoundTrip(system, model, "agent:main:cli:dm:native", 'gsv__ReadFile {"path":"SOUL.md"}', quick ? 20 : 100),
      "ms",
      few.overheadMs,
      2,
    );
    const tree = makeTree(quick ? 20_000 : 200_000);
    const machine = await startNode(system, tree);
    ratio(
      "tool round trip, Read on a node, against a bare turn",
      await toolRoundTrip(system, model, "agent:main:cli:dm:tool", 'bench__Read {"path":"d0/e0/f0.rs"}', quick ? 20 : 100),
      "ms",
      few.overheadMs,
      2,
    );
    info(
      "tool round trip, Write on a node (fsync)",
      await toolRoundTrip(system, model, "agent:main:cli:dm:write", 'bench__Write {"path":"bench-out.txt","content":"x"}', 20),
      "ms",
    );
    const bash = await toolRoundTrip(system, model, "agent:main:cli:dm:bash", 'bench__Bash {"command":"true"}', 20);
    atMost("tool round trip, Bash on a node, without the login shell's own time", bash - (await loginShell()), "ms", 25);
    const confined = await sandboxCost(system, quick ? 20 : 60);
    over("command in the sandbox, bubblewrap, over one without", confined.bubblewrapMs, confined.offMs, 8);
    if (confined.bubblewrapAloneMs !== undefined) info("  bubblewrap alone, without GSV", confined.bubblewrapAloneMs, "ms");
    over("command in the sandbox, Landlock, over one without", confined.landlockMs, confined.offMs, 2);
    atMost("policy: a decision about a call, 20 rules and 20 grants", await decisionUs(quick ? 50 : 200), "us", 50);
    say(`search in ${quick ? 20_000 : 200_000} files ...`);
    await search(system, tree);
    const archived = quick ? 2_000 : 10_000;
    say(`search in ${archived} archived messages ...`);
    const found = await textSearch(system, archived);
    atMost(`search in ${archived} archived messages`, found.queryMs, "ms", 20);
    info("  the same for a word that is in each of them", found.commonMs, "ms");
    info("  messages indexed by the first search", found.perSecond, "/s");
    say("idle ...");
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    const idle = await startGsv(model.url);
    const idleNode = await startNode(idle, tree);
    atMost("gateway, idle", usageOf(idle.pid).rssMb, "MB", 90);
    atMost("node, idle", usageOf(idleNode.pid).rssMb, "MB", 12);
    await concurrent(idle, 50, 9);
    atMost("gateway, after 500 messages in 50 sessions", usageOf(idle.pid).rssMb, "MB", 140);
    atMost("gateway after the runs above", usageOf(system.pid).rssMb, "MB", 180);
    info("node after the runs above", usageOf(machine.pid).rssMb, "MB");
    // Last in its gateway: its thousand results would be in what the other rows search and load.
    atMost("undo of 1,000 files of a run", await undoOfRun(idle, model, { id: "bench", workspace: tree }, 1000), "ms", 2000);
    await idleNode.stop();
    await idle.stop();
    await machine.stop();
    const jobs = quick ? 200 : 500;
    say(`${jobs} jobs ...`);
    const jobbing = await startGsv(model.url);
    const jobCost = await jobCosts(jobbing, jobs);
    await jobbing.stop();
    info(`${jobs} jobs: taken`, jobCost.takenPerSecond, "/s");
    info(`${jobs} jobs: ended, four at once`, jobCost.perSecond, "/s");
    info(`gateway, highest while ${jobs} jobs wait and run`, jobCost.peakMb, "MB");
    const fileMb = quick ? 64 : 256;
    say(`copies of ${fileMb} MiB ...`);
    const copying = await startGsv(model.url);
    const copies = await transferCost(copying, fileMb * 1024 * 1024, quick ? 1 : 3);
    await copying.stop();
    speed(`transfer of ${fileMb} MiB between two nodes, against cp`, copies.betweenNodes, copies.cp);
    speed("  against cp and sync", copies.betweenNodes, copies.cpSynced);
    info("  into the workspace, against cp", copies.intoWorkspace, "MB/s", copies.cp);
    info("  from the workspace to a node, against cp", copies.fromWorkspace, "MB/s", copies.cp);
    // The hashes, sockets and files of three programs take more than two cores have. With a core for each, the busiest says how fast it is.
    const busiest = Math.max(copies.relayCpuMs, copies.senderCpuMs, copies.receiverCpuMs);
    atMost("  CPU of the busiest of the three programs for 100 MB (200 ms: 500 MB/s with a core for each)", busiest, "ms", 200);
    info("  the node that sends", copies.senderCpuMs, "ms");
    info("  the node that receives", copies.receiverCpuMs, "ms");
    info("  CPU of the gateway for 100 MB: it relays", copies.relayCpuMs, "ms");
    info("  it stores", copies.storeCpuMs, "ms");
    info("  it sends", copies.sendCpuMs, "ms");
    atMost("  growth of the gateway that relays", copies.relayGrowth, "MB", 64);
    atMost("  growth of the gateway that stores", copies.storeGrowth, "MB", 64);
    atMost("  growth of the gateway that sends", copies.sendGrowth, "MB", 64);
    say("tasks, events and recalls ...");
    const tasking = await startGsv(model.url);
    await messages(tasking, model, "agent:main:cli:dm:warm", count / 4);
    const { taskMs, messageMs } = await taskOverhead(tasking, model, count / 4);
    info("message overhead of the first message of a conversation", messageMs, "ms", floorFirst);
    ratio("POST /run, against the first message of a conversation", taskMs, "ms", messageMs, 1.3);
    info("event to its handler, median", await eventDelay(tasking, quick ? 5 : 15), "ms");
    await tasking.stop();
    const recalling = await startGsv(model.url);
    writeMemories(recalling, 0, 10_000);
    const recalls = await recallCost(recalling, 10_000, RECALLS);
    info("recall among 10,000 texts, p50", recalls.p50Ms, "ms");
    atMost("recall among 10,000 texts, p95", recalls.p95Ms, "ms", 10);
    if (!quick) {
      writeMemories(recalling, 10_000, 100_000);
      const many = await recallCost(recalling, 100_000, RECALLS);
      info("recall among 100,000 texts, p50", many.p50Ms, "ms");
      atMost("recall among 100,000 texts, p95", many.p95Ms, "ms", 60);
    }
    await recalling.stop();
    const ups: number[] = [system.readyMs];
    for (let i = 0; i < (quick ? 2 : 4); i++) ups.push(await system.restart());
    atMost("gsv up to ready", median(ups), "ms", 300);
    atMost("kill -9 in a model call to the new call", await killedRunGoesOn(system, model, "agent:main:cli:dm:killed"), "ms", 2000);
    const versions: number[] = [];
    for (let i = 0; i < 21; i++) versions.push((await run(gsv, ["--version"])).ms);
    const trues: number[] = [];
    for (let i = 0; i < 21; i++) trues.push((await run("true", [])).ms);
    atMost("gsv --version, over the cost of a process", Math.max(0, median(versions) - median(trues)), "ms", 5);
    atMost("binary", statSync(gsv).size / 1048576, "MB", 12);
    const { bytes } = JSON.parse(readFileSync(join(root, "dist/runtime/manifest.json"), "utf8")) as { bytes: { workerGzip: number } };
    atMost("Worker that a cold start reads, gzip", bytes.workerGzip / 1024, "KiB", 416);
    say("channels ...");
    // A separate lower bound right before, because the machine's speed varies. It writes twice for a message; a run here has nine durable steps.
    const senders = quick ? 10 : 50;
    const beside = await startFloor(model.url);
    const takes = await timesOf(senders * 20, (n) => beside.take(JSON.stringify({ id: `queue-${n}`, from: "bench", text: "hello there" })));
    const besideCost = await messages(beside, model, "channels", 60);
    const besideLoad = await concurrent(beside, senders, 5);
    await beside.stop();
    const channel = await channels(model, senders);
    ratio("channel: a message is accepted, p50", channel.acceptP50Ms, "ms", median(takes), 4);
    ratio("channel: a message is accepted, p99", channel.acceptP99Ms, "ms", quantile(takes, 0.99), 4);
    ratio("channel: round trip, without the model's time", channel.roundTripMs, "ms", besideCost.overheadMs, 10);
    info(`channel: ${channel.drained} queued messages after a restart`, channel.drainMs / 1000, "s");
    const drainRate = (channel.drained * 1000) / channel.drainMs;
    rows.push({
      name: "channel: messages/s while they are answered",
      value: drainRate,
      unit: "/s",
      floor: besideLoad.perSecond,
      target: ">= 1/10 floor",
      ok: drainRate >= besideLoad.perSecond / 10,
    });
    atMost("channel: memory of an account", channel.accountMb, "MB", 1);
  } finally {
    await system.stop();
    model.stop();
  }
}

function printed(): string {
  const cells = rows.map((row) => [
    row.name,
    `${fixed(row.value)} ${row.unit}`.trim(),
    row.floor === undefined ? "" : fixed(row.floor),
    row.floor === undefined || row.floor === 0 ? "" : `${(row.value / row.floor).toFixed(2)}x`,
    row.target,
    row.target === "" ? "" : row.ok ? "ok" : "over",
  ]);
  return table([["what", "measured", "floor", "ratio", "target", ""], ...cells]);
}

function save(measured: object): void {
  if (jsonFile === undefined) return;
  const machine = { cpus: cpus().length, cpu: cpus()[0]?.model ?? "", node: process.version };
  writeFileSync(jsonFile, `${JSON.stringify({ at: new Date().toISOString(), quick, machine, ...measured }, null, 2)}\n`);
}

if (against === undefined) {
  await main();
  process.stdout.write(`${printed()}\n`);
  save({ rows });
} else {
  const model = await BenchModel.start();
  const pairs = await pair(model, [buildIn(against), own], quick);
  model.stop();
  process.stdout.write(`${pairTable(pairs)}\n`);
  save({ against, pairs });
}
