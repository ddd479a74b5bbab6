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
