/**
 * The work that reading one command may take (rule PO13). PURE but for its count, which begins again with each command. What can't be read
 * in so many steps counts as a deletion of many files.
 */
const MAX_STEPS = 50_000;
let left = MAX_STEPS;

export function beginReading(): void {
  left = MAX_STEPS;
}
/** A step is about the look at one command, ten characters, or sixteen words for one option. */
export function takesTooLong(steps: number): boolean {
  left -= steps;
  return left < 0;
}
