/** The effective configuration: the defaults, overridden by the owner's settings. Removes or masks its secrets for others. PURE. */
import { CONFIG_DEFAULTS } from "../../../../protocol/gen/config.ts";
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { checkGsvConfig } from "../../../../protocol/gen/validators/checks.js";
import { DEMO, resolveModelId } from "../../models/resolve.ts";
import { HIDDEN } from "../../../../protocol/runtime/secret-shapes.ts";
import type { EffectiveConfig } from "../../ports/run-context.ts";
import { isSecretPath, notServedAt } from "./schema.ts";
import { getAt, leavesOf, mapLeaves, merge, setAt, unsetAt, withoutAt } from "./tree.ts";

/** The effective configuration, secrets included. Never leaves the Gateway object. */
export function effective(set: Readonly<GsvConfig>): EffectiveConfig {
  const merged = withUsedModel(merge(CONFIG_DEFAULTS, inForce(set)));
  if (!isEffective(merged)) throw new Error("the stored configuration does not fit the contract");
  return merged;
}

/** The defaults have every required field of EffectiveConfig, and no setting removes one. */
const isEffective = (value: unknown): value is EffectiveConfig =>
  checkGsvConfig(value) && getAt(value, ["model", "provider"]) !== undefined;

/** A provider without a configured model uses its usual one: that one is in force. */
function withUsedModel(merged: unknown): unknown {
  const [provider, id] = ["provider", "id"].map((name) => getAt(merged, ["model", name]));
  // The id may be set before its provider.
  if (typeof provider !== "string" || typeof id !== "string" || provider === DEMO) return merged;
  return setAt(merged, ["model", "id"], resolveModelId({ provider, id }), () => ({}));
}

/** Stored settings that nothing reads, such as those of an earlier version. */
export function notInForce(set: Readonly<GsvConfig>): readonly (readonly string[])[] {
  const found = new Map<string, readonly string[]>();
  for (const [path] of leavesOf(set)) {
    const setting = notServedAt(path);
    if (setting !== undefined) found.set(JSON.stringify(setting), setting);
  }
  return [...found.values()];
}
const inForce = (set: Readonly<GsvConfig>): unknown => notInForce(set).reduce<unknown>((rest, path) => withoutAt(rest, path), set);

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
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, HIDDEN), text);
}

/** The configuration for sessions: without secrets, also where a secret was written into another setting. */
export function withoutSecrets(config: EffectiveConfig): EffectiveConfig {
  const scrub = scrubber(config);
  let clean: unknown = mapLeaves(config, (path, leaf) => (typeof leaf === "string" && !isSecretPath(path) ? scrub(leaf) : leaf));
  for (const [path] of leavesOf(config)) if (isSecretPath(path)) clean = unsetAt(clean, path);
  const whole = merge(CONFIG_DEFAULTS, clean);
  if (!isEffective(whole)) throw new Error("the configuration without its secrets does not fit the contract");
  return whole;
}

/** A copy for display: secrets are masked at their own paths and inside other texts. */
export function masked(config: Readonly<GsvConfig>): unknown {
  const scrub = scrubber(config);
  return mapLeaves(config, (path, leaf) => (typeof leaf !== "string" ? leaf : isSecretPath(path) ? HIDDEN : scrub(leaf)));
}

/** What a person is shown: secrets masked, and no model where the provider has no usual one and none was set. */
export function shown(config: EffectiveConfig): unknown {
  const { provider, id } = config.model;
  const whole = masked(config);
  return provider !== DEMO && id === DEMO ? unsetAt(whole, ["model", "id"]) : whole;
}
