import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type AskingLogOptions, createAskingLog } from "./asking-log.ts";

const CANARY = "correct horse battery";
interface Written {
  readonly level: string;
  readonly event: string;
  readonly ts: string;
  readonly [field: string]: unknown;
}
/** A log whose answers and timers the test plays. */
class Bench {
  readonly lines: Written[] = [];
  readonly kept: Promise<void>[] = [];
  readonly timers: (() => void)[] = [];
  text = "";
  asked = 0;
  now = 0;
  readonly log;

  constructor(secrets: AskingLogOptions["secrets"]) {
    this.log = createAskingLog({
      component: "test",
      clock: { now: () => this.now },
      secrets: () => {
        this.asked += 1;
        return secrets();
      },
      keep: (work) => void this.kept.push(work),
      sink: (level, line) => {
        this.text += line;
        this.lines.push({ ...(JSON.parse(line) as Written), level });
      },
      after: (_ms, work) => {
        this.timers.push(work);
        return () => undefined;
      },
    });
  }
  async written(): Promise<void> {
    await Promise.all(this.kept);
  }
}

describe("[S17] the log of a component that asks for the secrets", () => {
  test("writes nothing before it knows them, then every line in order, with its own time", async () => {
    let answer = (_values: readonly string[]): void => undefined;
    const bench = new Bench(() => new Promise((resolve) => (answer = resolve)));
    bench.log.warn("one", { error: new Error(`no ${CANARY} today`) });
    bench.now = 1000;
    bench.log.error("two", { text: CANARY });
    assert.deepEqual([bench.lines.length, bench.asked], [0, 1]);
    answer([CANARY]);
    await bench.written();
    assert.deepEqual(
      bench.lines.map(({ level, event, ts }) => [level, event, Date.parse(ts)]),
      [
        ["warn", "one", 0],
        ["error", "two", 1000],
      ],
    );
    assert.ok(bench.text.includes("no [redacted] today"));
    assert.ok(!bench.text.includes(CANARY));
  });

  test("asks again for a later line, because a secret may be new", async () => {
    let values: readonly string[] = [];
    const bench = new Bench(() => Promise.resolve(values));
    bench.log.info("one");
    await bench.written();
    values = [CANARY];
    bench.log.info("two", { text: CANARY });
    await bench.written();
    assert.equal(bench.asked, 2);
    assert.ok(!bench.text.includes(CANARY));
  });

  for (const [title, secrets, play] of [
    ["does not answer in time", () => new Promise<never>(() => undefined), (bench: Bench) => bench.timers[0]?.()],
    ["fails", () => Promise.reject(new Error(CANARY)), () => undefined],
  ] as const) {
    test(`writes no texts when the gateway ${title}`, async () => {
      const bench = new Bench(secrets);
      const changed = new Error(`first ${CANARY}`);
      changed.message = "other";
      bench.log.error("failed", {
        count: 3,
        what: CANARY,
        error: new TypeError(`refused:\n    at ${CANARY} (x.js:1:1)`),
        changed,
        deep: { list: [CANARY], name: CANARY },
      });
      play(bench);
      await bench.written();
      const [line] = bench.lines;
      assert.deepEqual([line?.event, line?.["count"]], ["failed", 3]);
      assert.equal((line?.["error"] as { error: string } | undefined)?.error, "TypeError");
      assert.match(bench.text, /asking-log\.unit\.test/, "the place in the code is kept");
      assert.ok(!bench.text.includes(CANARY), bench.text);
    });
  }

  test("keeps a bounded number of lines while it waits, and says how many it dropped", async () => {
    const bench = new Bench(() => Promise.resolve([]));
    for (let at = 0; at < 250; at++) bench.log.info("again", { at });
    await bench.written();
    assert.equal(bench.lines.length, 101);
    assert.deepEqual([bench.lines[100]?.event, bench.lines[100]?.["lines"]], ["log_lines_dropped", 150]);
  });
});
