/** The order of many scores of which only the first few are wanted, without sorting all of them. PURE. */

/**
 * The indexes of the scores, the highest first. Scores are compared in steps, `stepsOfOne` for a difference of 1; those of one step come in the
 * order of `compare`. Scores are not negative.
 */
export function* bestFirst(
  scores: Float64Array,
  stepsOfOne: number,
  compare: (left: number, right: number) => number,
): IterableIterator<number> {
  for (const step of inSteps(scores, stepsOfOne)) yield* inOrder(step, compare);
}
/** The indexes of the scores by their steps, the highest first: counting puts them into order. */
function* inSteps(scores: Float64Array, stepsOfOne: number): IterableIterator<Uint32Array> {
  const steps = new Uint32Array(scores.length);
  let most = 0;
  for (let index = 0; index < steps.length; index++) {
    const step = Math.trunc((scores[index] as number) * stepsOfOne);
    steps[index] = step;
    if (step > most) most = step;
  }
  const begins = new Uint32Array(most + 2);
  for (let index = 0; index < steps.length; index++)
    begins[(steps[index] as number) + 1] = (begins[(steps[index] as number) + 1] as number) + 1;
  for (let step = 0; step <= most; step++) begins[step + 1] = (begins[step + 1] as number) + (begins[step] as number);
  const [sorted, next] = [new Uint32Array(steps.length), begins.slice()];
  for (let index = 0; index < steps.length; index++) {
    const at = next[steps[index] as number] as number;
    sorted[at] = index;
    next[steps[index] as number] = at + 1;
  }
  for (let step = most; step >= 0; step--) yield sorted.subarray(begins[step], begins[step + 1]);
}
/** The items in this order. The first few of many take little more than one look at each. */
function* inOrder(items: Uint32Array, compare: (left: number, right: number) => number): IterableIterator<number> {
  const sink = (from: number, end: number): void => {
    const sunk = items[from] as number;
    let at = from;
    for (let child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && compare(items[child + 1] as number, items[child] as number) < 0) child++;
      if (compare(sunk, items[child] as number) <= 0) break;
      items[at] = items[child] as number;
      at = child;
    }
    items[at] = sunk;
  };
  for (let at = (items.length >>> 1) - 1; at >= 0; at--) sink(at, items.length);
  for (let end = items.length; end > 0; ) {
    yield items[0] as number;
    items[0] = items[--end] as number;
    sink(0, end);
  }
}
