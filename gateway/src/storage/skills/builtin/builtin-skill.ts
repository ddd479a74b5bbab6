/** A built-in skill is written once: its head as data, from which the text of its SKILL.md is made. So it needs no parser. PURE. */
import type { SkillHead } from "../folder.ts";

export interface BuiltinSkill {
  readonly name: string;
  readonly head: SkillHead;
  /** The content of SKILL.md. */
  readonly text: string;
}
interface Head {
  readonly name: string;
  readonly description: string;
  readonly emoji: string;
  readonly capabilities?: readonly string[];
  readonly bins?: readonly string[];
}

export function builtinSkill({ name, description, emoji, capabilities = [], bins = [] }: Head, body: string): BuiltinSkill {
  const lists = Object.entries({ capabilities, bins }).filter(([, names]) => names.length > 0);
  const lines = [
    "---",
    `name: ${name}`,
    // JSON is YAML, too.
    `description: ${JSON.stringify(description)}`,
    "metadata:",
    "  gsv:",
    `    emoji: ${JSON.stringify(emoji)}`,
    ...(lists.length === 0 ? [] : ["    requires:"]),
    ...lists.map(([key, names]) => `      ${key}: [${names.join(", ")}]`),
    "---",
  ];
  const head = { name, description, emoji, always: false, capabilities, bins, install: [], problems: [] };
  return { name, head, text: `${lines.join("\n")}\n${body}` };
}
