/** The package `magic-bytes.js` (replaced by a bundler alias): no guessing, because every file has its type. */
export const filetypeinfo = (): readonly never[] => [];
