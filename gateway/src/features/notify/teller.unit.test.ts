import assert from "node:assert/strict";
import { test } from "node:test";
import type { NotificationRow } from "../../ports/notify.ts";
import { Teller, type TellerPorts } from "./teller.ts";

const ROW: NotificationRow = {
  id: 7,
  key: "k",
  kind: "job",
  cause: "c",
  agentId: "main",
  text: "It failed.",
  createdAt: 0,
  state: "waiting",
  dueAt: 0,
  body: {},
};

test("[NT6] a channel that has not answered after 30 s is asked again later, and the alarm looks at it meanwhile", async () => {
  const waits: number[] = [];
  const timers: { readonly ms: number; readonly work: () => void }[] = [];
  let asks = 0;
  const ports = {
    now: () => 1_000,
    arm: () => undefined,
    background: () => undefined,
    config: { effective: () => ({ notifications: { job: "last" }, userTimezone: "UTC" }) },
    log: { warn: () => undefined },
    channelsOut: {
      lastOwn: () => "whatsapp/default/dm/ann",
      problemOf: () => undefined,
      refusalOf: () => undefined,
      notify: () => {
        asks++;
        return new Promise(() => undefined);
      },
    },
    notifyRows: {
      waiting: () => [{ ...ROW, dueAt: waits.at(-1) ?? 0 }],
      together: () => [ROW],
      find: () => ROW,
      asked: () => undefined,
      wait: (_id: number, dueAt: number) => waits.push(dueAt),
    },
    timer: (ms: number, work: () => void) => {
      timers.push({ ms, work });
      return () => undefined;
    },
  } as unknown as TellerPorts;
  const teller = new Teller(ports);
  assert.equal(teller.next(), 0);
  teller.start();
  teller.start();
  assert.equal(teller.next(), 61_000);
  await new Promise(setImmediate);
  assert.deepEqual([asks, timers.map(({ ms }) => ms)], [1, [30_000]]);
  timers[0]?.work();
  await teller.ended(ROW.id);
  assert.equal(waits.length, 1);
  assert.ok((waits[0] ?? 0) > 1_000);
  assert.equal(teller.next(), waits[0]);
});
