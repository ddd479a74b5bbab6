/** Records of a page, one a line (rules MV1, MV5). PURE. */
import type { ObjectRecord } from "../../ports/moving.ts";

/** What an export counts, and an import finds again (rule MV10). */
export interface MoveCounts {
  readonly objects: number;
  readonly bytes: number;
  readonly sessions: number;
  readonly jobs: number;
  /** Rows of the gateway, of sessions and of the row database; entries of sessions and jobs. */
  readonly gatewayRows: number;
  readonly sessionRows: number;
  readonly jobValues: number;
  readonly rows: number;
  readonly indexed: number;
}
export const NO_COUNTS: MoveCounts = {
  ...{ objects: 0, bytes: 0, sessions: 0, jobs: 0, gatewayRows: 0, sessionRows: 0, jobValues: 0, rows: 0, indexed: 0 },
};

/** A piece of an object of the bucket. The whole, when it is as long as the object. */
export interface PieceRecord {
  readonly kind: "piece";
  readonly key: string;
  readonly sizeBytes: number;
  /** Hex. Absent: the bucket does not know it. */
  readonly md5?: string;
  readonly http: Readonly<Record<string, string>>;
  readonly custom: Readonly<Record<string, string>>;
  readonly offset: number;
  readonly base64: string;
}
/** `session:KEY`, `job:ID`, `gateway` or `rows`. */
export type Owner = string;
export type MoveRecord =
  | { readonly kind: "of"; readonly owner: Owner; readonly record: ObjectRecord }
  | { readonly kind: "settings"; readonly settings: unknown }
  | { readonly kind: "index"; readonly key: string; readonly metadata: unknown }
  | PieceRecord
  | { readonly kind: "end"; readonly counts: MoveCounts };

export const encodeRecords = (records: readonly MoveRecord[]): string =>
  records.map((record) => `${JSON.stringify(record).toWellFormed()}\n`).join("");

/** Undefined: it is no page. Only the outer form is checked; what does not fit its table is refused by it. */
export function decodeRecords(text: string): readonly MoveRecord[] | undefined {
  const records: MoveRecord[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    try {
      const record: unknown = JSON.parse(line);
      if (!isRecord(record)) return undefined;
      records.push(record);
    } catch {
      return undefined;
    }
  }
  return records;
}
function isRecord(value: unknown): value is MoveRecord {
  const has = (name: string, type: string): boolean => typeof field(value, name) === type;
  switch (field(value, "kind")) {
    case "of":
      return has("owner", "string") && isObjectRecord(field(value, "record"));
    case "settings":
      return has("settings", "object");
    case "index":
      return has("key", "string");
    case "piece":
      return (
        ["key", "base64"].every((name) => has(name, "string")) &&
        ["sizeBytes", "offset"].every((name) => Number.isSafeInteger(field(value, name))) &&
        [field(value, "http"), field(value, "custom")].every(isTexts)
      );
    case "end":
      return Object.keys(NO_COUNTS).every((name) => Number.isSafeInteger(field(field(value, "counts"), name)));
    default:
      return false;
  }
}
function isObjectRecord(value: unknown): value is ObjectRecord {
  const isText = (name: string): boolean => typeof field(value, name) === "string";
  const isList = (name: string): boolean => Array.isArray(field(value, name));
  switch (field(value, "kind")) {
    case "object":
      return typeof field(value, "levels") === "object" && field(value, "levels") !== null;
    case "rows":
      return isText("table") && isList("columns") && isList("rows");
    case "sequence":
      return isText("table") && Number.isSafeInteger(field(value, "last"));
    case "value":
      return isText("key") && isText("json");
    default:
      return false;
  }
}
const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
const isTexts = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.values(value).every((item) => typeof item === "string");
