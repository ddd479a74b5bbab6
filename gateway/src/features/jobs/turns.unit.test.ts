import assert from "node:assert/strict";
import { test } from "node:test";
import { type Line, nextJob } from "./turns.ts";

/** Jobs of agents that wait, in the order in which they came; each runs for as long as `atOnce` others take to begin. */
function order(waiting: readonly (readonly [tenant: string, agent: string, jobs: number])[], atOnce: number, begins: number): string[] {
  const left = new Map(waiting.map(([tenant, agent, jobs]) => [`${tenant}/${agent}`, jobs]));
  const turns = new Map<string, number>();
  const running: string[] = [];
  const begun: string[] = [];
  while (begun.length < begins) {
    if (running.length >= atOnce) running.shift();
    const lines = waiting.map(([tenantId, agentId]): Line => {
      const name = `${tenantId}/${agentId}`;
      return {
        tenantId,
        agentId,
        running: running.filter((each) => each === name).length,
        lastTurn: turns.get(name) ?? 0,
        ...((left.get(name) ?? 0) > 0 ? { first: name } : {}),
      };
    });
    const next = nextJob(lines);
    if (next === undefined) break;
    left.set(next, (left.get(next) ?? 0) - 1);
    turns.set(next, begun.length + 1);
    running.push(next);
    begun.push(next);
  }
  return begun;
}

test("[JB6] no job waits, no one's turn", () => {
  assert.equal(nextJob([]), undefined);
  assert.equal(nextJob([{ tenantId: "t", agentId: "a", running: 2, lastTurn: 3 }]), undefined);
});

test("[JB6] an agent with one job does not wait for another's thousand", () => {
  for (const atOnce of [1, 2, 4]) {
    const begun = order(
      [
        ["t", "busy", 1_000],
        ["t", "quiet", 1],
      ],
      atOnce,
      10,
    );
    assert.ok(begun.indexOf("t/quiet") <= 1, `${atOnce}: ${begun.join(" ")}`);
  }
});

test("[JB6] agents take turns, and so do tenants whatever the number of their agents", () => {
  const count = (begun: readonly string[], prefix: string): number => begun.filter((name) => name.startsWith(prefix)).length;
  const agents = order(
    ["a", "b", "c"].map((agent) => ["t", agent, 100]),
    4,
    60,
  );
  for (const agent of ["t/a", "t/b", "t/c"]) assert.equal(count(agents, agent), 20);
  const tenants = order(
    [
      ["big", "a", 100],
      ["big", "b", 100],
      ["big", "c", 100],
      ["small", "d", 100],
    ],
    4,
    60,
  );
  assert.equal(count(tenants, "small"), 30);
  for (const agent of ["big/a", "big/b", "big/c"]) assert.equal(count(tenants, agent), 10);
});
