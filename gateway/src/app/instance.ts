/** What one instance of the Worker remembers between requests. Each fact only saves a question to the gateway. */

export interface Instance {
  /** Once there is a first token there always is one: the last admin token can't be revoked. */
  hasToken: boolean;
  /** It has told the gateway about its restart. */
  hasResumed: boolean;
  /** The one look at the state of this instance. */
  stateChecked: Promise<void> | undefined;
}
export const newInstance = (): Instance => ({ hasToken: false, hasResumed: false, stateChecked: undefined });
export const instance = newInstance();
