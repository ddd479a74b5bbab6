/**
 * Parses the head of a SKILL.md: YAML between two lines `---` (strict-yaml.ts), checked against the contract. PURE; never throws.
 * Problems name the line, never the value.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SkillFrontMatter } from "../../../../protocol/gen/types.ts";
import { checkSkillFrontMatter } from "../../../../protocol/gen/validators/checks.js";
import { explain } from "../../../../protocol/runtime/explain.ts";
import { isJsonObject, type JsonObject } from "../../../../protocol/runtime/json-object.ts";
import { dangerousIn, invisibleIn, visible } from "../../prompt/hidden.ts";
import { readStrictYaml } from "../strict-yaml.ts";
import type { SkillHead } from "./folder.ts";

/** More than any head needs, and small enough to bound the parser's time. */
const MAX_HEAD_CHARS = 16_384;
const MAX_DEPTH = 16;
const MAX_PROBLEMS = 8;
/** In order of precedence. */
const VENDORS = ["gsv", "openclaw", "clawdbot"] as const;
const FENCE = /^---[ \t]*\r?$/;
const NOTHING: SkillHead = { description: "", always: false, capabilities: [], bins: [], install: [], problems: [] };

const own = (value: JsonObject, key: string): unknown => (Object.hasOwn(value, key) ? value[key] : undefined);
const refused = (...problems: readonly string[]): SkillHead => ({ ...NOTHING, problems: problems.slice(0, MAX_PROBLEMS) });

export function readHead(file: string): SkillHead {
  if (file.length > LIMITS.skillBytes) return refused(`SKILL.md is larger than ${LIMITS.skillBytes} bytes.`);
  const danger = dangerousIn(file);
  if (danger)
    return refused(`Line ${danger.line} has a hidden character (${danger.code}) that makes the text read differently than it looks.`);
  const text = file.replace(/^\ufeff/, "");
  const [first, ...rest] = text.split("\n");
  if (first === undefined || !FENCE.test(first)) return refused("SKILL.md has no front matter: its first line must be `---`.");
  const end = rest.findIndex((line) => FENCE.test(line));
  if (end === -1) return refused("The front matter is not closed: end it with a line `---`.");
  const head = rest.slice(0, end).join("\n");
  if (head.length > MAX_HEAD_CHARS) return refused(`The front matter is longer than ${MAX_HEAD_CHARS} characters.`);
  return readYaml(head);
}

/** A line of the head is one line lower in the file. */
const ABOVE = 1;

function readYaml(head: string): SkillHead {
  const read = readStrictYaml(head, { maxDepth: MAX_DEPTH, linesAbove: ABOVE });
  if (read.kind === "unreadable") return refused(`The front matter ${read.problem}`);
  if (read.kind === "flawed") return refused(...read.problems.map(({ line, problem }) => `Line ${line}: ${problem}`));
  const { value } = read;
  const lineOf = (path: readonly string[]): string => `Line ${read.lineOf(path)}`;
  return isJsonObject(value) ? readValues(value, lineOf) : refused("The front matter must be keys and values, such as `name: mail`.");
}

function readValues(value: JsonObject, lineOf: (path: readonly string[]) => string): SkillHead {
  const picked = pickMetadata(own(value, "metadata"));
  if (!picked.ok) return refused(`${lineOf(["metadata"])}: ${picked.problem}`);
  const front = {
    ...Object.fromEntries(
      (["name", "description", "homepage", "always"] as const).flatMap((key) => {
        const found = own(value, key);
        return found === undefined || found === null ? [] : [[key, found]];
      }),
    ),
    ...(picked.metadata === undefined ? {} : { metadata: picked.metadata }),
  };
  if (!fits(front))
    return refused(
      ...explain("SkillFrontMatter", front).map(({ path, message }) => {
        const steps = path.split(/[.[\]]+/).filter((step) => step !== "");
        const there = steps[0] === "metadata" && picked.vendor !== undefined ? ["metadata", picked.vendor, ...steps.slice(1)] : steps;
        return `${lineOf(there)}: \`${path}\`: ${message}.`;
      }),
    );
  const { metadata = {} } = front;
  const problems: string[] = [];
  for (const [key, text] of [
    ["name", front.name],
    ["description", front.description],
    ["homepage", front.homepage ?? metadata.homepage],
    ["emoji", metadata.emoji],
  ] as const) {
    const found = text === undefined ? undefined : invisibleIn(text);
    if (found !== undefined) problems.push(`${lineOf([key])}: \`${key}\` has an invisible character (${found}).`);
  }
  if (front.description.trim() === "") problems.push(`${lineOf(["description"])}: \`description\` is empty; say when to use the skill.`);
  const homepage = front.homepage ?? metadata.homepage;
  return {
    description: visible(front.description, 8192),
    always: metadata.always ?? front.always ?? false,
    capabilities: [...new Set(metadata.requires?.capabilities?.map((capability) => visible(capability, 64)))].sort(),
    bins: [...new Set(metadata.requires?.bins?.map((bin) => visible(bin, 128)))].sort(),
    install: (metadata.install ?? []).map(installText),
    problems,
    ...(front.name === undefined ? {} : { name: visible(front.name, 128) }),
    ...(homepage === undefined ? {} : { homepage: visible(homepage, 1024) }),
    ...(metadata.emoji === undefined ? {} : { emoji: visible(metadata.emoji, 32) }),
  };
}
const fits = (value: unknown): value is SkillFrontMatter => checkSkillFrontMatter(value);

type Picked =
  | { readonly ok: true; readonly metadata?: JsonObject; readonly vendor?: string }
  | { readonly ok: false; readonly problem: string };
/** Metadata as an object or as JSON text; returns the part of the first known vendor. */
function pickMetadata(given: unknown): Picked {
  if (given === undefined || given === null) return { ok: true };
  let value = given;
  if (typeof given === "string") {
    try {
      value = JSON.parse(given);
    } catch {
      return { ok: false, problem: "`metadata` is a text but not JSON." };
    }
  }
  if (!isJsonObject(value)) return { ok: false, problem: "`metadata` must be an object." };
  for (const vendor of VENDORS) {
    const part = own(value, vendor);
    if (part === undefined || part === null) continue;
    if (!isJsonObject(part)) return { ok: false, problem: `\`metadata.${vendor}\` must be an object.` };
    const kept = ["always", "emoji", "homepage", "requires", "install"].flatMap((key) => {
      const found = own(part, key);
      return found === undefined || found === null ? [] : [[key, found] as const];
    });
    return { ok: true, metadata: Object.fromEntries(kept), vendor };
  }
  return { ok: true };
}

/** A step of the author in one line. It is shown, never run. */
function installText(step: unknown): string {
  if (typeof step === "string") return visible(step, 1024);
  if (!isJsonObject(step)) return visible(JSON.stringify(step) ?? "", 1024);
  const label = own(step, "label");
  const rest = Object.entries(step).filter(([key]) => key !== "label" && key !== "id");
  const facts = rest.map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  return visible(typeof label === "string" ? (facts === "" ? label : `${label} (${facts})`) : facts, 1024);
}
