/** What is known of machines, as far as no other test of this folder shows it. */
import { reset, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import { Nodes } from "../../../src/features/nodes/store.ts";
import { client, gateway, seed } from "../../support/gateway.ts";

beforeEach(async () => {
  await reset();
  await seed();
});

describe("[OM1] when machines were seen", () => {
  test("follows each connection and each end of one, and a machine that is forgotten is in no list", async () => {
    await client();
    await runInDurableObject(gateway(), (_gateway, { storage }) => {
      const nodes = new Nodes(storage);
      const connect = (id: string, now: number): void =>
        nodes.connected({ id, version: "1", platform: "test", mode: "node" }, [], undefined, true, now);
      expect(nodes.seenSince(0)).toEqual([]);
      connect("lap", 100);
      connect("box", 200);
      expect(nodes.seenSince(0)).toEqual(["box", "lap"]);
      nodes.disconnected("lap", [], 300);
      expect(nodes.seenSince(0)).toEqual(["lap", "box"]);
      expect(nodes.seenSince(300)).toEqual(["lap"]);
      expect(nodes.seenSince(301)).toEqual([]);
      connect("box", 400);
      expect(nodes.seenSince(300)).toEqual(["box", "lap"]);
      nodes.forget("lap");
      expect(nodes.seenSince(0)).toEqual(["box"]);
    });
  });
});
