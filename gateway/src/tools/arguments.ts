/** Reads a tool's arguments as a model wrote them, one by one. PURE. The messages say what to write instead. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { failure, type Failure, type Result } from "../ports/result.ts";
import { INVALID_ARGUMENTS } from "../models/invalid-arguments.ts";

export type Arguments = Readonly<Record<string, unknown>>;
export const bad = (message: string): Failure => failure("tool.bad_args", message);

export type Field<T> = (name: string, value: unknown) => Result<T>;
/** How each argument is read; one that is not `optional` is required. */
export type Fields = Readonly<Record<string, Field<unknown>>>;
export type ValuesOf<S extends Fields> = { readonly [K in keyof S]: S[K] extends Field<infer T> ? T : never };
/** A text of at most `maxChars`. */
export const text =
  (maxChars: number): Field<string> =>
  (name, value) => {
    if (typeof value !== "string") return bad(`\`${name}\` must be a string.`);
    return value.length > maxChars ? bad(`\`${name}\` is longer than ${maxChars} characters.`) : { ok: true, value };
  };
export const integer =
  (min: number, max: number): Field<number> =>
  (name, value) => {
    // Models sometimes write a number as a string.
    const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    return typeof number === "number" && Number.isInteger(number) && number >= min && number <= max
      ? { ok: true, value: number }
      : bad(`\`${name}\` must be a whole number from ${min} to ${max}.`);
  };
export const flag: Field<boolean> = (name, value) => {
  const meant = value === "true" ? true : value === "false" ? false : value;
  return typeof meant === "boolean" ? { ok: true, value: meant } : bad(`\`${name}\` must be true or false.`);
};
/** For the description of an argument that `fileNames` reads. */
export const FILE_NAMES = "Workspace paths (`report.md`), or files of this conversation (`media:3`).";
/** A list of files to send. */
export const fileNames: Field<readonly string[]> = (name, value) => {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  const good = given.filter((entry) => typeof entry === "string" && entry !== "" && entry.length <= 1024);
  return good.length === given.length && given.length <= LIMITS.attachments
    ? { ok: true, value: good.map(String) }
    : bad(`\`${name}\` must be a list of at most ${LIMITS.attachments} paths.`);
};
export const optional =
  <T>(field: Field<T>): Field<T | undefined> =>
  (name, value) =>
    value === undefined || value === null ? { ok: true, value: undefined } : field(name, value);

/** The values of all `fields`. Other arguments are ignored. */
export function readArguments<S extends Fields>(args: Arguments, fields: S): Result<ValuesOf<S>> {
  if (Object.hasOwn(args, INVALID_ARGUMENTS)) return bad("The arguments are not a JSON object. Write them again.");
  const out: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (value === undefined && !isOptional(field)) return bad(`\`${name}\` is missing.`);
    const read = field(name, value);
    if (!read.ok) return read;
    out[name] = read.value;
  }
  return { ok: true, value: out as ValuesOf<S> };
}
const isOptional = (field: Field<unknown>): boolean => field("", undefined).ok;
/** For the JSON Schema of the arguments. */
export const requiredNames = (fields: Fields): readonly string[] =>
  Object.entries(fields).flatMap(([name, field]) => (isOptional(field) ? [] : [name]));
