/**
 * Gives the policy of a configuration, and loads what decisions need: what reads deletions, and the engine for regular expressions when a rule
 * has one. Keeps the last policy.
 */
import type { ApprovalConfig } from "../../../protocol/gen/types.ts";
import { type Policy, policyOf } from "./decide.ts";
import { isReaderLoaded, loadDeletionReader } from "./deletion-reader.ts";
import type { RegexEngine } from "./regex.ts";

/** Its conditions hold for no call of a rule that allows, and are unsure for every other rule. */
const WITHOUT_ENGINE: RegexEngine = () => ({ ok: false, problem: "the engine for regular expressions could not be loaded" });
const NOT_NEEDED: RegexEngine = () => ({ ok: false, problem: "no rule has a regular expression" });

const hasRegex = (config: ApprovalConfig | undefined): boolean =>
  (config?.rules ?? []).some(({ when = [] }) => when.some(({ op }) => op === "regex"));

const engineFor = (config: ApprovalConfig | undefined): RegexEngine | Promise<RegexEngine> =>
  hasRegex(config) ? loadRegexEngine() : NOT_NEEDED;

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
    if (!isReaderLoaded()) await loadDeletionReader();
    if (this.#kept !== undefined && this.#kept.config === config) return this.#kept.policy;
    const engine = await engineFor(config);
    const policy = policyOf(config, engine);
    // An engine that could not be loaded is tried again with the next call.
    if (engine !== WITHOUT_ENGINE) this.#kept = { config, policy };
    return policy;
  }
}
