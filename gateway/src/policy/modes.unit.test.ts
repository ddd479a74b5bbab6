import assert from "node:assert/strict";
import { test } from "node:test";
import { TRANSFER } from "./call-class.ts";
import { egressText } from "./modes.ts";

test("[AP10] the question about a copy shows the machine and the end of a long path, and that something is left out", () => {
  const copies = (source: unknown): string =>
    egressText({
      name: TRANSFER,
      tool: TRANSFER,
      target: { kind: "native" },
      policyClass: "egress",
      args: { source, destination: "srv:/x" },
    });
  assert.equal(copies("lap:a.txt"), 'It copies "lap:a.txt" to "srv:/x".');
  const long = copies(`lap:/home/me/gsv/${"./".repeat(200)}../../.aws/credentials`);
  assert.match(long, /^It copies "lap:\/home\/me\/gsv\/.* \u2026 .*\.\.\/\.\.\/\.aws\/credentials" to "srv:\/x"\.$/u);
  assert.ok(long.length < 260, String(long.length));
});
