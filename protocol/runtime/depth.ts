/** How deep a value nests. PURE. */

/** Whether arrays and objects nest deeper than `limit`; `{}` is 1. Needs no stack of its own size, so any depth may stand there. */
export function valueNestsDeeper(value: unknown, limit: number): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; ; depth++) {
    const inner = level.filter((item): item is object => typeof item === "object" && item !== null);
    if (inner.length === 0) return false;
    if (depth === limit) return true;
    level = inner.flatMap((item): unknown[] => Object.values(item));
  }
}
