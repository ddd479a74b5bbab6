/** The refusal of state that a newer version of GSV has written. Nothing reads or changes such state. PURE. */

const SENTENCE = /A newer version of GSV has written this state: [\s\S]*? Nothing was changed\./;

/** Thrown before anything is changed: by migrations, and by readers of versioned rows. */
export class NewerStateError extends Error {
  override readonly name = "NewerStateError";
  /** `what` is a plural, such as "the gateway tables"; `found` and `known` are version numbers. `known` 0: this program knows none. */
  constructor(what: string, found: number, known: number) {
    const mine = known === 0 ? "this program does not know them" : `this program knows up to ${known}`;
    super(`A newer version of GSV has written this state: ${what} have version ${found}, and ${mine}. Nothing was changed.`);
  }
}

/**
 * The sentence of a refusal; undefined for every other error. RPC keeps an error's message and drops its class, and the binding of the
 * bucket writes words of its own around it.
 */
export function newerStateText(error: unknown): string | undefined {
  return error instanceof Error ? SENTENCE.exec(error.message)?.[0] : undefined;
}
