import assert from "node:assert/strict";
import { test } from "node:test";
import type { Peer } from "../../../protocol/gen/types.ts";
import { KIT } from "./limits.ts";
import { Typing } from "./typing.ts";

const anna: Peer = { kind: "dm", id: "anna" };
const plans: Peer = { kind: "group", id: "anna" };

class Rig {
  now = 0;
  readonly shown: string[] = [];
  timers: { readonly at: number; readonly work: () => void }[] = [];
  readonly typing = new Typing({
    now: () => this.now,
    after: (ms, work) => {
      const timer = { at: this.now + ms, work };
      this.timers.push(timer);
      return () => {
        this.timers = this.timers.filter((other) => other !== timer);
      };
    },
    show: (peer, active) => void this.shown.push(`${this.now} ${peer.kind} ${active ? "on" : "off"}`),
  });
  pass(ms: number): void {
    const end = this.now + ms;
    for (let due = this.#due(end); due; due = this.#due(end)) {
      this.timers = this.timers.filter((other) => other !== due);
      this.now = due.at;
      due.work();
    }
    this.now = end;
  }
  #due(end: number) {
    return this.timers.filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
  }
}

test("[P7] typing is shown at once, repeated, and hidden at its longest time", () => {
  const rig = new Rig();
  rig.typing.begin(anna);
  rig.pass(2 * KIT.typingMaxMs);
  const times = Array.from({ length: Math.ceil(KIT.typingMaxMs / KIT.typingEveryMs) }, (_, n) => n * KIT.typingEveryMs);
  const end = times.length * KIT.typingEveryMs;
  assert.deepEqual(rig.shown, [...times.map((at) => `${at} dm on`), `${end} dm off`]);
  assert.deepEqual(rig.timers, []);
});
test("[P7] typing that begins again lasts longer from then on", () => {
  const rig = new Rig();
  rig.typing.begin(anna);
  rig.pass(KIT.typingEveryMs / 2);
  rig.typing.begin(anna);
  assert.deepEqual(rig.shown, ["0 dm on"]);
  rig.pass(KIT.typingMaxMs - 1);
  assert.equal(rig.shown.at(-1)?.endsWith("on"), true);
  rig.pass(KIT.typingEveryMs);
  assert.equal(rig.shown.at(-1)?.endsWith("off"), true);
});
test("[P7] the end hides it once and leaves no timer; conversations of another kind go on", () => {
  const rig = new Rig();
  rig.typing.end(anna);
  assert.deepEqual(rig.shown, []);
  rig.typing.begin(anna);
  rig.typing.begin(plans);
  rig.typing.end(anna);
  rig.typing.end(anna);
  assert.deepEqual(rig.shown, ["0 dm on", "0 group on", "0 dm off"]);
  assert.equal(rig.timers.length, 1);
  rig.pass(KIT.typingEveryMs);
  assert.equal(rig.shown.at(-1), `${KIT.typingEveryMs} group on`);
});
test("[P12] before a disconnect all ends without a word, and can begin again", () => {
  const rig = new Rig();
  rig.typing.begin(anna);
  rig.typing.begin(plans);
  rig.typing.endAll();
  rig.pass(KIT.typingMaxMs);
  assert.deepEqual(rig.shown, ["0 dm on", "0 group on"]);
  rig.typing.begin(anna);
  assert.equal(rig.shown.at(-1), `${KIT.typingMaxMs} dm on`);
});
