/** Two versions that are measured in turn, and what is said of their values. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inTurn, pairTable } from "./pair.ts";

describe("two versions in turn", () => {
  it("each round measures both, every second one in the other order, and gives its own ratio", async () => {
    const asked: string[] = [];
    // This machine gets slower with each measurement, for both.
    const rows = await inTurn(
      ["old", "new"],
      4,
      [
        ["time", "ms"],
        ["size", "MB"],
      ],
      async (system, round) => {
        asked.push(`${system} ${round}`);
        return [(system === "old" ? 10 : 20) * (round + 1), system === "old" ? 5 : 4];
      },
    );
    assert.deepEqual(asked, ["old 0", "new 0", "new 1", "old 1", "old 2", "new 2", "new 3", "old 3"]);
    const [time, size] = rows;
    assert.deepEqual([time?.before, time?.after, time?.ratio, time?.from, time?.to], [25, 50, 2, 2, 2]);
    assert.deepEqual([size?.name, size?.unit, size?.ratio], ["size", "MB", 0.8]);
  });
  it("the table shows where half of the rounds lie, when they differ", async () => {
    const values = [1, 1, 1, 2, 1, 3, 1, 4];
    const rows = await inTurn([0, 1], 4, [["time", "ms"]], async (system, round) => [values[round * 2 + system] ?? 0]);
    assert.match(pairTable(rows), /time\s+1(\.\d+)? ms\s+2\.5\d* ms\s+2\.50x\s+2\.00 to 4\.00/);
  });
});
