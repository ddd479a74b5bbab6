/** The session's copy of what a run needs from the gateway: checked before each model call, sent only after a change. Memory only. */
import { hideValues, spellingsOf } from "../../../protocol/runtime/secret-shapes.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { ModelAccess, RunContext } from "../ports/run-context.ts";

/** How long a version that came with a message, a result or an audit entry counts as current: the run that goes on with it asks at once. */
export const CONFIRMED_MS = 250;

/** The gateway's context version, and when it came (wall clock). */
export interface Confirmed {
  readonly version: string;
  readonly at: number;
}

export class RunContexts {
  readonly #gateway: Pick<GatewayPort, "runContext" | "modelAccess" | "secretValues">;
  readonly #sessionKey: () => string;
  #known: RunContext | undefined;
  #asking: Promise<RunContext> | undefined;
  /** The version that came last, or is about to come. For one use only: by the next call it may have changed again. */
  #confirmed: Confirmed | Promise<Confirmed | undefined> | undefined;
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
  /** The version comes soon, so that the next caller waits for it in place of asking. Undefined: it does not come. Must not reject. */
  confirmSoon(coming: Promise<Confirmed | undefined>): void {
    this.#confirmed = coming;
    // What has come is looked at as what `confirm` gives.
    void coming.then((said) => {
      if (this.#confirmed === coming) this.#confirmed = said;
    });
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
   * The current context. With `now` (wall clock) a version that has just come or is about to (`confirm`, `confirmSoon`) is trusted.
   * Concurrent callers share one request, so order is kept. Rejects when the gateway does.
   */
  async current(now?: number): Promise<RunContext> {
    const confirmed = this.#confirmed;
    this.#confirmed = undefined;
    if (confirmed === undefined || now === undefined) return this.#asked();
    const isComing = confirmed instanceof Promise;
    const said = isComing ? await confirmed : confirmed;
    // One that came while this caller waited is as fresh as an answer to it.
    const isFresh = said !== undefined && now - said.at < CONFIRMED_MS && (isComing || said.at <= now);
    const known = this.#known;
    return isFresh && known?.version === said.version ? known : this.#asked();
  }
  #asked(): Promise<RunContext> {
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
