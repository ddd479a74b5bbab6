/** What is in force: the defaults with what a person has set laid over them. PURE. */
import { CONFIG_DEFAULTS } from "../../../../protocol/gen/config.ts";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { checkGsvConfig } from "../../../../protocol/gen/validators/checks.js";
import type { EffectiveConfig } from "../../ports/run-context.ts";
import { isSecretPath } from "./schema.ts";
import { getAt, leavesOf, mapLeaves, merge, unsetAt } from "./tree.ts";

/** The effective configuration, secrets included. Never leaves the Gateway object. */
export function effective(set: Readonly<GsvConfig>): EffectiveConfig {
  const merged = merge(CONFIG_DEFAULTS, set);
  if (!isEffective(merged)) throw new Error("the stored configuration does not fit the contract");
  return merged;
}

/** The defaults have what EffectiveConfig promises, and no path takes it away again. */
const isEffective = (value: unknown): value is EffectiveConfig =>
  checkGsvConfig(value) && getAt(value, ["model", "provider"]) !== undefined;

/** What a secret is shown as. Sent back as a value, it means: leave it as it is. */
export const MASK = "********";
/** Shorter secrets are masked at their own path only: as part of other texts they would be ordinary words. */
const MIN_SECRET = 8;

/** Every secret value in a configuration. */
export function secretValues(config: Readonly<GsvConfig>): readonly string[] {
  return [...leavesOf(config)].flatMap(([path, leaf]) => (typeof leaf === "string" && leaf !== "" && isSecretPath(path) ? [leaf] : []));
}

/** Replaces every secret inside other texts. */
function scrubber(config: Readonly<GsvConfig>): (text: string) => string {
  const secrets = secretValues(config)
    .filter((secret) => secret.length >= MIN_SECRET)
    .sort((left, right) => right.length - left.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, MASK), text);
}

/** What a session gets: the effective configuration with every secret removed, also where one was written into another setting. */
export function withoutSecrets(config: EffectiveConfig): EffectiveConfig {
  const scrub = scrubber(config);
  let clean: unknown = mapLeaves(config, (path, leaf) => (typeof leaf === "string" && !isSecretPath(path) ? scrub(leaf) : leaf));
  for (const [path] of leavesOf(config)) if (isSecretPath(path)) clean = unsetAt(clean, path);
  const whole = merge(CONFIG_DEFAULTS, clean);
  if (!isEffective(whole)) throw new Error("the configuration without its secrets does not fit the contract");
  return whole;
}

/** A copy for showing: secrets masked where they belong, and wherever else the same text turns up. */
export function masked(config: Readonly<GsvConfig>): unknown {
  const scrub = scrubber(config);
  return mapLeaves(config, (path, leaf) => (typeof leaf !== "string" ? leaf : isSecretPath(path) ? MASK : scrub(leaf)));
}
