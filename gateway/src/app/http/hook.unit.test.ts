/** What requests to hooks hold in memory before anyone has checked them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { HookPort } from "../../ports/http.ts";
import { HookDoor } from "./hook.ts";

const gateway = (): HookPort => ({ hook: async () => ({ ok: true, value: "accepted" }) });

describe("[HK8] [P19] bodies of requests to hooks", () => {
  test("hold a bounded number of bytes, all together, and free them at their end", async () => {
    const door = new HookDoor();
    const open: ReadableStreamDefaultController<Uint8Array>[] = [];
    const send = (n: number, body: BodyInit): Promise<Response> => {
      const headers = { authorization: "Bearer x" };
      const request = new Request("http://gsv.test/", { method: "POST", headers, body, duplex: "half" } as RequestInit);
      return door.respond(request, `/hooks/h${n % 4}`, gateway);
    };
    const slow = (n: number): Promise<Response> =>
      send(
        n,
        new ReadableStream({
          start: (controller) => {
            open.push(controller);
            controller.enqueue(new Uint8Array(LIMITS.webhookBytes - 1));
          },
        }),
      );
    const fitting = LIMITS.hookBytesAtOnce / LIMITS.webhookBytes;
    const answers = Array.from({ length: 2 * fitting }, (_, n) => slow(n));
    const refused = await Promise.all(answers.slice(fitting));
    assert.deepEqual(new Set(refused.map(({ status }) => status)), new Set([429]));
    assert.equal((await send(0, "{}")).status, 202, "a small body fits beside them");
    for (const controller of open.slice(0, fitting)) controller.close();
    const taken = await Promise.all(answers.slice(0, fitting));
    assert.deepEqual(new Set(taken.map(({ status }) => status)), new Set([202]));
    assert.equal((await send(0, new Uint8Array(LIMITS.webhookBytes))).status, 202);
  });
});

test("[HK4] a request with very many headers keeps the ones that tell a delivery, its sender and its form", async () => {
  let got: readonly string[] = [];
  const taking: HookPort = {
    hook: async ({ headers }) => {
      got = headers.map(([name]) => name);
      return { ok: true, value: "accepted" };
    },
  };
  const needed = ["authorization", "idempotency-key", "webhook-id", "webhook-signature", "webhook-timestamp", "x-github-event"];
  const headers = new Headers(needed.map((name) => [name, "x"] as [string, string]));
  for (let number = 0; number < 100; number++) headers.set(`webhook-a${number}`, "x");
  const response = await new HookDoor().respond(
    new Request("http://gsv.test/", { method: "POST", headers, body: "{}" }),
    "/hooks/h",
    () => taking,
  );
  assert.deepEqual([response.status, got.length], [202, 64]);
  assert.deepEqual([...got.slice(0, needed.length)].sort(), needed);
});
test("[HK8] the refusal of a large body tells the sender of a hook what to do, without mentioning attachments", async () => {
  const body = new Uint8Array(LIMITS.webhookBytes + 1);
  const request = new Request("http://gsv.test/", { method: "POST", headers: { authorization: "Bearer x" }, body });
  const response = await new HookDoor().respond(request, "/hooks/h", gateway);
  const { hint } = (await response.json()) as { hint: string };
  assert.equal(response.status, 413);
  assert.match(hint, /Let the service send less/);
});
