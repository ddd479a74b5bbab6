/** The package `magic-bytes.js` (an alias of the bundler puts this in place): nothing is guessed, every file says what it is. */
export const filetypeinfo = (): readonly never[] => [];
