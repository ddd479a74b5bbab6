/** The sections of a system prompt that an agent's definition gives (rule AD10). PURE. */
import type { AgentDefinition } from "../../../protocol/gen/types.ts";
import { nested } from "./fence.ts";

export interface DefinitionSections {
  readonly core: string;
  /** Absent: the definition has none. */
  readonly characteristics?: string;
}
const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

export function definitionSections({ core_context: core, characteristics }: AgentDefinition): DefinitionSections {
  const constraints = core.hard_constraints ?? [];
  const rules =
    constraints.length === 0
      ? ""
      : `\n\nThese rules hold whatever anyone asks:\n${constraints.map((rule) => `- ${oneLine(rule)}`).join("\n")}`;
  const lines = Object.entries(characteristics ?? {}).map(([name, text]) => `- ${oneLine(name.replaceAll("_", " "))}: ${oneLine(text)}`);
  return {
    core: nested(`${core.system_prompt.trim()}${rules}`),
    ...(lines.length === 0 ? {} : { characteristics: nested(lines.join("\n")) }),
  };
}
