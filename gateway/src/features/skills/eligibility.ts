/**
 * Decides whether a skill may be used now, and gives the reason if not (product P5.5). PURE. The stages: the owner's settings, the
 * front matter, the approval, and the capabilities of the machines.
 */
import type { NodeId, SkillEntryConfig, SkillState } from "../../../../protocol/gen/types.ts";
import type { SkillHead } from "../../storage/skills/folder.ts";

/** The approval by the pins. `unseen`: the skill was never approved. */
export type Approval = "approved" | "changed" | "unseen";
export interface Candidate {
  readonly name: string;
  readonly head: SkillHead;
  /** Problems of the skill's folder. */
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

/** Whether a run may use the skill. Machines don't report their programs, so a skill that needs some is usable and `unchecked`. */
export const isUsable = (state: SkillState): boolean => state === "ready" || state === "unchecked";

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
    head.name === undefined || head.name === name ? [] : [`Its front matter names it \`${head.name}\`; the folder's name is used.`];
  const is = (state: SkillState, ...reasons: readonly string[]): Standing => ({
    state,
    always,
    capabilities,
    eligibleHosts: isUsable(state) ? hosts : [],
    reasons: [...reasons, ...notes],
  });
  if (entry?.enabled === false) return is("disabled", `It is disabled: \`skills.entries.${name}.enabled\` is false.`);
  const problems = [...skill.problems, ...head.problems];
  if (problems.length > 0) return is("invalid", ...problems);
  if (skill.approval === "changed")
    return is(
      "changed",
      `Its files differ from the approved ones. Review them with \`gsv skills show ${name}\`, then run \`gsv skills approve ${name}\`.`,
    );
  if (skill.approval === "unseen")
    return is(
      "changed",
      `Its files were not installed with GSV and need your approval. Review them with \`gsv skills show ${name}\`, then run \`gsv skills approve ${name}\`.`,
    );
  if (always || capabilities.length === 0 || hosts.length > 0)
    return head.bins.length === 0
      ? is("ready")
      : is(
          "unchecked",
          `Ready to use. Needs ${inWords(head.bins)}; GSV does not check whether ${head.bins.length === 1 ? "it is" : "they are"} installed.`,
        );
  if (online.length === 0) return is("unmet", `It needs a machine with ${list(capabilities)}, and none is connected.`);
  return is("unmet", ...online.map((machine) => lacks(machine, capabilities)).slice(0, 16));
}
const lacks = ({ nodeId, hostCapabilities }: Machine, needed: readonly string[]): string =>
  `\`${nodeId}\` lacks ${list(needed.filter((capability) => !hostCapabilities.includes(capability)))}.`;
const quoted = (names: readonly string[]): readonly string[] => names.map((name) => `\`${name}\``);
const list = (names: readonly string[]): string => quoted(names).join(", ");
/** "`a`, `b` and `c`". */
const inWords = (names: readonly string[]): string =>
  names.length < 2 ? list(names) : `${list(names.slice(0, -1))} and ${list(names.slice(-1))}`;
