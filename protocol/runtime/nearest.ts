/** The name that was probably meant by a misspelt one. PURE. */

/** Edits (insert, remove, replace, swap neighbours) that make one text of the other. */
export function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let at = 1; at <= left.length; at++) {
    const next = [at];
    for (let to = 1; to <= right.length; to++) {
      const same = left[at - 1] === right[to - 1];
      let cost = Math.min((row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1, (row[to - 1] ?? 0) + (same ? 0 : 1));
      if (at > 1 && to > 1 && left[at - 1] === right[to - 2] && left[at - 2] === right[to - 1])
        cost = Math.min(cost, (before[to - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}

/** The candidate that was probably meant, if any is near enough. Of a name with one or two letters each edit makes another name. */
export function nearest(name: string, candidates: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestCost = (wanted.length < 3 ? 0 : Math.max(1, Math.floor(name.length / 3))) + 1;
  for (const candidate of candidates) {
    const known = candidate.toLowerCase();
    // A name with a part left out (`fallback`, `resetPolicy`) is near when most of it is there.
    const [short, long] = wanted.length < known.length ? [wanted, known] : [known, wanted];
    const part = short.length >= 4 && short.length * 2 >= long.length && long.includes(short);
    const cost = part ? 1 : editDistance(wanted, known);
    if (cost < bestCost) [best, bestCost] = [candidate, cost];
  }
  return best;
}
