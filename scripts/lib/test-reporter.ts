/**
 * A reporter for `node --test` that writes one JSON object at the end: how many tests passed, failed and were skipped, and
 * the names of those that failed. Suites are no tests.
 */
import type { TestEvent } from "node:test/reporters";

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** `file: name: first line of the error`. */
  readonly failures: readonly string[];
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string, void> {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  const failures: string[] = [];
  for await (const event of source) {
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { data } = event;
    const isSuite = data.details.type === "suite";
    if (event.type === "test:fail") {
      // A suite fails with its tests; it counts by itself only when a hook broke.
      const error = event.data.details.error;
      if (isSuite && "failureType" in error && error.failureType === "subtestsFailed") continue;
      failed += 1;
      failures.push(`${data.file ?? ""}: ${data.name}: ${String(error.cause ?? error).split("\n")[0]}`);
    } else if (isSuite) continue;
    else if (data.skip !== undefined || data.todo !== undefined) skipped += 1;
    else passed += 1;
  }
  yield JSON.stringify({ passed, failed, skipped, failures } satisfies Outcome);
}
