/**
 * A delivery that comes twice is done once, in each form of a hook, also after kills and restarts. The gateway, its alarm and its
 * sessions are real; the model and the clock are fakes.
 */
import { abortAllDurableObjects } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { client, eventually, gateway } from "../../support/gateway.ts";
import { alarm, hold, pass, shownIn } from "../schedule/support.ts";
import { evict } from "../../support/evict.ts";
import { hookStage, post, status } from "./support.ts";

const { stage, calls, add, deliver, show, ends } = hookStage();

describe("[HK4] [HK5] [K28] [P1] once", () => {
  it("an id that was accepted does nothing again, also after a restart", async () => {
    const { secret = "" } = await add();
    await deliver(secret, "d1");
    expect(await deliver(secret, "d1")).toBe("200 repeated");
    await ends(1);
    await evict(gateway());
    stage.peer = await client();
    expect(await deliver(secret, "d1", { title: "changed" })).toBe("200 repeated");
    await alarm();
    expect(calls).toHaveLength(1);
    expect((await show()).hook.accepted).toBe(1);
  });
  it("killed after it was accepted, and again in its run: one run", async () => {
    const { secret = "" } = await add();
    const release = hold(stage, "done");
    expect(await deliver(secret, "d1")).toBe("202 accepted");
    await abortAllDurableObjects();
    stage.peer = await client();
    expect(await deliver(secret, "d1")).toBe("200 repeated");
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
    await evict(gateway());
    stage.peer = await client();
    expect(await deliver(secret, "d1")).toBe("200 repeated");
    release();
    pass(stage, 20_000);
    await ends(1);
    expect(calls).toHaveLength(1);
    expect((await shownIn(stage)).filter((text) => text.includes("says:\n\ndone"))).toHaveLength(1);
  });
  it("GitHub's signed bytes under another id are a repetition", async () => {
    const { secret = "" } = await add({ form: "github" });
    expect(await deliver(secret, "d1", { a: 1 }, "github")).toBe("202 accepted");
    expect(await deliver(secret, "d2", { a: 1 }, "github")).toBe("200 repeated");
    expect(await deliver(secret, "d1", { a: 2 }, "github")).toBe("200 repeated");
    expect(await deliver(secret, "d3", { a: 3 }, "github")).toBe("202 accepted");
  });
  it("[HK3] GitHub signs no time: the same signed bytes are a repetition after months, too", async () => {
    const { secret = "" } = await add({ form: "github" });
    expect(await deliver(secret, "d1", { a: 1 }, "github")).toBe("202 accepted");
    await ends(1);
    pass(stage, LIMITS.dedupeMs + 1000);
    expect(await deliver(secret, "d2", { a: 2 }, "github")).toBe("202 accepted");
    expect(await deliver(secret, "d3", { a: 1 }, "github")).toBe("200 repeated");
  });
  it("Stripe's event is known by the id in its body", async () => {
    const secret = "a signing secret of Stripe";
    await add({ form: "stripe", secret });
    expect(await deliver(secret, "", { id: "evt_1", type: "x" }, "stripe")).toBe("202 accepted");
    pass(stage, 1000);
    expect(await deliver(secret, "", { id: "evt_1", type: "x" }, "stripe")).toBe("200 repeated");
    expect((await show()).deliveries.map(({ deliveryId }) => deliveryId)).toEqual(["evt_1"]);
  });
  it("a bearer's own id counts; without one each request is a new one", async () => {
    const { secret = "" } = await add({ form: "bearer" });
    const authorization = `Bearer ${secret}`;
    const send = async (more: object = {}): Promise<string> => status(await post("gh", '{"title":1}', { authorization, ...more }));
    expect(await send({ "idempotency-key": "k1" })).toBe("202 accepted");
    expect(await send({ "idempotency-key": "k1" })).toBe("200 repeated");
    expect(await send()).toBe("202 accepted");
    expect(await send()).toBe("202 accepted");
    expect(await deliver(secret, "signed", {}, "bearer")).toBe("202 accepted");
  });
  it("a bearer's own id of any form counts, and an empty one is none", async () => {
    const { secret = "" } = await add({ form: "bearer" });
    const send = async (key: string): Promise<string> =>
      status(await post("gh", '{"title":1}', { authorization: `Bearer ${secret}`, "idempotency-key": key }));
    for (const key of ["k".repeat(5000), "k".repeat(3000), "k".repeat(257), "k".repeat(129), "k".repeat(128), "ab cd"])
      expect([await send(key), await send(key)], key.slice(0, 8)).toEqual(["202 accepted", "200 repeated"]);
    expect([await send(""), await send("")]).toEqual(["202 accepted", "202 accepted"]);
    expect((await show()).deliveries.map(({ deliveryId }) => deliveryId)).toContain("k".repeat(128));
  });
  it("an id of Stripe's event that is long counts, too", async () => {
    const secret = "a signing secret of Stripe";
    await add({ form: "stripe", secret });
    const event = { id: "evt_".repeat(40), type: "x" };
    expect(await deliver(secret, "", event, "stripe")).toBe("202 accepted");
    pass(stage, 1000);
    expect(await deliver(secret, "", event, "stripe")).toBe("200 repeated");
  });
});
