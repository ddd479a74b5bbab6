import assert from "node:assert/strict";
import { it, mock } from "node:test";
import { addGcPressure } from "../runtime/gc-pressure.ts";

it("asks for a memory that the engine counts, and says when it can't have one", () => {
  assert.equal(addGcPressure(8 * 1024 * 1024), true);
  const refused = mock.method(WebAssembly, "Memory", function refuse() {
    throw new RangeError("no addresses are left");
  });
  assert.equal(addGcPressure(1), false);
  assert.deepEqual(
    refused.mock.calls.map(({ arguments: [descriptor] }) => descriptor),
    [{ initial: 1 }],
  );
  refused.mock.restore();
});
