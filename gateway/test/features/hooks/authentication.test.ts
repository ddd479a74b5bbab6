/**
 * Which requests a hook takes: signed ones of its own service, at its address only, and the signed sample. The gateway, its alarm and
 * its sessions are real; the model and the clock are fakes.
 */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { keyOf, sign } from "../../../src/features/hooks/signature.ts";
import { ADMIN, fetchWorker } from "../../support/gateway.ts";
import { alarm, asked } from "../schedule/support.ts";
import { hookStage, post, status } from "./support.ts";

const { stage, calls, add, deliver, show, ends } = hookStage();

describe("[HK2] [HK3] [S3] authentication", () => {
  it("a wrong signature, none, an old one and an unknown name get the same answer, and nothing is stored", async () => {
    const { secret = "" } = await add();
    const { secret: other = "" } = await add({ name: "other" });
    const text = '{"title":"x"}';
    const signed = sign("standard", keyOf("standard", secret) ?? new Uint8Array(), "d1", stage.now, text);
    const late = sign("standard", keyOf("standard", secret) ?? new Uint8Array(), "d1", stage.now - LIMITS.hookToleranceMs - 1000, text);
    const foreign = sign("standard", keyOf("standard", other) ?? new Uint8Array(), "d1", stage.now, text);
    const answers = await Promise.all([
      post("gh", text, foreign),
      post("gh", `${text} `, signed),
      post("gh", text, late),
      post("gh", text, {}),
      post("gh", text, { authorization: `Bearer ${secret}` }),
      post("gh", text, { authorization: `Bearer ${ADMIN}` }),
      post("absent", text, signed),
      post("absent", text, {}),
      post("absent", text, { authorization: "Bearer x" }),
    ]);
    const bodies = await Promise.all(answers.map(async (answer) => `${answer.status} ${await answer.text()}`));
    expect(new Set(bodies)).toEqual(new Set([bodies[0]]));
    expect(bodies[0]).toContain("hook.refused");
    expect((await show()).deliveries).toEqual([]);
    expect((await show()).hook.refused).toBe(5);
    await alarm();
    expect(calls).toHaveLength(0);
  });
  it("[AU1] refused requests are a few entries of the audit, and accepted ones each an entry with its id", async () => {
    const { secret = "" } = await add();
    for (let n = 0; n < 30; n++)
      await post("gh", "{}", { "webhook-signature": `v1,${"A".repeat(43)}=`, "webhook-id": "x", "webhook-timestamp": "1" });
    await deliver(secret, "d1");
    const { entries } = await stage.peer.ok<ResultOf<"audit.list">>("audit.list", { action: "hook.deliver" });
    expect(entries.filter(({ decision }) => decision === "denied")).toHaveLength(10);
    expect(entries.filter(({ decision }) => decision === "allowed")).toMatchObject([{ target: "gh", detail: "d1" }]);
  });
  it("[HK8] browsers, other methods and other addresses are refused", async () => {
    const { secret = "" } = await add({ form: "bearer" });
    const authorization = `Bearer ${secret}`;
    expect(await status(await post("gh", "{}", { authorization, Origin: "https://evil.example" }))).toBe("403 auth.origin");
    expect(await status(await fetchWorker("http://gsv.test/hooks/gh", { headers: { authorization } }))).toBe("405 protocol.unsupported");
    const opened = await fetchWorker("http://gsv.test/hooks/gh");
    expect(await opened.json()).toMatchObject({ status: 405, hint: expect.stringContaining("`gsv hook test NAME`") });
    for (const path of ["", "gh/x", "GH", "a b", "_x"])
      expect(await status(await post(path, "{}", { authorization })), path).toBe("404 protocol.unknown_method");
  });
});

it("[HK8] [F77] under another host name, hooks answer and nothing else does", async () => {
  const { secret = "" } = await add({ form: "bearer" });
  const at = (path: string, init: RequestInit<IncomingRequestCfProperties>) =>
    fetchWorker(`https://tunnel.example${path}`, init, { ENVIRONMENT: "embedded" });
  expect(await status(await at("/hooks/gh", { method: "POST", body: "{}", headers: { authorization: `Bearer ${secret}` } }))).toBe(
    "202 accepted",
  );
  for (const path of ["/health", "/ws", "/media/x", "/openapi.json"])
    expect(await status(await at(path, { headers: { authorization: `Bearer ${ADMIN}` } })), path).toBe("403 auth.host");
});

describe("[HK12] a signed sample", () => {
  for (const form of ["standard", "github", "stripe", "bearer"] as const)
    it(`of the form ${form} is accepted like every delivery, once`, async () => {
      await add({ form, ...(form === "stripe" ? { secret: "a signing secret of Stripe" } : {}) });
      const sample = await stage.peer.ok<ResultOf<"hook.test">>("hook.test", { name: "gh", body: '{"title":"sample"}' });
      const send = async (): Promise<string> =>
        status(await fetchWorker(`http://gsv.test${sample.path}`, { method: "POST", body: sample.body, headers: sample.headers }));
      expect(await send()).toBe("202 accepted");
      expect(await send()).toBe("200 repeated");
      await ends(1);
      expect(asked(calls[0])).toContain("sample");
      expect((await show()).deliveries[0]?.deliveryId).toBe(sample.deliveryId);
    });
  it("whose body is no object is refused", async () => {
    await add();
    for (const body of ["[1]", "no", '"x"'])
      expect((await stage.peer.refused("hook.test", { name: "gh", body })).reason).toBe("hook.bad_body");
    expect((await stage.peer.refused("hook.test", { name: "none" })).reason).toBe("hook.not_found");
  });
});
