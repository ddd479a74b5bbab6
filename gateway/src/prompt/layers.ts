/**
 * Defines each section of a system prompt: its context layer (product P9.2) and the source of its text. Checks at every
 * assembly that no layer claims the authority of a higher one. The check is structural: it looks at sources and at text
 * outside fences, never at meaning. PURE.
 */

import { codeAfter } from "./fence.ts";

export type Layer = 1 | 2 | 3 | 4 | 5 | 6;
/** `code`: built in, or set by the owner in the configuration. Otherwise the workspace file. */
export type Source = "code" | (string & {});
export interface PromptSection {
  readonly id: string;
  readonly title: string;
  readonly layer: Layer;
  readonly source: Source;
  /** The text for the model, without its heading. */
  readonly text: string;
}
interface Row {
  readonly title: string;
  readonly layer: Layer;
  /** Undefined means any daily file. */
  readonly source: Source | undefined;
}
const row = (title: string, layer: Layer, source: Source | undefined): Row => ({ title, layer, source });

/** Rows of the storage layout, in order, with the definition's after the base and BOOTSTRAP.md at its place in the bootstrap order. */
export const SECTIONS = {
  base: row("GSV", 1, "code"),
  core: row("Your Role", 1, "agent.yaml"),
  characteristics: row("Your Characteristics", 2, "agent.yaml"),
  bootstrap: row("Commissioning (BOOTSTRAP.md)", 3, "BOOTSTRAP.md"),
  soul: row("Your Soul", 2, "SOUL.md"),
  identity: row("Your Identity", 2, "IDENTITY.md"),
  user: row("About Your Human", 3, "USER.md"),
  agents: row("Operating Instructions", 3, "AGENTS.md"),
  memory: row("Long-Term Memory", 6, "MEMORY.md"),
  yesterday: row("Recent Context > Yesterday", 6, undefined),
  today: row("Recent Context > Today", 6, undefined),
  tools: row("Tool Notes", 3, "TOOLS.md"),
  heartbeat: row("Heartbeats", 3, "HEARTBEAT.md"),
  skills: row("Skills (Mandatory Scan)", 3, "code"),
  runtime: row("Runtime", 3, "code"),
} as const satisfies Record<string, Row>;
export type SectionId = keyof typeof SECTIONS;
const ORDER: readonly string[] = Object.keys(SECTIONS);
const isSectionId = (id: string): id is SectionId => Object.hasOwn(SECTIONS, id);

export class ContextOverrideError extends Error {
  override readonly name = "ContextOverrideError";
}
const broken = (what: string): never => {
  throw new ContextOverrideError(`The prompt was not used: ${what}.`);
};

const FENCE_LIKE = /^[\s\u200b\u2060]*<<</;
const SECTION_LIKE = /^[\s\u200b\u2060]*#{1,2}(?:\s|$)/;
const OPEN = /^<<<.* ([0-9a-f]{12})>>>$/;
/** The headings of level 1 and 2 outside fences, read line by line. Throws when a fence is not closed. */
function headingsOf(system: string): string[] {
  const found: string[] = [];
  let mark: string | undefined;
  let code: string | undefined;
  for (const line of system.split(/\r\n?|[\n\v\f\u0085\u2028\u2029]/)) {
    if (mark !== undefined) {
      if (line === `<<<end ${mark}>>>`) mark = undefined;
      else if (/^[\s\u200b\u2060]*(#|<<<)/.test(line)) broken("text inside a fence looks like structure");
      continue;
    }
    const at = codeAfter(code, line);
    code = at.open;
    const open = OPEN.exec(line);
    if (open && !at.code) mark = open[1];
    else if (FENCE_LIKE.test(line)) broken("a line looks like a fence but is not one");
    else if (!at.code && SECTION_LIKE.test(line)) found.push(line);
  }
  if (mark !== undefined || code !== undefined) broken("a fence is not closed");
  return found;
}
/** A section's heading. The two daily files share one. */
export const headingOf = ({ id, title }: Pick<PromptSection, "id" | "title">): string =>
  id === "base" ? `# ${title}` : id === "yesterday" || id === "today" ? "## Recent Context" : `## ${title}`;

/**
 * Throws when a layer claims the authority of a higher one. Each section must be known, unique, in order, of its own layer and
 * from its own source; text below layer 3 must be fenced; and the whole text must have exactly the headings of its sections.
 */
export function validateNoOverride(sections: readonly PromptSection[], system: string): void {
  let last = -1;
  for (const { id, title, layer, source, text } of sections) {
    if (!isSectionId(id)) return broken(`there is no section ${JSON.stringify(id)}`);
    const known: Row = SECTIONS[id];
    const at = ORDER.indexOf(id);
    if (at <= last) broken(`the section ${id} ${at === last ? "occurs twice" : "is out of order"}`);
    last = at;
    if (layer !== known.layer || title !== known.title) broken(`the section ${id} claims layer ${layer} as ${JSON.stringify(title)}`);
    if (known.source === undefined ? !/^memory\/\d{4,}-\d\d-\d\d\.md$/.test(source) : source !== known.source)
      broken(`the section ${id} does not come from ${source}`);
    if (layer > 3) {
      const mark = OPEN.exec(text.slice(0, text.indexOf("\n")))?.[1];
      if (mark === undefined || !text.endsWith(`\n<<<end ${mark}>>>`) || text.split(mark).length !== 3)
        broken(`the section ${id} is not in a fence`);
    }
  }
  if (sections[0]?.id !== "base") broken("the first section is not the base");
  const expected = sections.map(headingOf).filter((heading, at, all) => all.indexOf(heading) === at);
  const found = headingsOf(system);
  if (found.length !== expected.length || found.some((heading, at) => heading !== expected[at]))
    broken("a section's text has a heading that looks like a section's");
}
