/**
 * An export of a home: of a stopped gateway only, ended by a change, and in frames of the allowed size. The wire and the sessions are
 * real; the model is the demo model.
 */
import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { client, gateway } from "../../support/gateway.ts";
import { again, BYTES, countRestarts, exported, fresh, home } from "./support.ts";

beforeEach(async () => {
  await fresh();
  countRestarts();
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("an export", () => {
  test("[MV4] needs a gateway that is stopped, and ends when it is resumed", async () => {
    const peer = await home();
    expect((await peer.refused("move.describe")).reason).toBe("move.not_stopped");
    expect((await peer.refused("move.read")).reason).toBe("move.not_stopped");
    await peer.ok("gateway.stop");
    const { next } = await peer.ok<{ next: string }>("move.read");
    await peer.ok("gateway.resume");
    expect((await peer.refused("move.read", { cursor: next })).reason).toBe("move.not_stopped");
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 5000);
    await peer.ok("gateway.stop");
    expect((await peer.refused("move.read", { cursor: next })).reason).toBe("move.changed");
    expect((await peer.refused("move.read", { cursor: "no" })).reason).toBe("protocol.invalid_params");
  });
  test("[MV14] is noted in the stop, and only a resume that knows of it makes the source live again", async () => {
    const peer = await home();
    const { state } = await peer.ok<{ state: { since: number } }>("gateway.stop");
    const { next } = await peer.ok<{ next?: string }>("move.read");
    expect(next, "the home has more than a page").toBeDefined();
    expect(await peer.ok("gateway.status")).toEqual({ stopped: state });
    await exported(peer);
    const { stopped } = await peer.ok<{ stopped: { exportedAt?: number } }>("gateway.status");
    expect(stopped).toEqual({ ...state, exportedAt: expect.any(Number) });
    await again();
    const later = await client();
    await later.ok("gateway.stop");
    expect(await later.ok("gateway.status")).toEqual({ stopped });
    expect((await later.refused("gateway.resume")).reason).toBe("gateway.exported");
    expect(await gateway().resumeAll("session:k", { kind: "client", clientId: "c" })).toContain("`gsv resume --exported`");
    expect(await later.ok("gateway.status")).toEqual({ stopped });
    expect(await later.ok("gateway.resume", { exported: true })).toMatchObject({ wasStopped: true });
    await later.ok("gateway.stop");
    expect(await later.ok("gateway.resume")).toMatchObject({ wasStopped: true });
  });
  test("[MV4] ends when a file changes while it is read in pieces", async () => {
    const peer = await home();
    await peer.ok("gateway.stop");
    let cursor: string | undefined;
    for (;;) {
      const { next } = await peer.ok<{ next?: string }>("move.read", cursor === undefined ? {} : { cursor });
      if (next === undefined) throw new Error("no object was read in pieces");
      cursor = next;
      if (JSON.parse(next).object?.offset > 0) break;
    }
    await env.STORAGE.put(
      "agents/main/picture.bin",
      BYTES.map((byte) => byte ^ 1),
    );
    const refused = await peer.refused("move.read", { cursor });
    expect(refused.reason).toBe("move.changed");
    expect(refused.message).toContain("agents/main/picture.bin");
  });
  test("[MV5] no frame is larger than a frame may be, also for a record that is larger", async () => {
    const peer = await home();
    const text = `\u0001"\\😀`.repeat(150_000);
    await runInDurableObject(gateway(), (_object, { storage }) => {
      storage.sql.exec("INSERT INTO held(channel, sender, account, body) VALUES('a', 'b', 'c', ?)", text);
    });
    await peer.ok("gateway.stop");
    const of = await exported(peer);
    const largest = Math.max(...peer.texts.map((frame) => new TextEncoder().encode(frame).length));
    expect(largest).toBeLessThanOrEqual(LIMITS.frameBytes);
    expect(of.pages.some((page) => page.length > LIMITS.frameBytes)).toBe(true);
  });
});
