/** The index of calls that wait for machines: its bound, and what ends an entry. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { WaitStore } from "../../../src/features/nodes/wait-store.ts";
import type { WaitReport } from "../../../src/ports/waits.ts";
import { client, gateway, seed } from "../../support/gateway.ts";

const HOUR = 3_600_000;
const report = (sessionKey: string, revision: number, nodeIds: readonly string[], expiresAt = HOUR): WaitReport => ({
  sessionKey,
  revision,
  runId: "r",
  calls: nodeIds.map((nodeId) => ({ callId: `${sessionKey}/${nodeId}`, nodeId, tool: `${nodeId}__Bash`, since: 0, expiresAt })),
});
beforeEach(async () => {
  await reset();
  await seed();
});
async function inStore(work: (store: WaitStore) => void): Promise<void> {
  await client();
  await runInDurableObject(gateway(), (_gateway, { storage }) => work(new WaitStore(storage)));
}

describe("[OM5] the index of calls that wait", () => {
  test("keeps 256 conversations; a further one is refused until another's waits have ended, and those that are kept may change", () =>
    inStore((store) => {
      for (let n = 0; n < LIMITS.nodeWaitSessions; n++) expect(store.report(report(`s${n}`, 1, ["lap"]), 0)).toBe(true);
      expect(store.report(report("late", 1, ["lap"]), 0)).toBe(false);
      expect(store.report(report("s1", 2, ["box"]), 0)).toBe(true);
      expect(store.report(report("late", 2, ["lap"]), 0)).toBe(false);
      expect(store.report(report("s0", 2, []), 0)).toBe(true);
      expect(store.report(report("late", 3, ["lap"]), 0)).toBe(true);
      expect(store.waits().size).toBe(LIMITS.nodeWaitSessions);
      expect(store.sessionsFor("box")).toEqual(["s1"]);
      expect(store.sessionsFor("lap")).toContain("late");
    }));
  test("an older report that comes late changes nothing, and an entry whose session is silent goes an hour after its waits", () =>
    inStore((store) => {
      store.report(report("s", 2, ["box"]), 0);
      expect(store.report(report("s", 1, ["lap"]), 0)).toBe(true);
      expect(store.sessionsFor("lap")).toEqual([]);
      store.report(report("other", 1, []), 2 * HOUR);
      expect(store.sessionsFor("box")).toEqual(["s"]);
      store.report(report("other", 1, []), 2 * HOUR + 1);
      expect(store.sessionsFor("box")).toEqual([]);
    }));
});
