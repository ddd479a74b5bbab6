/** Limits of an answer, as the contract's `search.query` defines them. */
export const MAX_HITS = 100;
export const DEFAULT_HITS = 20;
export const MAX_NOTES = 32;
export const MAX_NOTE_CHARS = 512;
