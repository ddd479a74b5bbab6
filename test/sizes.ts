/** Sizes of tests that repeat one thing with other numbers. The usual run takes the small size, the lanes behind `--slow` the whole one. */

const IS_LONG = process.env["GSV_LONG"] !== undefined;

/** How many of `whole` this run takes. The first ones, so that a run with all of them has those of the usual run too. */
export const sized = (usual: number, whole: number): number => (IS_LONG ? whole : usual);
