/** Reads what test runners print: counts and names of failures. PURE: takes texts. */
import type { Outcome } from "./test-reporter.ts";

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const count = (value: unknown): number => (typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : 0);

/** What `test-reporter.ts` wrote; null when it wrote nothing. */
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

/**
 * What cargo and Rust's test harness print. A test program with a harness of its own prints no result line: its tests are counted by
 * their own lines.
 */
export function fromCargo(text: string): Outcome {
  const sum = { passed: 0, failed: 0, skipped: 0 };
  const failures: string[] = [];
  for (const program of text.split(/^(?= *(?:Running|Doc-tests) )/m)) {
    const failedHere = [...program.matchAll(/^test (.+) \.\.\. FAILED$/gm)].map((match) => match[1] ?? "");
    failures.push(...failedHere);
    const results = [...program.matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;/gm)];
    if (results.length === 0) {
      sum.passed += [...program.matchAll(/^test .+ \.\.\. ok$/gm)].length;
      sum.failed += failedHere.length;
    }
    for (const [, passed, failed, skipped] of results) {
      sum.passed += Number(passed);
      sum.failed += Number(failed);
      sum.skipped += Number(skipped);
    }
  }
  return { ...sum, failures };
}

/** A command that has no tests of its own counts as one. It passes only when its output also has the words that prove that it ran. */
export function fromCommand({ code, output }: { readonly code: number; readonly output: string }, name: string, proof: RegExp): Outcome {
  const failure = (text: string): Outcome => ({ passed: 0, failed: 1, skipped: 0, failures: [`${name}: ${text}`] });
  if (code !== 0) return failure(output.trim().split("\n").slice(-12).join("\n    "));
  if (!proof.test(output)) return failure("it ended with 0 and did not say that it had finished");
  return { passed: 1, failed: 0, skipped: 0, failures: [] };
}

/** A build whose compiler also lints: each warning is a failure, also one that cargo repeats from an earlier build. */
export function fromLints(result: { readonly code: number; readonly output: string }, proof: RegExp): Outcome {
  if (result.code !== 0) {
    // What follows the first error may be long: warnings of other crates.
    const error = result.output.search(/^error/m);
    const output = error === -1 ? result.output : result.output.slice(error).split("\n").slice(0, 12).join("\n");
    return fromCommand({ ...result, output }, "clippy", proof);
  }
  const warned = [...result.output.matchAll(/^warning: (`.+ generated \d+ warnings?)/gm)].map(([, text]) => text ?? "");
  if (warned.length === 0) return fromCommand(result, "clippy", proof);
  const advice = "to see them, run `cargo clippy --workspace --all-targets`";
  return { passed: 0, failed: 1, skipped: 0, failures: [`clippy: ${warned.join("; ")}; ${advice}`] };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    const json: unknown = JSON.parse(text);
    return isObject(json) ? json : null;
  } catch {
    return null;
  }
}

/** A lane whose runner failed without naming a test, or in which no test ran, fails too. */
export function judged(outcome: Outcome | null, exitCode: number): Outcome {
  const found = outcome ?? { passed: 0, failed: 0, skipped: 0, failures: [] };
  if (exitCode !== 0 && found.failed === 0)
    return { ...found, failed: 1, failures: [...found.failures, `the runner ended with ${exitCode}; read its log`] };
  if (found.passed + found.failed === 0) return { ...found, failed: 1, failures: ["no test ran"] };
  return found;
}

/** The last line of a run. */
export const total = ({ passed, failed, skipped }: Pick<Outcome, "passed" | "failed" | "skipped">): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
