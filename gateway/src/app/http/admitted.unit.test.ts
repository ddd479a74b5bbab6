import assert from "node:assert/strict";
import { test } from "node:test";
import { AdmittedCallers } from "./admitted.ts";

test("[RT1] 64 admitted callers are remembered; a further one takes the room of the first, and a known one of none", () => {
  const callers = new AdmittedCallers();
  const all = Array.from({ length: 65 }, (_, index) => ({ token: `t${index}`, address: "" }));
  const known = () => all.flatMap((caller, index) => (callers.has(caller) ? [index] : []));
  for (const caller of all.slice(0, 64)) callers.add(caller);
  callers.add({ token: "t0", address: "another" });
  assert.deepEqual([known().length, known()[0]], [64, 0]);
  callers.add(all[64] ?? { address: "" });
  assert.deepEqual([known().length, known()[0]], [64, 1]);
  callers.remove({ token: "t1", address: "" });
  assert.deepEqual([known().length, known()[0]], [63, 2]);
  assert.ok(!callers.has({ token: "t2", origin: "https://page.test", address: "" }), "a page is another caller");
});
