/** When the absence of a machine that a job needs is to be reported (rule OM8). PURE. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { NodeEntry } from "../../../../protocol/gen/types.ts";
import type { Need } from "./need-store.ts";

/** Undefined: not, as things are. A machine that was connected since the job has waited for it is no longer needed. */
export function reportAt({ nodeId, neededAt }: Pick<Need, "neededAt" | "nodeId">, nodes: readonly NodeEntry[]): number | undefined {
  const node = nodes.find((candidate) => candidate.nodeId === nodeId);
  if (node === undefined || node.online || node.returning === true || (node.lastConnectedAt ?? 0) > neededAt) return undefined;
  return (node.lastDisconnectedAt ?? node.lastSeenAt ?? neededAt) + LIMITS.nodeMissingMs;
}
export function nextReport(open: readonly Need[], nodes: () => readonly NodeEntry[]): number | undefined {
  if (open.length === 0) return undefined;
  const known = nodes();
  const times = open.flatMap((need) => reportAt(need, known) ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
}
