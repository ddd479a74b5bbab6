/**
 * While GSV is stopped deliveries wait, and begin after the resume; those of a removed hook never begin. The gateway, its alarm and its
 * sessions are real; the model and the clock are fakes.
 */
import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { gateway } from "../../support/gateway.ts";
import { alarm, asked, pass } from "../schedule/support.ts";
import { hookStage } from "./support.ts";

const { stage, calls, add, deliver, show, ends } = hookStage();

describe("[HK10] [ST1] stop", () => {
  it("while GSV is stopped deliveries wait, and begin in their order after a resume", async () => {
    const { secret = "" } = await add();
    await stage.peer.ok("gateway.stop");
    for (const id of ["d1", "d2"]) expect(await deliver(secret, id, { title: id })).toBe("202 accepted");
    await alarm();
    pass(stage, 60_000);
    await alarm();
    expect(calls).toHaveLength(0);
    expect((await show()).hook.waiting).toBe(2);
    await stage.peer.ok("gateway.resume");
    await ends(2);
    expect(calls.map((request) => /d[12]/.exec(asked(request))?.[0])).toEqual(["d1", "d2"]);
  });
  it("a stop between the hand-over and the begin keeps the delivery too", async () => {
    const { secret = "" } = await add();
    await deliver(secret, "d1");
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec(
        "INSERT INTO cron_runs(job, ts, status, body, check_at, tries) VALUES('hook:gh', 1, 'waiting', ?, 1, 0)",
        JSON.stringify({ byHand: true, given: { hook: "gh", text: "handed over", taint: { label: "world", source: "the hook gh" } } }),
      );
    });
    await stage.peer.ok("gateway.stop");
    await alarm();
    expect(calls).toHaveLength(0);
    await stage.peer.ok("gateway.resume");
    pass(stage, 31_000);
    await ends(1);
    expect(calls.map((request) => asked(request).includes("handed over"))).toEqual([true, false]);
  });
  it("what waits is dropped with the hook", async () => {
    const { secret = "" } = await add();
    await stage.peer.ok("gateway.stop");
    await deliver(secret, "d1");
    expect(await stage.peer.ok("hook.remove", { name: "gh" })).toEqual({ ok: true, removed: true });
    expect(await stage.peer.ok("hook.remove", { name: "gh" })).toEqual({ ok: true, removed: false });
    await stage.peer.ok("gateway.resume");
    await alarm();
    expect(calls).toHaveLength(0);
    expect(await deliver(secret, "d2")).toBe("401 hook.refused");
  });
});
