/**
 * Secret settings as they are stored: sealed, each at its own path. A secret that cannot be opened is not in force and is not lost
 * either: its sealed text stays, so that it works again when its key is back.
 */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { isSealed, open, type SealingKeys, seal, sealedBy } from "../../../../protocol/runtime/sealing.ts";
import { formatPath } from "./paths.ts";
import { isSecretPath } from "./schema.ts";
import { getAt, leavesOf, mapLeaves, setAt, unsetAt } from "./tree.ts";

export interface LostSecret {
  readonly path: readonly string[];
  /** As it is stored. */
  readonly sealed: string;
}
export interface OpenedConfig {
  /** Without the secrets that cannot be opened. */
  readonly set: GsvConfig;
  readonly lost: readonly LostSecret[];
  /** Secrets that are stored plain, or under another key than the first one. */
  readonly toSeal: number;
}

const placeOf = (path: readonly string[]): string => `gateway setting ${formatPath(path)}`;

export function openConfig(stored: Readonly<GsvConfig>, keys: SealingKeys | undefined): OpenedConfig {
  const lost: LostSecret[] = [];
  let toSeal = 0;
  const opened = mapLeaves(stored, (path, leaf) => {
    if (typeof leaf !== "string" || !isSecretPath(path)) return leaf;
    if (!isSealed(leaf)) {
      if (keys !== undefined) toSeal++;
      return leaf;
    }
    const result = open(keys, placeOf(path), leaf);
    if (!result.ok) {
      lost.push({ path, sealed: leaf });
      return leaf;
    }
    if (sealedBy(leaf) !== keys?.current.id) toSeal++;
    return result.text;
  });
  const set = lost.reduce<unknown>((rest, { path }) => unsetAt(rest, path), opened) ?? {};
  return { set, lost, toSeal };
}

/** What is stored: `lost` keeps its place where the configuration has no new secret. `nonce` gives new random bytes at each call. */
export function sealConfig(
  config: Readonly<GsvConfig>,
  keys: SealingKeys | undefined,
  nonce: () => Uint8Array,
  lost: readonly LostSecret[],
): GsvConfig {
  const sealed = mapLeaves(config, (path, leaf) =>
    keys !== undefined && typeof leaf === "string" && isSecretPath(path) ? seal(keys, placeOf(path), leaf, nonce()) : leaf,
  );
  const kept = lost.filter(({ path }) => getAt(config, path) === undefined);
  return kept.reduce<unknown>((all, { path, sealed: text }) => setAt(all, path, text, () => ({})), sealed) as GsvConfig;
}

/** The configuration with each plain secret replaced by a text of the same size in bytes, to overwrite it where it is stored. */
export const blankedSecrets = (stored: Readonly<GsvConfig>): GsvConfig =>
  mapLeaves(stored, (path, leaf) =>
    typeof leaf === "string" && isSecretPath(path) && !isSealed(leaf)
      ? Array.from({ length: leaf.length }, (_, at) => (leaf.charCodeAt(at) <= 0xff ? "0" : "\u0100")).join("")
      : leaf,
  ) as GsvConfig;

/** Whether `next` has a secret that `before` does not have at the same path. */
export const hasNewSecret = (next: Readonly<GsvConfig>, before: Readonly<GsvConfig>): boolean =>
  [...leavesOf(next)].some(([path, leaf]) => typeof leaf === "string" && isSecretPath(path) && getAt(before, path) !== leaf);

/** Whether `path` is `above`, or below it. */
export const isWithin = (path: readonly string[], above: readonly string[]): boolean => above.every((name, at) => path[at] === name);
