/**
 * Limits of hooks: the size of a body, deliveries in a minute and in the queue, and the number of hooks. The gateway, its alarm and its
 * sessions are real; the model and the clock are fakes.
 */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { fetchWorker } from "../../support/gateway.ts";
import { pass } from "../schedule/support.ts";
import { hookStage, post, RUN, status } from "./support.ts";

const { stage, add, deliver, show } = hookStage();

describe("[HK8] [P19] limits", () => {
  it("a large body is refused before the gateway reads it, and one with a false length while it is read", async () => {
    const { secret = "" } = await add({ form: "bearer" });
    const authorization = `Bearer ${secret}`;
    const large = new Uint8Array(10 * 1024 * 1024);
    expect(await status(await fetchWorker("http://gsv.test/hooks/gh", { method: "POST", body: large, headers: { authorization } }))).toBe(
      "413 protocol.too_large",
    );
    let chunks = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        chunks++;
        controller.enqueue(new Uint8Array(65_536));
      },
    });
    expect(await status(await fetchWorker("http://gsv.test/hooks/gh", { method: "POST", body: endless, headers: { authorization } }))).toBe(
      "413 protocol.too_large",
    );
    expect(chunks).toBeLessThan(40);
    const most = JSON.stringify({ title: "x".repeat(LIMITS.webhookBytes - 12) });
    expect(most).toHaveLength(LIMITS.webhookBytes);
    expect(await status(await post("gh", most, { authorization }))).toBe("202 accepted");
    expect(await status(await post("gh", "payload=%7B%7D", { authorization }))).toBe("400 hook.bad_body");
    expect(await status(await post("gh", `${"[".repeat(65)}${"]".repeat(65)}`, { authorization }))).toBe("400 hook.bad_body");
  });
  it("a hook answers 429 to the 61st delivery of a minute, and 503 to the 101st that waits", async () => {
    const { secret = "" } = await add();
    await stage.peer.ok("gateway.stop");
    for (let n = 0; n < LIMITS.hookPerMinute; n++) await deliver(secret, `a${n}`);
    expect(await deliver(secret, "late")).toBe("429 limit.rate");
    pass(stage, 61_000);
    for (let n = LIMITS.hookPerMinute; n < LIMITS.hookQueue; n++) expect(await deliver(secret, `a${n}`)).toBe("202 accepted");
    expect(await deliver(secret, "full")).toBe("503 hook.full");
    expect(await deliver(secret, "a1")).toBe("200 repeated");
    expect((await show()).hook).toMatchObject({ waiting: LIMITS.hookQueue, accepted: LIMITS.hookQueue });
  });
  it("the 51st hook is refused", async () => {
    for (let n = 0; n < LIMITS.hooks; n++) await add({ name: `h${n}` });
    expect((await stage.peer.refused("hook.add", { name: "more", form: "github", target: RUN })).reason).toBe("hook.too_many");
  });
});
