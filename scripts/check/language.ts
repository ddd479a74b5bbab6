/**
 * Words that make the text hard to read (docs/glossary.md, "Say this"), in everything that people read: sources, documents, help texts,
 * messages. PURE: takes texts, gives findings.
 */
import type { Finding, Sources } from "./dependency-rules.ts";

const WORDS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bwhoever\b/i, "anyone who, everyone who"],
  [/\bnobody\b/i, "no one, or name the actor"],
  [/\bsomebody\b/i, "a person, a client, or name the actor"],
  [/\bmend(?:s|ed|ing)?\b/i, "fix, repair"],
  [/\banew\b/i, "again"],
  [/\bafresh\b/i, "again, new"],
  [/\bfor ever\b/i, "forever, permanently"],
  [/\bput(?:s|ting)? away\b/i, "archived, evicted, removed"],
  [/\b(?:brought|brings?|bringing) along\b/i, "imported, included"],
  [/\bmakes? for\b/i, "say what it does"],
  [/\b(?:is|are) there to\b/i, "say what it does"],
  [/\bheads? that says?\b/i, "name the head"],
  [/\bwhat is no\b/i, "name the thing: Invalid session keys ..."],
  [/\bthe truth about\b/i, "status of"],
  [/\b(?:goes where it|go where they) went\b/i, "keeps its session, its receiver"],
];

/** The list itself and what is generated or quoted. */
const EXEMPT =
  /^(?:scripts\/check\/language\b|docs\/glossary\.md$|package-lock\.json$|LICENSE$|NOTICE$|protocol\/(?:golden|released)\/)|\.(?:gz|snap|lock)$/;
const GENERATED = /(?:^|\/)gen\//;

export function languageFindings(sources: Sources): Finding[] {
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (EXEMPT.test(file) || GENERATED.test(file)) continue;
    for (const [index, line] of text.split("\n").entries())
      for (const [pattern, instead] of WORDS) {
        const match = pattern.exec(line);
        if (match) findings.push({ rule: "language", file, line: index + 1, message: `"${match[0]}": ${instead} (docs/glossary.md).` });
      }
  }
  return findings;
}
