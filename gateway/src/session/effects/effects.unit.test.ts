/** The small effects: cancel, archive, store a result. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { State } from "../machine/state.ts";
import { archive } from "./archive.ts";
import { cancelTool } from "./cancel-tool.ts";
import { storeResult } from "./store-result.ts";
import { archiving, base, flight, ORIGIN } from "../../../test/session/effect-bench.ts";
import type { After } from "../../../../protocol/runtime/within.ts";

describe("the small effects", () => {
  test("CancelTool is given up after five tries", async () => {
    const effect: EffectOf<"CancelTool"> = { type: "CancelTool", id: "cancel/1", nodeId: "lap", callIds: ["c"], reason: "r" };
    const events: EventBody[] = [];
    const ports = {
      gateway: { cancelTools: () => Promise.reject(new Error("away")) },
      commit: (event: EventBody) => void events.push(event),
    };
    assert.deepEqual(await cancelTool(effect, flight({ tries: 3 }), ports), { retryInMs: 8_000 });
    assert.equal(await cancelTool(effect, flight({ tries: 4 }), ports), "done");
    assert.deepEqual(events, [{ type: "EffectDone", effectId: "cancel/1" }]);
  });
  test("StoreResult is parked after ten, never dropped", async () => {
    const effect: EffectOf<"StoreResult"> = { type: "StoreResult", id: "store/c", callId: "c" };
    const events: EventBody[] = [];
    const ports = {
      state: () => base,
      text: () => "long",
      files: { put: () => Promise.resolve({ ok: false as const, error: { reason: "storage.failed" as const, message: "away" } }) },
      commit: (event: EventBody) => void events.push(event),
    };
    assert.deepEqual(await storeResult(effect, flight({ tries: 8 }), ports), { retryInMs: 256_000 });
    assert.equal(await storeResult(effect, flight({ tries: 9 }), ports), "done");
    assert.deepEqual(events, []);
  });
  test("[P17] Archive reports the store's result, and a hanging store as a failure", async () => {
    const state: State = { ...base, run: archiving };
    const rows = [
      { seq: 1, at: 0, runId: "r", kind: "user", messageId: "m", origin: ORIGIN, message: { role: "user", content: "x", timestamp: 0 } },
    ] as const;
    const effect: EffectOf<"Archive"> = { type: "Archive", id: "a1/0", notBefore: 0 };
    const ports = (put: () => Promise<{ ok: true; value: { key: string; sha256: string; count: number } }>, after: After) => ({
      state: () => state,
      messages: () => rows,
      archives: { put },
      after,
    });
    const never = <T>(): Promise<T> => new Promise(() => {});
    const endless: After = () => () => {};
    const atOnce: After = (_ms, work) => {
      work();
      return () => {};
    };
    assert.deepEqual(
      await archive(
        effect,
        ports(() => Promise.resolve({ ok: true, value: { key: "k", sha256: "h", count: 1 } }), endless),
      ),
      { type: "Archived", effectId: "a1/0", key: "k", count: 1 },
    );
    assert.equal((await archive(effect, ports(never, atOnce)))?.type, "ArchiveFailed");
    assert.equal(
      (
        await archive(
          effect,
          ports(() => Promise.reject(new Error("boom")), endless),
        )
      )?.type,
      "ArchiveFailed",
    );
    assert.equal(await archive({ ...effect, id: "a1/1" }, ports(never, endless)), undefined);
  });
});
