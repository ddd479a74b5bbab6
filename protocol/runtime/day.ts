/** The length of a day of 24 hours, for times in ms. A local day may be longer or shorter: `gateway/src/schedule/zone.ts`. PURE. */
export const DAY_MS = 86_400_000;
