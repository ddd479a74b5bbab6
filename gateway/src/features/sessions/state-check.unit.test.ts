import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Logger } from "../../platform/log.ts";
import type { SessionPort } from "../../ports/session.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import { checkSessions } from "./state-check.ts";

/** Conversations of which some can't be opened. */
function check(
  keys: readonly string[],
  broken: readonly string[],
): { readonly done: Promise<void>; readonly asked: string[]; readonly logged: string[] } {
  const asked: string[] = [];
  const logged: string[] = [];
  const ask: AskSession = async (key, work) => {
    asked.push(key);
    if (broken.includes(key)) throw new Error(`${key}: SQLITE_ERROR`);
    return work({ stats: async () => ({ ok: true }) } as unknown as SessionPort);
  };
  const sessions = { activeSince: (_since: number, limit: number) => keys.slice(0, limit) } as unknown as SessionDirectory;
  const log = { error: (_event: string, fields: { session: string }) => logged.push(fields.session) } as unknown as Logger;
  return { done: checkSessions({ sessions, ask, log }), asked, logged };
}
const KEYS = Array.from({ length: 100 }, (_, n) => `agent:main:cli:dm:${n}`);

describe("[UP2] the look at the conversations of another version's state", () => {
  it("a state without conversations is usable", () => check([], []).done);
  it("a fault of some conversations is logged, and stops nothing", async () => {
    const { done, asked, logged } = check(KEYS.slice(0, 3), KEYS.slice(0, 2));
    await done;
    assert.deepEqual([asked.length, logged.sort()], [3, KEYS.slice(0, 2)]);
  });
  it("a fault of all that are looked at is the state's, and no more than 64 are", async () => {
    const { done, asked } = check(KEYS, KEYS);
    await assert.rejects(done, /SQLITE_ERROR/);
    assert.equal(asked.length, 64);
  });
});
