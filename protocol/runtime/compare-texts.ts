/** The order of texts by their UTF-16 units: the same on every machine, whatever its language. For `sort` and `toSorted`. PURE. */
export const compareTexts = (left: string, right: string): -1 | 0 | 1 => (left < right ? -1 : left > right ? 1 : 0);
