/** A client follows a session from the last event that it knows, without gap or duplicate. The sessions are fakes. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asRunId, asSessionKey } from "../../../../protocol/gen/types.ts";
import type { SessionPort } from "../../../src/ports/session.ts";
import { ADMIN, client, fakeSessions, gateway, open, seed, until } from "../../support/gateway.ts";
import { delta, fieldsOf, log, MAIN, seqs, settle } from "./support.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("[C5][P11] following from a known point, without gap or duplicate", () => {
  /** A session whose answer waits until the test releases it. Uses flags, because promises can't cross between objects. */
  function slow(past: () => Awaited<ReturnType<SessionPort["events"]>>): { answer: () => void; asked: () => Promise<unknown> } {
    let [begun, open] = [false, false];
    fakeSessions(() => ({
      events: async () => {
        begun = true;
        await until("the test to let the answer go", () => open);
        return past();
      },
    }));
    const answer = (): void => {
      open = true;
    };
    return { answer, asked: () => until("the session to be asked", () => begun) };
  }
  const five = (key = MAIN): Awaited<ReturnType<SessionPort["events"]>> => ({
    ok: true,
    value: {
      sessionKey: asSessionKey(key),
      seq: 5,
      events: [log(4), log(5)],
      state: "thinking",
      runId: asRunId("r"),
      step: 1,
      attempt: 1,
      text: "abc",
    },
  });

  test("events during the fetch come after the answer, once", async () => {
    const session = slow(() => five());
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    const id = peer.ask("session.subscribe", { sessionKey: "main", afterSeq: 3 });
    await session.asked();
    await gateway().publish(MAIN, [log(5), delta("ab", 0), delta("c", 2), delta("de", 3), log(6)]);
    await settle(peer);
    expect(peer.events()).toEqual([]);
    session.answer();
    const answer = await peer.answer(id);
    expect(answer.payload).toMatchObject({ seq: 5, text: "abc" });
    await gateway().publish(MAIN, [log(7)]);
    await settle(peer);
    expect(seqs(peer)).toEqual([6, 7]);
    expect(fieldsOf(peer, "text")).toEqual(["de"]);
    const at = peer.frames.indexOf(answer);
    expect(peer.frames.findIndex((frame) => frame.type === "evt")).toBeGreaterThan(at);
  });

  test("connect.resume sends the missed events first, then the live ones", async () => {
    const session = slow(() => five());
    const first = await client();
    await first.ok("chat.send", { sessionKey: "main", message: "hi" });
    const peer = await open();
    await peer.ok("connect", {
      minProtocol: 1,
      maxProtocol: 1,
      client: { id: "again", version: "1", platform: "t", mode: "client" },
      fingerprint: "tests",
      auth: { token: ADMIN },
      resume: { sessions: [{ sessionKey: "main", afterSeq: 3 }] },
    });
    await session.asked();
    await gateway().publish(MAIN, [log(5), log(6)]);
    session.answer();
    await until("six", () => seqs(peer).includes(6));
    expect(seqs(peer)).toEqual([4, 5, 6]);
    expect(peer.events().map(({ seq }) => seq)).toEqual([0, 1, 2]);
  });

  test("a point that is too old is reported, and the session is followed from now on", async () => {
    fakeSessions(() => ({ events: async () => ({ ok: false, error: { reason: "session.snapshot_required", message: "Too old." } }) }));
    const peer = await client();
    await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
    expect((await peer.refused("session.subscribe", { sessionKey: "main", afterSeq: 1 })).reason).toBe("session.snapshot_required");
    await gateway().publish(MAIN, [log(9)]);
    await settle(peer);
    expect(seqs(peer)).toEqual([9]);
  });
});
