/**
 * Values that a shell evaluates as a text of commands when it calculates, expands `${x@P}` or shows PS4 (rule PO13). PURE. Such a value has its
 * substitution in quotes where the text sets it, so that it runs later.
 */

const QUOTED = /'([^']*)'|"((?:[^"\\]|\\.)*)"/g;
const SPELLS = /\$'[^']{0,300}\\(?:x24|x60|0?44|140|u0{0,6}(?:24|60))/;
/** Whether a value, as it is written, keeps a substitution for later. `mayGrow`: the text adds to values. */
export function keepsSubstitution(value: string, mayGrow: boolean): boolean {
  if (!/['\\]/.test(value) || !/[$`]/.test(value)) return SPELLS.test(value);
  let isKept = SPELLS.test(value);
  const bare = value.replaceAll(QUOTED, (_, single?: string, double?: string) => {
    if (single !== undefined) isKept ||= /\$\(|`/.test(single) || (mayGrow && single.endsWith("$"));
    else isKept ||= /\\[$`]/.test(double ?? "");
    return "";
  });
  return isKept || /\\[$`]/.test(bare);
}

const EVALUATES = [
  // Calculations, and comparisons of numbers.
  /\(\(|\$\[|\blet\s|\[\[[^\n]{0,300}\s-(?:eq|ne|lt|le|gt|ge|v)\s|\[\s[^;\n]{0,100}\s-(?:eq|ne|lt|le|gt|ge|v)\s|\btest\s[^;\n]{0,100}-v\s/,
  // Expansions and prompts.
  /@P\}|(?<![\w$])PS[0-4]\+?=|\$\{\w{1,60}:[^-=?+}]|\$\{!/,
  // Subscripts, and names that are variables.
  /\w\[[^\]\n]{0,100}[A-Za-z_$]|\bprintf\s{1,9}-v/,
  /\b(?:unset|read|mapfile|readarray|wait|getopts|exit|return|shift|break|continue)\s[^;|&\n]{0,100}\$/,
  /\b(?:declare|typeset|local|export|readonly|integer|float)\s{1,9}(?:-\w{0,9}[in]|[^;|&\n]{0,100}\$)/,
];
export const evaluates = (text: string): boolean => EVALUATES.some((form) => form.test(text));
