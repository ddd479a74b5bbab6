/** The index of calls that wait for machines: its bound, and what ends an entry. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { WaitStore } from "../../../src/features/nodes/wait-store.ts";
import type { WaitReport } from "../../../src/ports/waits.ts";
import { client, gateway, type Peer, seed } from "../../support/gateway.ts";

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

describe("[OM5] [SD1] [SD5] the waits of a session that is deleted", () => {
  const key = "agent:main:cli:dm:gone";
  let peer: Peer;
  const begin = async (): Promise<string> => {
    await peer.ok("chat.send", { sessionKey: key, message: "say hello", runId: "hello" });
    await peer.event("chat", (payload) => payload["state"] === "final");
    return runInDurableObject(gateway(), (_gateway, { storage }) =>
      String(storage.sql.exec("SELECT ref FROM sessions WHERE key = ?", key).one()["ref"]),
    );
  };
  /** As the session `ref` would report it. */
  const reports = (ref: string, revision: number) =>
    runInDurableObject(gateway(), (object, { storage }) =>
      object
        .awaitNodes({
          ...report(key, revision, []),
          calls: [{ callId: `${ref}/r1/1/0`, nodeId: "lap", tool: "lap__Bash", since: 0, expiresAt: Date.now() + HOUR }],
        })
        .then(() =>
          new WaitStore(storage)
            .waits()
            .get(key)
            ?.map(({ callId }) => callId),
        ),
    );
  const kept = (): Promise<boolean> => runInDurableObject(gateway(), (_gateway, { storage }) => new WaitStore(storage).waits().has(key));

  test("go with it, and a report of it that comes late is not kept, also when the name has a new session", async () => {
    peer = await client();
    const old = await begin();
    expect(await reports(old, 7)).toEqual([`${old}/r1/1/0`]);
    await peer.ok("session.delete", { sessionKey: key });
    expect(await kept()).toBe(false);
    await reports(old, 8);
    expect(await kept()).toBe(false);

    const next = await begin();
    await reports(old, 9);
    expect(await kept()).toBe(false);
    expect(await reports(next, 1)).toEqual([`${next}/r1/1/0`]);
  });
});
