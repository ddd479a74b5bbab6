/** A text for a shell without quotes and backslashes: any of them may only be a spelling. PURE. */
const QUOTES = /["'\\]/g;
const QUOTE = /["'\\]/;
/** Most texts have none, and some are asked about often. */
export const withoutQuotes = (text: string): string => (QUOTE.test(text) ? text.replaceAll(QUOTES, "") : text);
