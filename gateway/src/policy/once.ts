/** Computes a value when it is first asked for, and keeps it. PURE. What `compute` throws is thrown, and the next question computes again. */
export function once<T>(compute: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: compute() };
    return made.value;
  };
}
