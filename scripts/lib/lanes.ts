/** Reads what test runners say: counts and names of failures. Pure: takes texts. Names stand in front of what they mean. */
import type { Outcome } from "./test-reporter.ts";

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const count = (value: unknown): number => (typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : 0);

/** What `test-reporter.ts` wrote; null when it did not get that far. */
export function fromNode(text: string): Outcome | null {
  const json = parsed(text);
  if (json === null) return null;
  const failures = Array.isArray(json["failures"]) ? json["failures"].map(String) : [];
  return { passed: count(json["passed"]), failed: count(json["failed"]), skipped: count(json["skipped"]), failures };
}

/** vitest's JSON reporter. A file that could not be loaded has no tests and is one failure. */
export function fromVitest(text: string): Outcome | null {
  const json = parsed(text);
  if (json === null || !Array.isArray(json["testResults"])) return null;
  const failures: string[] = [];
  for (const file of json["testResults"].filter(isObject)) {
    const tests = Array.isArray(file["assertionResults"]) ? file["assertionResults"].filter(isObject) : [];
    const bad = tests.filter(({ status }) => status === "failed");
    for (const test of bad) failures.push(`${String(file["name"])}: ${String(test["fullName"])}: ${firstLine(test["failureMessages"])}`);
    if (file["status"] === "failed" && bad.length === 0)
      failures.push(`${String(file["name"])}: ${String(file["message"]).split("\n")[0]}`);
  }
  return {
    passed: count(json["numPassedTests"]),
    failed: Math.max(failures.length, count(json["numFailedTests"])),
    skipped: count(json["numPendingTests"]) + count(json["numTodoTests"]),
    failures,
  };
}
const firstLine = (messages: unknown): string => (Array.isArray(messages) ? String(messages[0] ?? "").split("\n")[0] : "") ?? "";

/** What cargo and Rust's test harness print. A harness of its own counts as one test when cargo names it as failed. */
export function fromCargo(text: string): Outcome {
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const match of text.matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/gm)) {
    passed += Number(match[1]);
    failed += Number(match[2]);
    skipped += Number(match[3]);
  }
  const failures = [...text.matchAll(/^test (.+) \.\.\. FAILED$/gm)].map((match) => match[1] ?? "");
  return { passed, failed, skipped, failures };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(text);
    return isObject(json) ? json : null;
  } catch {
    return null;
  }
}

/** A lane that failed without saying where, or in which nothing ran, is a failure too. */
export function judged(outcome: Outcome | null, exitCode: number): Outcome {
  const found = outcome ?? { passed: 0, failed: 0, skipped: 0, failures: [] };
  if (exitCode !== 0 && found.failed === 0)
    return { ...found, failed: 1, failures: [...found.failures, `the runner ended with ${exitCode}; see its log`] };
  if (found.passed + found.failed === 0) return { ...found, failed: 1, failures: ["no test ran"] };
  return found;
}

/** The last line of a run. */
export const total = ({ passed, failed, skipped }: Pick<Outcome, "passed" | "failed" | "skipped">): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
