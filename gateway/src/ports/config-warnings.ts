import type { GsvConfig } from "../../../protocol/gen/types.ts";

/** What there was before a change. */
export interface BeforeChange {
  /** The ids of the agents that came with packs. */
  readonly packAgents: readonly string[];
}
/** What a change of `path` does not do, in sentences for a person. `now`: the configuration after the change. */
export type ConfigWarnings = (path: string, now: Readonly<GsvConfig>, before: BeforeChange) => readonly string[];

/** Warnings of features that come after the one that changes the configuration. */
export interface ConfigWarningsPort {
  readonly configWarnings: { readonly add: (warnings: ConfigWarnings) => void };
}
