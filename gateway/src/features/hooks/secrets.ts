/** The secrets of hooks (rule HK1): sealed in the table, opened when a delivery comes, hidden in the log and in prompts. */
import type { SecretBox } from "../../kernel/secret-box.ts";
import type { Result } from "../../ports/result.ts";
import type { HookStore, StoredHook } from "./store.ts";

const placeOf = (name: string): string => `hook ${name}`;

export class HookSecrets {
  readonly #store: HookStore;
  readonly #box: SecretBox;

  constructor(store: HookStore, box: SecretBox) {
    this.#store = store;
    this.#box = box;
  }
  /** Seals what an earlier key has sealed (rule A7), and tells the log what to hide. */
  start(): void {
    for (const hook of this.#store.list()) {
      const secret = this.#box.isOutdated(hook.secret) ? this.open(hook) : undefined;
      const sealed = secret === undefined ? undefined : this.seal(hook.name, secret);
      if (sealed?.ok === true) this.#store.reseal(hook.name, sealed.value);
    }
    this.hide();
  }
  hide(): void {
    this.#box.hide(
      "hooks",
      this.#store.list().flatMap((hook) => this.open(hook) ?? []),
    );
  }
  seal(name: string, secret: string): Result<string> {
    return this.#box.seal(placeOf(name), secret);
  }
  /** Whether a hook has this secret. What is signed names no hook, so it would count at both. */
  isTaken(secret: string): boolean {
    return this.#store.list().some((hook) => this.open(hook) === secret);
  }
  /** Undefined: its key is missing. */
  open({ name, secret }: StoredHook): string | undefined {
    return this.#box.open(placeOf(name), secret);
  }
}
