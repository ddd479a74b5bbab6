/**
 * Names that belong to one machine or account and must not be in the repository: absolute home and work folders, package sources,
 * keys. PURE: takes texts, gives findings.
 */
import type { Finding, Sources } from "./dependency-rules.ts";

/** This check and its test. */
const SUBJECT = ["scripts/check/private-names.ts", "scripts/check/private-names.unit.test.ts"];

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/(?<![\w.\-/:}$])\/(?:root|work|mnt)\/[\w.-]+/, "a folder of one machine"],
  [/(?<![\w.\-/:}$])\/(?:home|Users)\/(?!(?:u|me|you|user|alice|bob|ada)\b)[a-z][\w.-]*\//, "a home folder of one machine"],
  [/\b(?:sk-ant-[a-zA-Z0-9-]{20,}|sk-[a-zA-Z0-9]{32,}|AKIA[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|xox[bp]-[0-9A-Za-z-]{20,})/, "a key"],
  [/-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/, "a private key"],
];

export function privateNameFindings(sources: Sources): Finding[] {
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (SUBJECT.includes(file)) continue;
    for (const [index, line] of text.split("\n").entries()) {
      for (const [pattern, what] of PATTERNS) {
        if (pattern.test(line)) findings.push({ rule: "names", file, line: index + 1, message: `This names ${what}.` });
      }
      const resolved = file.endsWith("package-lock.json") ? /"resolved": "([^"]+)"/.exec(line)?.[1] : undefined;
      if (resolved?.startsWith("http") === true) {
        findings.push({
          rule: "names",
          file,
          line: index + 1,
          message: "The lock file names a package source. Delete the line: .npmrc decides where packages come from.",
        });
      }
    }
  }
  return findings;
}
