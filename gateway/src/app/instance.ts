/** What one instance of the Worker remembers between requests. Each fact only saves a call to the Gateway object. */

import { AdmittedCallers } from "./http/admitted.ts";

export interface Instance {
  /** Once there is a first token there always is one: the last admin token can't be revoked. */
  hasToken: boolean;
  /** It has told the gateway about its restart. */
  hasResumed: boolean;
  readonly admitted: AdmittedCallers;
  /** The one opening of the gateway's tables and the bucket's. */
  opened: Promise<readonly PromiseSettledResult<unknown>[]> | undefined;
  /** The one look at the state of this instance. */
  stateChecked: Promise<void> | undefined;
}
export const newInstance = (): Instance => ({
  hasToken: false,
  hasResumed: false,
  admitted: new AdmittedCallers(),
  opened: undefined,
  stateChecked: undefined,
});
export const instance = newInstance();
