/** A pure function that keeps what it gave for short texts: the words of commands come again and again. PURE as seen from outside. */
const MAX_CHARS = 40;
const MAX_TEXTS = 1000;

export function remembered<T>(compute: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    if (text.length > MAX_CHARS) return compute(text);
    const found = known.get(text);
    if (found !== undefined) return found;
    const made = compute(text);
    if (known.size === MAX_TEXTS) known.clear();
    known.set(text, made);
    return made;
  };
}
