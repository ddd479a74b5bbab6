/** Deliver: order, retries and what waits. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type SessionNews, sessionSeqOf } from "../../ports/gateway.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import { Deliverer } from "./deliver.ts";
import { flight, base, thinking } from "../../../test/session/effect-bench.ts";

describe("Deliver", () => {
  const final = (seq: number): LogRow => ({
    seq,
    at: 0,
    runId: `r${seq}`,
    kind: "notice",
    notice: "error",
    text: "t",
  });
  test("[P11] a failed delivery is not overtaken: the next one begins with the missing events", async () => {
    const sent: (number | undefined)[][] = [];
    let up = false;
    const events: EventBody[] = [];
    const deliverer = new Deliverer(
      {
        state: () => base,
        rows: () => [],
        news: (news: readonly SessionNews[]) => {
          if (up) sent.push(news.map(sessionSeqOf));
          return Promise.resolve(up);
        },
        commit: (event) => events.push(event),
      },
      0,
    );
    deliverer.written([final(1)]);
    assert.deepEqual(await deliverer.deliver({ type: "Deliver", id: "deliver/1", upto: 1 }, flight()), { retryInMs: 1_000 });
    deliverer.written([final(2)]);
    up = true;
    assert.equal(await deliverer.deliver({ type: "Deliver", id: "deliver/2", upto: 2 }, flight()), "done");
    assert.deepEqual(sent, [[1, 2]]);
    assert.deepEqual(events, [{ type: "Delivered", upto: 2 }]);
  });
  test("[D2] during a run a delivery costs no commit of its own", async () => {
    const events: EventBody[] = [];
    const deliverer = new Deliverer(
      { state: () => thinking, rows: () => [], news: () => Promise.resolve(true), commit: (event) => events.push(event) },
      0,
    );
    deliverer.written([final(1)]);
    await deliverer.deliver({ type: "Deliver", id: "deliver/1", upto: 1 }, flight());
    assert.deepEqual([events, deliverer.published], [[], 1]);
  });
  test("[K24] after a wake the events come from the log", async () => {
    const sent: SessionNews[] = [];
    const rows = [1, 2, 3].map(final);
    const deliverer = new Deliverer(
      {
        state: () => base,
        rows: (from, limit) => rows.filter((row) => row.seq >= from).slice(0, limit),
        news: (news) => {
          sent.push(...news);
          return Promise.resolve(true);
        },
        commit: () => {},
      },
      1,
    );
    await deliverer.deliver({ type: "Deliver", id: "deliver/3", upto: 3 }, flight({ inherited: true }));
    assert.deepEqual(sent.map(sessionSeqOf), [2, 3]);
  });
});
