/** JSON in which each number is read as what was written (rule RT1). PURE. */

/** Longer ones have more digits than a number can hold, and cost time. */
const MOST_CHARS = 400;
/** Of `toPrecision`. */
const MOST_DIGITS = 100;
const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;
const INTEGER = /^-?\d+$/;

/** `1.10e3` is 11 and two zeros. */
function decimalOf(text: string): { readonly digits: string; readonly zeros: number } {
  const [, whole = "", fraction = "", exponent = "0"] = NUMBER.exec(text) ?? [];
  const written = (whole + fraction).replace(/^0+/, "");
  const digits = written.replace(/0+$/, "");
  return { digits, zeros: digits === "" ? 0 : Number(exponent) - fraction.length + written.length - digits.length };
}

/** With as many digits as were written, `value` is the same number as `source`: 0.1 is, and 9007199254740993.0 is not. */
export function isExact(source: string, value: number): boolean {
  if (!Number.isFinite(value) || source.length > MOST_CHARS) return false;
  if (INTEGER.test(source)) return Number.isSafeInteger(value);
  const asked = decimalOf(source);
  if (value === 0 || asked.digits === "") return value === 0 && asked.digits === "";
  if (asked.digits.length > MOST_DIGITS) return false;
  // Between two decimals of this length, the shortest form and the rounded one may be different ones of them.
  return [String(value), value.toPrecision(asked.digits.length)].some((text) => {
    const got = decimalOf(text);
    return got.digits === asked.digits && got.zeros === asked.zeros;
  });
}

/** In the place of a number that was read as another one. */
const INEXACT = Symbol("inexact");
const PLAIN_NAME = /^[\w$-]+$/;

/** The value, or the path of a number in it that would be read as another one, such as `payload.a[0]`. Undefined: the text is not JSON. */
export function parseExact(text: string): { readonly value: unknown } | { readonly inexact: string } | undefined {
  const check = (_key: string, value: unknown, { source = "" }: { readonly source?: string } = {}): unknown =>
    typeof value === "number" && !isExact(source, value) ? INEXACT : value;
  try {
    const value: unknown = JSON.parse(text, check);
    const path = pathOfInexact(value);
    return path === undefined ? { value } : { inexact: path.replace(/^\./, "") };
  } catch {
    return undefined;
  }
}
/** `.payload.a[0]`; undefined: there is none. The depth of `value` must be limited. */
function pathOfInexact(value: unknown): string | undefined {
  if (value === INEXACT) return "";
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, part] of Object.entries(value)) {
    const path = pathOfInexact(part);
    if (path === undefined) continue;
    const step = Array.isArray(value) ? `[${name}]` : PLAIN_NAME.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
    return step + path;
  }
  return undefined;
}
