/** How fast files are copied between two nodes and into the workspace, beside `cp` of the same file in the same run. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchClient } from "./client.ts";
import { median, run, usageOf } from "./process.ts";
import { type Gsv, startNode } from "./system.ts";

const MB = 1_000_000;
const PIECE_BYTES = 16 * 1024 * 1024;
/** Between two polls: short at first, because it counts for a fast copy; then long, because a connection may send only so many requests a minute. */
const POLL_MS = [20, 250] as const;
const FAST_POLLS = 200;
const PATIENCE_MS = 600_000;

/** MB/s, and MB of memory. */
export interface TransferCost {
  readonly betweenNodes: number;
  readonly intoWorkspace: number;
  readonly fromWorkspace: number;
  /** `cp`, which leaves the writing to the system, and with the wait until the disk has it, as a node waits. */
  readonly cp: number;
  readonly cpSynced: number;
  /** The most that the gateway had, beyond what it had before. */
  readonly relayGrowth: number;
  readonly storeGrowth: number;
  readonly sendGrowth: number;
  /** CPU of the gateway for 100 MB: the machine's load changes it less than the speed. */
  readonly relayCpuMs: number;
  readonly storeCpuMs: number;
  readonly sendCpuMs: number;
  /** CPU of the two nodes for 100 MB that go from one to the other. */
  readonly senderCpuMs: number;
  readonly receiverCpuMs: number;
}

const peakMb = (pid: number): number => Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
/** The peak counts from now on (Linux). */
const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");

async function untilDone(client: BenchClient, id: string): Promise<void> {
  for (let poll = 0, until = performance.now() + PATIENCE_MS; ; poll++) {
    const { payload } = await client.call("transfer.get", { id });
    const seen = payload?.["transfer"] as { state: string; problem?: string };
    if (seen.state === "done") return;
    if (seen.state === "failed") throw new Error(`the copy has failed: ${seen.problem}`);
    if (performance.now() > until) throw new Error("the copy did not end");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS[poll < FAST_POLLS ? 0 : 1]));
  }
}

export async function transferCost(system: Gsv, bytes: number, samples: number): Promise<TransferCost> {
  const folder = mkdtempSync(join(tmpdir(), "gsv-transfers-"));
  const [here, there] = [join(folder, "here"), join(folder, "there")];
  for (const each of [here, there]) mkdirSync(each);
  const source = join(here, "a");
  for (let at = 0; at < bytes; at += PIECE_BYTES) writeFileSync(source, randomBytes(Math.min(PIECE_BYTES, bytes - at)), { flag: "a" });
  const nodes = [await startNode(system, here, "here"), await startNode(system, there, "there")] as const;
  const speed = async (copy: () => Promise<unknown>, remove: () => void): Promise<number> => {
    const taken: number[] = [];
    for (let i = 0; i < samples; i++) {
      const from = performance.now();
      await copy();
      taken.push(performance.now() - from);
      remove();
    }
    return bytes / MB / (median(taken) / 1000);
  };
  const transfer = async (from: string, to: string): Promise<void> => {
    const id = crypto.randomUUID().replaceAll("-", "");
    const client = await system.open(`bench-${id}`);
    try {
      await client.call("transfer.create", { id, source: from, destination: to });
      await untilDone(client, id);
    } finally {
      client.close();
    }
  };
  /** How often the samples copy 100 MB. */
  const hundreds = (bytes * samples) / MB / 100;
  /** The speed, the growth and the CPU of the gateway. */
  const cost = async (copy: () => Promise<unknown>, remove: () => void): Promise<readonly [number, number, number]> => {
    resetPeak(system.pid);
    const [memory, { cpuMs }] = [peakMb(system.pid), usageOf(system.pid)];
    const value = await speed(copy, remove);
    const cpu = (usageOf(system.pid).cpuMs - cpuMs) / hundreds;
    return [value, peakMb(system.pid) - memory, cpu];
  };
  const stored = join(system.env["GSV_HOME"] ?? "", "workspace", "agents", "main", "b");
  const copied = join(folder, "copied");
  const removeCopied = (): void => rmSync(copied);
  try {
    const received = join(there, "b");
    const before = nodes.map(({ pid }) => usageOf(pid).cpuMs);
    const [betweenNodes, relayGrowth, relayCpuMs] = await cost(
      () => transfer("here:a", "there:b"),
      () => rmSync(received),
    );
    const [senderCpuMs = 0, receiverCpuMs = 0] = nodes.map(({ pid }, at) => (usageOf(pid).cpuMs - (before[at] ?? 0)) / hundreds);
    const [intoWorkspace, storeGrowth, storeCpuMs] = await cost(
      () => transfer("here:a", "gsv:b"),
      () => rmSync(stored),
    );
    await transfer("here:a", "gsv:b");
    const [fromWorkspace, sendGrowth, sendCpuMs] = await cost(
      () => transfer("gsv:b", "there:b"),
      () => rmSync(received),
    );
    return {
      ...{ betweenNodes, relayGrowth, relayCpuMs, intoWorkspace, storeGrowth, storeCpuMs, fromWorkspace, sendGrowth, sendCpuMs },
      ...{ senderCpuMs, receiverCpuMs },
      cp: await speed(() => run("cp", [source, copied]), removeCopied),
      cpSynced: await speed(() => run("sh", ["-c", 'cp "$0" "$1" && sync "$1"', source, copied]), removeCopied),
    };
  } finally {
    for (const node of nodes) await node.stop();
    rmSync(folder, { recursive: true });
  }
}
