/** When a session was last active: exact for everyone who asks, and not a write for each message. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SessionsListResult } from "../../../../protocol/gen/types.ts";
import { Sessions } from "../../../src/features/sessions/store.ts";
import { client, fakeSessions, gateway, type Peer, seed } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

const START = Date.UTC(2026, 10, 22, 12);
let owner: Peer;
beforeEach(async () => {
  await reset();
  fakeSessions();
  await seed();
  owner = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});
const listed = async (): Promise<readonly (readonly [string, number])[]> =>
  (await owner.ok<SessionsListResult>("sessions.list", {})).sessions.map(({ sessionKey, lastActiveAt }) => [sessionKey, lastActiveAt]);
const say = (sessionKey: string): Promise<unknown> => owner.ok("chat.send", { sessionKey, message: "hi" });

test("[F42] [D7] sessions are in the order of their last messages, a minute after the ones before, also after an eviction", async () => {
  const clock = vi.spyOn(Date, "now").mockReturnValue(START);
  const [one, two] = ["agent:main:cli:dm:one", "agent:main:cli:dm:two"];
  await say(one);
  clock.mockReturnValue(START + 30_000);
  await say(two);
  clock.mockReturnValue(START + 60_000);
  await say(one);
  const expected = [
    [one, START + 60_000],
    [two, START + 30_000],
  ];
  expect(await listed()).toEqual(expected);
  await evict(gateway(), { webSockets: "hibernate" });
  expect(await listed()).toEqual(expected);
});

test("[F42] [D7] messages that follow each other cost one write, soon after the first", async () => {
  await runInDurableObject(gateway(), (_gateway, { storage }) => {
    const due: { readonly ms: number; readonly work: () => void }[] = [];
    const sessions = new Sessions(storage, (ms, work) => void due.push({ ms, work }));
    const stored = (): unknown => storage.sql.exec("SELECT last_active_at FROM sessions WHERE key = 'k'").one()["last_active_at"];
    sessions.touch("k", START);
    for (let at = 1; at <= 100; at++) sessions.touch("k", START + at * 50);
    expect([stored(), due.map(({ ms }) => ms)]).toEqual([START, [10_000]]);
    due[0]?.work();
    expect(stored()).toBe(START + 5_000);
    sessions.touch("k", START + 9_000);
    expect(due).toHaveLength(2);
    expect(sessions.list(START, 0, 1)[0]?.lastActiveAt).toBe(START + 9_000);
    // A clock that was set back is followed.
    sessions.touch("k", START);
    expect(sessions.list(START, 0, 1)[0]?.lastActiveAt).toBe(START);
  });
});
