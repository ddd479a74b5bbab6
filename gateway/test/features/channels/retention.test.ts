/**
 * How much of a message is kept, and for how long: texts over the limit are cut with a note, and old rows are pruned. The channel is a
 * fake service.
 */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { SessionSend } from "../../../src/ports/session.ts";
import { eventually, FAR, gateway, type Peer } from "../../support/gateway.ts";
import { dm, type FakeSessions, handedTo, inboundStage, take } from "./support.ts";

let sessions: FakeSessions;
let owner: Peer;

beforeEach(async () => {
  ({ sessions, owner } = await inboundStage());
});
afterEach(() => {
  vi.restoreAllMocks();
});

const configure = (path: string, value: unknown) => owner.ok("config.set", { path, value });
const handed = (): SessionSend[] => handedTo(sessions);

describe("nothing is lost, old rows are pruned", () => {
  const count = (table: string): Promise<number> =>
    runInDurableObject(gateway(), (_gateway, { storage }) => storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n);

  test("[P10][P19] a text over the limit is cut with a note", async () => {
    await configure("channels.test.owners", ["me"]);
    expect((await take(dm("me", "€".repeat(200_000)))).outcome).toBe("accepted");
    const { text = "" } = handed()[0] ?? {};
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(262_144 - 32_768 + 1_000);
    expect(text).toMatch(/^\[message\] \{"cut":"the text was too long: its last \d+ characters are left out"\}\n€/);
  });

  test("[P10] a long text of a stranger is held, cut", async () => {
    await take(dm("anna", '"'.repeat(100_000)));
    await owner.ok("pair.approve", { channel: "test", senderId: "anna" });
    await eventually(() => expect(handed()).toHaveLength(1));
    expect(handed()[0]?.text).toMatch(/"{1000}\n\[The rest was too long to be kept\.\]$/);
  });

  test("[CH18][P2] the alarm prunes accepted messages after 30 days and pairing requests after 7, in steps", async () => {
    await configure("channels.test", { owners: ["me"], allowFrom: ["guest"] });
    const now = vi.spyOn(Date, "now");
    let at = FAR;
    now.mockImplementation(() => (at += 4000));
    for (let n = 0; n < 250; n++) await take(dm("me", `message ${n}`));
    await take(dm("guest", "hi"));
    await take(dm("stranger", "let me in"));
    expect([await count("channel_inbox"), await count("pairs"), await count("held"), await count("channel_counts")]).toEqual([
      252, 1, 1, 1,
    ]);
    at += 8 * 86_400_000;
    await runDurableObjectAlarm(gateway());
    expect([await count("pairs"), await count("held"), await count("channel_counts")]).toEqual([0, 0, 0]);
    expect(await count("channel_inbox")).toBe(252);
    expect((await take(dm("stranger", "me again"))).replies).toHaveLength(1);
    at += 23 * 86_400_000;
    await runDurableObjectAlarm(gateway());
    expect(await count("channel_inbox")).toBe(53);
    await runDurableObjectAlarm(gateway());
    expect(await count("channel_inbox")).toBe(1);
  });
});
