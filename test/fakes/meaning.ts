/** Vectors for tests: texts with the same words, or with words of one meaning, are near. PURE, and runs anywhere. */
const MEANINGS: readonly (readonly string[])[] = [
  ["car", "automobile", "vehicle"],
  ["doctor", "physician", "surgeon"],
];
/** Deterministic. Empty texts have a vector, too. */
export function meaningOf(text: string, dimensions: number): number[] {
  const numbers = new Array<number>(dimensions).fill(0.001);
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const stem = MEANINGS.find((words) => words.includes(word))?.[0] ?? word;
    let hash = 7;
    for (const sign of stem) hash = (hash * 31 + (sign.codePointAt(0) ?? 0)) % 1_000_003;
    numbers[hash % dimensions] = (numbers[hash % dimensions] ?? 0) + 1;
  }
  return numbers;
}
export function answerFor(input: readonly string[], dimensions: number): object {
  return {
    object: "list",
    // Not in order: a client must look at the index.
    data: input.map((text, index) => ({ object: "embedding", index, embedding: meaningOf(text, dimensions) })).reverse(),
    model: "fake",
    usage: { prompt_tokens: 5 * input.length, total_tokens: 5 * input.length },
  };
}
