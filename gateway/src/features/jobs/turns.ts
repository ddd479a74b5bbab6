/** Whose turn is next among jobs that wait (rule JB6). PURE. */

/** The jobs of one agent. */
export interface Line {
  readonly tenantId: string;
  readonly agentId: string;
  /** The oldest job that waits; undefined: none waits. */
  readonly first?: string;
  /** Jobs that run. */
  readonly running: number;
  /** A number that rises with each job that begins; 0: none has. */
  readonly lastTurn: number;
}
interface Weight {
  readonly running: number;
  readonly lastTurn: number;
}
const before = (a: Weight, b: Weight): boolean => a.running < b.running || (a.running === b.running && a.lastTurn < b.lastTurn);

/** The id of the next job: first the tenant, then the agent, with the fewest jobs that run, then with the turn that is longest ago. */
export function nextJob(lines: readonly Line[]): string | undefined {
  const tenants = new Map<string, Weight>();
  for (const { tenantId, running, lastTurn } of lines) {
    const sum = tenants.get(tenantId) ?? { running: 0, lastTurn: 0 };
    tenants.set(tenantId, { running: sum.running + running, lastTurn: Math.max(sum.lastTurn, lastTurn) });
  }
  let best: Line | undefined;
  for (const line of lines) {
    if (line.first === undefined) continue;
    if (best === undefined || isBefore(line, best, tenants)) best = line;
  }
  return best?.first;
}
function isBefore(line: Line, best: Line, tenants: ReadonlyMap<string, Weight>): boolean {
  if (line.tenantId === best.tenantId) return before(line, best);
  const [mine, theirs] = [tenants.get(line.tenantId), tenants.get(best.tenantId)];
  return mine !== undefined && theirs !== undefined && before(mine, theirs);
}
