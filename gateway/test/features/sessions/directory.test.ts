/** The directory of sessions finds a session by its key and by its ref. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { Sessions } from "../../../src/features/sessions/store.ts";
import { client, gateway, seed } from "../../support/gateway.ts";

beforeEach(async () => {
  await reset();
  await seed();
});

describe("[G1] the session behind a call", () => {
  test("is found by its ref, also by a gateway that has just started, and not after its deletion", async () => {
    await client();
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      const directory = (): Sessions => new Sessions(storage, () => undefined);
      const sessions = directory();
      const key = "agent:main:cli:dm:a";
      const { ref } = sessions.touch(key, 1);
      expect(sessions.keyOf(ref)).toBe(key);
      expect(directory().keyOf(ref)).toBe(key);
      sessions.remove(key);
      expect(sessions.keyOf(ref)).toBeUndefined();
      const second = sessions.touch(key, 2).ref;
      expect(second).not.toBe(ref);
      expect([sessions.keyOf(ref), sessions.keyOf(second)]).toEqual([undefined, key]);
    });
  });
});
