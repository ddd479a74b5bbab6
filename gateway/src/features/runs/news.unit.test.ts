/** [RT2] [DG6] What ends the wait for a run. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Subscriptions } from "../../kernel/subscriptions.ts";
import { News } from "./news.ts";

const HOUR = 3_600_000;

function followed() {
  const timers: { readonly ms: number; readonly work: () => void }[] = [];
  const after = (ms: number, work: () => void) => {
    timers.push({ ms, work });
    return () => undefined;
  };
  const subscriptions = new Subscriptions();
  const listeners = new Set<() => void>();
  const onChange = (listener: (change: { sessionKey: string; ended: readonly string[] }) => void) => {
    const told = (): void => listener({ sessionKey: "another", ended: [] });
    listeners.add(told);
    return { stop: () => void listeners.delete(told) };
  };
  const approvals = { onChange, waiting: () => [], knows: () => false, answer: () => assert.fail("nothing is answered") };
  const news = new News({ subscriptions, approvals, after }, "s", "r");
  const says = (state: string, runId = "r"): void => subscriptions.publish("s", [{ event: "chat", payload: { runId, state } }]);
  let isOver = false;
  const wait = (): Promise<void> => {
    isOver = false;
    return news.next(HOUR).then(() => {
      isOver = true;
    });
  };
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return { timers, news, says, wait, turn, listeners, isOver: () => isOver };
}

test("[RT2] news that come before the wait are not lost, and count once", async () => {
  const { news, says, wait, turn, isOver } = followed();
  says("final");
  await wait();
  void wait();
  await turn();
  assert.equal(isOver(), false);
  says("error");
  await turn();
  assert.equal(isOver(), true);
  news.end();
});
test("[RT2] other runs and other states of the run are no news", async () => {
  const { news, says, wait, turn, isOver } = followed();
  const waiting = wait();
  says("final", "another");
  says("delta");
  await turn();
  assert.equal(isOver(), false);
  says("paused");
  await waiting;
  news.end();
});
test("[DG6] a question anywhere ends the wait, because it may be that of a task below", async () => {
  const { news, wait, listeners } = followed();
  const waiting = wait();
  for (const tell of listeners) tell();
  await waiting;
  news.end();
  assert.equal(listeners.size, 0);
});
test("[RT2] the wait ends after its time", async () => {
  const { timers, news, wait, turn, isOver } = followed();
  void wait();
  await turn();
  assert.deepEqual([timers.map(({ ms }) => ms), isOver()], [[HOUR], false]);
  timers[0]?.work();
  await turn();
  assert.equal(isOver(), true);
  news.end();
});
