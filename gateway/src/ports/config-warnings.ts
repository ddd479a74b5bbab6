import type { GsvConfig } from "../../../protocol/gen/types.ts";

/** What a change of `path` does not do, in sentences for a person. `now`: the configuration after the change. */
export type ConfigWarnings = (path: string, now: Readonly<GsvConfig>) => readonly string[];

/** Warnings of features that come after the one that changes the configuration. */
export interface ConfigWarningsPort {
  readonly configWarnings: { readonly add: (warnings: ConfigWarnings) => void };
}
