import assert from "node:assert/strict";
import { afterEach, beforeEach, it, mock } from "node:test";
import { RangeReader } from "./range-reader.ts";

const FILE = Uint8Array.from({ length: 1_000 }, (_, at) => at % 251);
/** A file in pieces of 70 bytes, and how often it was opened, read and given up. */
function scene() {
  const count = { opened: 0, pieces: 0, cancelled: 0 };
  const ranges = new RangeReader(async (version) => {
    if (version === "none") return null;
    count.opened += 1;
    let at = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (at >= FILE.length) return controller.close();
          count.pieces += 1;
          controller.enqueue(FILE.slice(at, at + 70));
          at += 70;
        },
        cancel() {
          count.cancelled += 1;
        },
      },
      { highWaterMark: 0 },
    );
  });
  const read = async (offset: number, length: number, version = "v"): Promise<void> => {
    const body = await ranges.read(version, { offset, length });
    const bytes = new Uint8Array(await new Response(body).arrayBuffer());
    assert.deepEqual(bytes, FILE.slice(offset, offset + length), `${offset} ${length}`);
  };
  return { count, ranges, read };
}

// A stream that is kept has a timer, for which the process would wait.
beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

it("[CL5] ranges that follow each other are read in one stream, and no byte twice", async () => {
  const { count, read } = scene();
  for (let offset = 0; offset < 1_000; offset += 100) await read(offset, 100);
  assert.deepEqual(count, { opened: 1, pieces: 15, cancelled: 0 });
});

it("[CL5] a range anywhere else begins a stream, and what can't be read is no content", async () => {
  const { count, ranges, read } = scene();
  await read(300, 33);
  await read(5, 70);
  await read(333, 500);
  await read(333, 10);
  await read(343, 10, "w");
  assert.equal(count.opened, 4);
  assert.equal(await ranges.read("none", { offset: 0, length: 1 }), null);
  await assert.rejects(read(990, 20), /shorter than its object/);
});

it("[CL5] few streams are kept, none for long, and one whose reader stops is given up", async () => {
  const { count, ranges, read } = scene();
  for (let file = 0; file < 5; file++) await read(0, 10, `v${file}`);
  assert.deepEqual([count.opened, count.cancelled], [5, 1]);
  await read(10, 10, "v4");
  assert.equal(count.opened, 5);
  mock.timers.tick(30_000);
  assert.equal(count.cancelled, 5);
  await read(20, 10, "v4");
  assert.equal(count.opened, 6);
  const stopped = await ranges.read("v", { offset: 0, length: 500 });
  await stopped?.cancel();
  assert.equal(count.cancelled, 6);
});
