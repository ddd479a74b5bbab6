/**
 * Whether a skill may be used now, and why not (product P5.5). PURE. The stages, each with its reason: what the owner says of it, its
 * front matter, whether it is what was approved, and what machines must be able to do.
 */
import type { NodeId, SkillEntryConfig, SkillState } from "../../../../protocol/gen/types.ts";
import type { SkillHead } from "../../storage/skills/front-matter.ts";

/** What the pins say of its files. `unseen`: nobody has said anything of it yet. */
export type Approval = "approved" | "changed" | "unseen";
export interface Candidate {
  readonly name: string;
  readonly head: SkillHead;
  /** What is wrong with its folder. */
  readonly problems: readonly string[];
  readonly approval: Approval;
}
export interface Machine {
  readonly nodeId: NodeId;
  readonly online: boolean;
  readonly hostCapabilities: readonly string[];
}
export interface Standing {
  readonly state: SkillState;
  readonly always: boolean;
  readonly capabilities: readonly string[];
  readonly eligibleHosts: readonly NodeId[];
  readonly reasons: readonly string[];
}

export function standing(skill: Candidate, entry: SkillEntryConfig | undefined, machines: readonly Machine[]): Standing {
  const { name, head } = skill;
  const always = entry?.always ?? head.always;
  const capabilities = entry?.requires?.capabilities ?? head.capabilities;
  const online = machines.filter((machine) => machine.online);
  const hosts = online
    .filter((machine) => capabilities.every((needed) => machine.hostCapabilities.includes(needed)))
    .map(({ nodeId }) => nodeId)
    .toSorted();
  const notes =
    head.name === undefined || head.name === name ? [] : [`Its front matter calls it \`${head.name}\`; the folder's name counts.`];
  const is = (state: SkillState, ...reasons: readonly string[]): Standing => ({
    state,
    always,
    capabilities,
    eligibleHosts: state === "ready" ? hosts : [],
    reasons: [...reasons, ...notes],
  });
  if (entry?.enabled === false) return is("disabled", `It is switched off: \`skills.entries.${name}.enabled\` is false.`);
  const problems = [...skill.problems, ...head.problems];
  if (problems.length > 0) return is("invalid", ...problems);
  if (skill.approval === "changed")
    return is(
      "changed",
      `Its files are not those that were approved. Look at them with \`gsv skills show ${name}\`, then \`gsv skills approve ${name}\`.`,
    );
  if (skill.approval === "unseen")
    return is("changed", "Too many skills have been seen for this one to be noted. Remove some with `gsv skills remove`.");
  if (always || capabilities.length === 0 || hosts.length > 0) return is("ready");
  if (online.length === 0) return is("unmet", `It needs a machine with ${list(capabilities)}, and none is connected.`);
  return is("unmet", ...online.map((machine) => lacks(machine, capabilities)).slice(0, 16));
}
const lacks = ({ nodeId, hostCapabilities }: Machine, needed: readonly string[]): string =>
  `\`${nodeId}\` lacks ${list(needed.filter((capability) => !hostCapabilities.includes(capability)))}.`;
const list = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
