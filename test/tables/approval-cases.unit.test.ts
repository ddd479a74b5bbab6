/** Each case of approval-cases.txt has a test that names it, and no test names a case that is not there. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CASE = /^(P-\d\d) \S/;
/** In the name of a test or of a row of `each`. */
const NAMED = /"((?:\[[A-Z0-9-]+\] ?)*\[P-\d\d\][^"]*)"/g;

test("the 45 attacks on questions each have a test", (t) => {
  const table = readFileSync(join(ROOT, "test", "tables", "approval-cases.txt"), "utf8").split("\n");
  const cases = table.flatMap((line) => CASE.exec(line)?.[1] ?? []);
  assert.deepEqual(
    cases,
    Array.from({ length: 45 }, (_, index) => `P-${String(index + 1).padStart(2, "0")}`),
  );
  const tests = globSync("gateway/test/**/*.test.ts", { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(NAMED)].map(([, name = ""]) => ({ file, name })),
  );
  const named = new Set(tests.flatMap(({ name }) => [...name.matchAll(/\[(P-\d\d)\]/g)].map(([, id = ""]) => id)));
  assert.deepEqual([...named].toSorted(), cases);
  t.diagnostic(`${cases.length} attacks on questions in ${tests.length} tests of ${new Set(tests.map(({ file }) => file)).size} files`);
});
