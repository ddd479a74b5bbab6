/** Whether a number of JSON is read as what was written (rule RT1). PURE. */

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
