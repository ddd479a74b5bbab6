/** English words that a question has and an answer does not (gateway rule SE1). PURE. They never narrow a search; the index has them. */
const WORDS =
  "a about above after again against all also am an and any are aren as at be because been before being below between both but by can cannot could couldn did didn do does doesn doing don down during each ever few for from further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just let me more most my myself no nor not of off on once only or other our ours ourselves out over own please same shall she should so some such tell than that the their theirs them themselves then there these they this those through to too under until up us very was wasn we were weren what when where which while who whom whose why will with won would wouldn you your yours yourself yourselves";
const STOP_WORDS: ReadonlySet<string> = new Set(WORDS.split(" "));

export const isStopWord = (word: string): boolean => STOP_WORDS.has(word);

/** The word without punctuation around it and without a short ending (`Anna's?` is `Anna`, `don't` is `don`). */
export const bareWord = (word: string): string =>
  word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "").replace(/['\u2019](?:s|re|ve|ll|d|m|t)$/iu, "");
