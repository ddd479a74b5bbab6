/**
 * A reporter for `node --test` that writes one JSON object at the end: how many tests passed, failed and were skipped, and the names
 * of those that failed. Suites and files are no tests. A file fails when none of its tests ran, or when its process ended before it
 * had reported all of them: node itself counts such a file as one passed test.
 */
import { resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** `file: name: first line of the error`. */
  readonly failures: readonly string[];
}

/** Node reports a file that has no test of its own as a test whose name is the file's path. */
const isFile = ({
  name,
  file,
  nesting,
}: {
  readonly name: string;
  readonly file?: string | undefined;
  readonly nesting: number;
}): boolean => nesting === 0 && file !== undefined && resolve(name) === file;

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string, void> {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  const failures: string[] = [];
  const files = new Set<string>();
  /** Tests that each file has reported, for files whose process reached its end. */
  const ended = new Map<string, number>();
  const broken = new Set<string>();
  for await (const event of source) {
    if (event.type === "test:enqueue" && isFile(event.data)) files.add(event.data.file ?? "");
    if (event.type === "test:summary" && event.data.file !== undefined) ended.set(event.data.file, event.data.counts.tests);
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { data } = event;
    const isSuite = data.details.type === "suite";
    if (event.type === "test:fail") {
      // A suite fails with its tests. It counts only when a hook failed.
      const error = event.data.details.error;
      if (isSuite && "failureType" in error && error.failureType === "subtestsFailed") continue;
      failed += 1;
      failures.push(`${data.file ?? ""}: ${data.name}: ${String(error.cause ?? error).split("\n")[0]}`);
      if (isFile(data)) broken.add(data.file ?? "");
    } else if (isSuite || isFile(data)) continue;
    else if (data.skip !== undefined || data.todo !== undefined) skipped += 1;
    else passed += 1;
  }
  for (const file of files) {
    const tests = ended.get(file);
    if (broken.has(file) || (tests !== undefined && tests > 0)) continue;
    failed += 1;
    failures.push(`${file}: ${tests === 0 ? "it has no test" : "its process ended before all its tests had run"}`);
  }
  yield JSON.stringify({ passed, failed, skipped, failures } satisfies Outcome);
}
