/**
 * The work that reading one command may take (rule PO13). PURE. What can't be read in so many steps counts as a deletion of many files.
 */
const MAX_STEPS = 50_000;

export class ReadingSteps {
  #left = MAX_STEPS;

  /** A step is about the look at one command, ten characters, or sixteen words for one option. */
  takesTooLong(steps: number): boolean {
    this.#left -= steps;
    return this.#left < 0;
  }
}
