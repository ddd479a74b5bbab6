/** JSON objects whose keys are not known. PURE. */

export type JsonObject = Readonly<Record<string, unknown>>;
export const isJsonObject = (value: unknown): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);
