/**
 * Seals secrets that features keep in their own tables, as the configuration's are sealed (rules A7, A9), and lets the log hide them.
 * Stores nothing itself.
 */
import { open, type ReadKeys, seal, sealedBy } from "../../../protocol/runtime/sealing.ts";
import { type Result, succeed } from "../ports/result.ts";
import { fail } from "./outcome.ts";

export interface SecretBox {
  /** The sealed text of a secret, which belongs to one place. */
  seal(place: string, secret: string): Result<string>;
  /** Undefined: its key is missing, or the text was changed. */
  open(place: string, sealed: string): string | undefined;
  /** Another key than the first one has sealed it. */
  isOutdated(sealed: string): boolean;
  /** Replaces the secrets of an owner that the log, prompts and results must not show. */
  hide(owner: string, secrets: readonly string[]): void;
}

export function secretBox(
  sealing: { readonly keys: ReadKeys; readonly nonce: () => Uint8Array },
  hide: (owner: string, secrets: readonly string[]) => void,
): SecretBox {
  const keys = sealing.keys.ok ? sealing.keys.keys : undefined;
  return {
    seal: (place, secret) => (keys === undefined ? fail("config.no_sealing_key") : succeed(seal(keys, place, secret, sealing.nonce()))),
    open: (place, sealed) => {
      const opened = open(keys, place, sealed);
      return opened.ok ? opened.text : undefined;
    },
    isOutdated: (sealed) => keys !== undefined && sealedBy(sealed) !== keys.current.id,
    hide,
  };
}

/** The secrets of all owners together. */
export class HiddenSecrets {
  readonly #byOwner = new Map<string, readonly string[]>();
  readonly #onChange: (all: readonly string[]) => void;

  constructor(onChange: (all: readonly string[]) => void) {
    this.#onChange = onChange;
  }
  set(owner: string, secrets: readonly string[]): void {
    this.#byOwner.set(owner, secrets);
    this.#onChange([...this.#byOwner.values()].flat());
  }
}
