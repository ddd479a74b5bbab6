/** The gateway's index of calls that wait for machines, and what must hold of such calls once the world is at rest (rules OM2 to OM5). */
import { textOf } from "../../src/ports/messages.ts";
import type { WaitReport, WaitingForNode } from "../../src/ports/waits.ts";
import type { LogRow } from "../../src/session/machine/log.ts";
import type { FakeNode } from "./nodes.ts";

export class FakeWaits {
  /** Of the newest report. */
  present: readonly WaitingForNode[] = [];
  /** Every call that was reported at some time. */
  readonly seen = new Set<string>();
  #revision = 0;

  report({ revision, calls }: WaitReport): void {
    if (revision < this.#revision) return;
    this.#revision = revision;
    this.present = calls;
    for (const { callId } of calls) this.seen.add(callId);
  }
}

const NEVER_BACK = "did not connect within";
export interface WaitWorld {
  readonly waits: FakeWaits;
  readonly nodes: readonly FakeNode[];
  readonly problem: (what: string) => void;
}
export function checkWaits(world: WaitWorld, rows: readonly LogRow[]): void {
  const { waits, nodes } = world;
  if (waits.present.length > 0)
    world.problem(`the gateway believes that ${waits.present.map(({ callId }) => callId).join(", ")} still wait`);
  const started = new Set(nodes.flatMap((node) => [...node.starts.keys()]));
  for (const row of rows) {
    if (row.kind !== "toolResult") continue;
    const isOver = row.reason === "node.offline" && textOf(row.message.content).includes(NEVER_BACK);
    if (isOver && started.has(row.callId)) world.problem(`${row.callId} ran, and is said to have waited in vain`);
    if (row.reason === "tool.cancelled" && textOf(row.message.content).startsWith("Not run:") && started.has(row.callId))
      world.problem(`${row.callId} ran, and is said not to have run`);
  }
}
