/**
 * Gives the policy of a configuration, and loads what decisions need: what reads deletions, and the engine for regular expressions when a rule
 * has one. Keeps the last policy.
 */
import type { ApprovalConfig } from "../../../protocol/gen/types.ts";
import { type Policy, policyOf, type PolicyParts } from "./decide.ts";
import { type DeletionReader, NOT_READ } from "./deletion/reading.ts";
import type { RegexEngine } from "./regex.ts";

/** Its conditions hold for no call of a rule that allows, and are unsure for every other rule. */
const WITHOUT_ENGINE: RegexEngine = () => ({ ok: false, problem: "the engine for regular expressions could not be loaded" });
const NOT_NEEDED: RegexEngine = () => ({ ok: false, problem: "no rule has a regular expression" });

const hasRegex = (config: ApprovalConfig | undefined): boolean =>
  (config?.rules ?? []).some(({ when = [] }) => when.some(({ op }) => op === "regex"));

async function partsFor(config: ApprovalConfig | undefined): Promise<PolicyParts> {
  const [regex, deletions] = await Promise.all([hasRegex(config) ? loadRegexEngine() : NOT_NEEDED, loadDeletionReader()]);
  return { regex, deletions };
}
/** Everything that a policy may need. Never rejects. */
export async function loadPolicyParts(): Promise<PolicyParts> {
  const [regex, deletions] = await Promise.all([loadRegexEngine(), loadDeletionReader()]);
  return { regex, deletions };
}
/** A start that runs no tool needs none of it. */
async function loadDeletionReader(): Promise<DeletionReader> {
  try {
    return (await import("./deletion/deletion-reader.lazy.ts")).reader;
  } catch {
    return NOT_READ;
  }
}

/** Never rejects. */
export async function loadRegexEngine(): Promise<RegexEngine> {
  try {
    return (await import("./regex.lazy.ts")).re2;
  } catch {
    return WITHOUT_ENGINE;
  }
}

export class Policies {
  #kept: { readonly config: ApprovalConfig | undefined; readonly policy: Policy } | undefined;

  /** The same object again, as long as the configuration is the same object. */
  async of(config: ApprovalConfig | undefined): Promise<Policy> {
    if (this.#kept !== undefined && this.#kept.config === config) return this.#kept.policy;
    const parts = await partsFor(config);
    const policy = policyOf(config, parts);
    // What could not be loaded is tried again with the next call.
    if (parts.regex !== WITHOUT_ENGINE && parts.deletions !== NOT_READ) this.#kept = { config, policy };
    return policy;
  }
}
