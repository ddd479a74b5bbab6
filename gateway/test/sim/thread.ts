/**
 * A hunt in a thread of its own: one for each processor can run at once. The test runner watches every promise of its own thread, which
 * costs a simulation a quarter of its time.
 */
import { fileURLToPath } from "node:url";
import { parentPort, Worker, workerData } from "node:worker_threads";
import {
  approvals,
  corners,
  crowded,
  exhaustive,
  floods,
  jumps,
  kept,
  offline,
  random,
  steering,
  type Tally,
  tally,
  turnovers,
} from "./hunt.ts";

const HUNTS = { approvals, corners, crowded, exhaustive, floods, jumps, kept, offline, random, steering, turnovers };
type Hunts = typeof HUNTS;
type Arguments<Work> = Work extends (...args: [...infer Before, Tally]) => Promise<void> ? Before : never;
type Order = { readonly [Name in keyof Hunts]: { readonly name: Name; readonly args: Arguments<Hunts[Name]> } }[keyof Hunts];

/** What the hunt found; rejects with the first promise that a history broke. */
export function inThread<Name extends keyof Hunts>(name: Name, ...args: Arguments<Hunts[Name]>): Promise<Tally> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(fileURLToPath(import.meta.url), { workerData: { name, args } });
    thread.once("message", resolve);
    thread.once("error", reject);
    thread.once("exit", (code) => reject(new Error(`the thread of ${name} ended with ${code} before its hunt did`)));
  });
}

if (parentPort !== null) {
  const { name, args } = workerData as Order;
  const sum = tally();
  await (HUNTS[name] as (...all: unknown[]) => Promise<void>)(...args, sum);
  parentPort.postMessage(sum);
}
