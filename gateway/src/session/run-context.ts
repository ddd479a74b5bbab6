/** The session's copy of what a run needs from the gateway: checked before each model call, sent only after a change. Memory only. */
import { hideValues, spellingsOf } from "../../../protocol/runtime/secret-shapes.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { ModelAccess, RunContext } from "../ports/run-context.ts";

/** How long a version that came with a message, a result or an audit entry counts as current: the run that goes on with it asks at once. */
export const CONFIRMED_MS = 250;

export class RunContexts {
  readonly #gateway: Pick<GatewayPort, "runContext" | "modelAccess" | "secretValues">;
  readonly #sessionKey: () => string;
  #known: RunContext | undefined;
  #asking: Promise<RunContext> | undefined;
  /** The version that came last. For one use only: by the next call it may have changed again. */
  #confirmed: { readonly version: string; readonly at: number } | undefined;
  /** The keys that were needed last, of one version and one provider. Only for model calls. */
  #access: { readonly version: string; readonly provider: string; readonly access: ModelAccess } | undefined;
  #secrets: { readonly version: string | undefined; readonly values: readonly string[] } | undefined;

  constructor(gateway: Pick<GatewayPort, "runContext" | "modelAccess" | "secretValues">, sessionKey: () => string) {
    this.#gateway = gateway;
    this.#sessionKey = sessionKey;
  }
  /** The last context that this incarnation has received. */
  get known(): RunContext | undefined {
    return this.#known;
  }
  /** Something has just come with the gateway's current version. */
  confirm(version: string, now: number): void {
    this.#confirmed = { version, at: now };
  }
  /** The keys for this provider's models, of the same version as `context`. Rejects when the gateway does. */
  async access(context: RunContext, provider: string): Promise<ModelAccess> {
    const { version } = context;
    if (this.#access?.version === version && this.#access.provider === provider) return this.#access.access;
    const access = await this.#gateway.modelAccess([provider]);
    if (access === null) throw new Error("GSV is stopped");
    this.#access = { version, provider, access };
    return access;
  }
  /** Hides stored secrets in what a native tool gives. Rejects when the gateway does. */
  async hider(): Promise<(text: string) => string> {
    const version = this.#known?.version;
    if (this.#secrets === undefined || this.#secrets.version !== version)
      this.#secrets = { version, values: spellingsOf(await this.#gateway.secretValues()) };
    const { values } = this.#secrets;
    return (text) => hideValues(text, values);
  }
  /**
   * The current context. With `now` (wall clock) a version that has just come (`confirm`) is trusted. Concurrent callers share one
   * request, so order is kept. Rejects when the gateway does.
   */
  current(now?: number): Promise<RunContext> {
    const confirmed = this.#confirmed;
    this.#confirmed = undefined;
    const isFresh = confirmed !== undefined && now !== undefined && now >= confirmed.at && now - confirmed.at < CONFIRMED_MS;
    if (isFresh && this.#known?.version === confirmed.version) return Promise.resolve(this.#known);
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }
  async #ask(): Promise<RunContext> {
    const fresh = await this.#gateway.runContext(this.#sessionKey(), this.#known?.version);
    if (fresh) this.#known = fresh;
    if (!this.#known) throw new Error("the gateway answered `unchanged` for a version that it never sent");
    return this.#known;
  }
}
