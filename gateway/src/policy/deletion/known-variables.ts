/**
 * Variables whose value is known from the text of a command (rule PO13). PURE. A folder that `mktemp` makes at its beginning, and the
 * usual names of compilers and interpreters, which the text does not set. In doubt a variable is not known.
 */
import { withoutQuotes } from "../quotes.ts";

/** Words by which a shell sets a variable, changes what a name means, or reads another text. */
const SETTERS =
  /(?:^|[\s;&|(`{!])(?:eval|source|\.|read|declare|typeset|local|readonly|export|let|mapfile|readarray|getopts|printf|unset|set|env|alias|hash|enable|builtin|command|coproc|select|wait|for|function|exec|vared|print|integer|float|nameref|sysread|strftime|zparseopts|private|repeat)(?=[\s;&|)`<>]|$)|\(\)|\(\(|\$\{![^}]|\b(?:PATH|IFS|BASH_ENV)\b/;
/** Calculations, in which a value may be an assignment: a substring, a comparison of numbers, `$[`, a subscript. */
const CALCULATES = /\$\{\w{1,60}:(?![-=?+])[^}\n]{0,300}\$|\$\[|\w\[[^\]\s]{0,300}\$/;
const COMPARES = /\[\[[^\n]{0,300}\s-(?:eq|ne|lt|le|gt|ge)\s/;
/** Those are numbers. */
const COUNTS = /\$(?:[#?]|\{#\w{0,40}(?:\[@\])?\})\s{1,9}-(?:eq|ne|lt|le|gt|ge)\s{1,9}\d/g;
const mayCalculate = (text: string): boolean =>
  (text.includes("[") || text.includes("${")) && (CALCULATES.test(text) || COMPARES.test(text.replaceAll(COUNTS, "")));
/** Commands that set the variables that their words name. */
const NAMES: ReadonlySet<string> = new Set(
  "declare typeset local readonly export let read mapfile readarray getopts unset set env coproc select wait for vared print integer float nameref sysread zparseopts private".split(
    " ",
  ),
);
/** Whether a text may set a variable whose name it does not show: the name has an expansion. */
export function maySetAnyVariable(text: string): boolean {
  if (mayCalculate(text) || /\(\([^)]{0,300}\$|\$\{!/.test(text)) return true;
  let isSetter = false;
  let isPrint = false;
  for (const word of withoutQuotes(text).split(/(?<=[\s;&|()`])/)) {
    const bare = word.replace(/[\s;&|()`]$/, "");
    // It sets a variable with an option only.
    if (isPrint && bare !== "") isSetter = /^[-${]/.test(bare);
    if (isSetter && /^[^=]*[$`*?[{]/.test(bare)) return true;
    if (bare !== "") isPrint = bare === "printf";
    if (NAMES.has(bare)) isSetter = true;
    if (/[;&|()\n]$/.test(word)) isSetter = isPrint = false;
  }
  return false;
}
/** Spellings that this reading does not undo. */
const SPELT = /\$'|\\\n/;
/** The text before the folder is made, with nothing that may skip it. */
const BEGIN = /^(?:\s*set -[A-Za-z]+(?: pipefail)?\s*(?:;|&&|\n))?\s*/;
/** The folder is new, below the folder for temporary files, and its name is given by the program. */
const MKTEMP_ASSIGNMENT =
  /^([A-Za-z_]\w{0,40})=("?)\$\(mktemp(?: -[dqu]{1,3}| --directory)?(?: -d)?(?: -t [\w.-]{1,60}| \/tmp\/[\w-]{1,60}\.X{3,20})?\)\2(?=\s*(?:;|&&|\n|$))/;
/** Variables that are set before any command begins. */
const OF_SYSTEM =
  /^(?:HOME|PWD|OLDPWD|PATH|IFS|USER|LOGNAME|SHELL|TMP|TEMP|TMPDIR|LANG|TERM|MAIL|HOSTNAME|CDPATH|ENV|BASH\w*|ZDOTDIR|RANDOM|SECONDS|LINENO|PPID|UID|EUID|OPTARG|OPTIND|REPLY|XDG_\w+|LC_\w+|GSV\w*|_)$/;
/** Variables that usually name tools. Their values come from outside the text. */
const TOOLS: ReadonlySet<string> = new Set("CC CXX CPP LD AR MAKE CARGO RUSTC PYTHON PYTHON3 NODE NPM GO JAVA".split(" "));
/** Longer texts are left as they are: an unknown variable only asks more. */
const MAX_TEXT = 20_000;

/** A trap: the shell runs its code at the end; it is read as a command where it is set. */
const TRAP = /(?<=^|[;&|\n] ?)trap '([\w ./;&|>$"{}-]*)'(?: (?:EXIT|INT|TERM|HUP|QUIT|ERR|0|1|2|15))+(?=\s*(?:[;&|\n]|$))/g;
const withoutTraps = (text: string): string =>
  text.replaceAll(TRAP, (whole, code: string) => (code.split('"').length % 2 === 1 ? `{ ${code}\n}` : whole));

/** The text with the values of the variables that it shows. */
export function withKnownVariables(text: string): string {
  if (text.length > MAX_TEXT || !(text.includes("$") || text.includes("trap"))) return text;
  if (mayCalculate(text)) return withoutTraps(text);
  return withoutTraps(withValues(withoutSetNames(withMadeFirst(text))));
}
/** A trap that is set before the folder or file is made runs at the end, as one that is set after it. */
const withMadeFirst = (text: string): string =>
  text.replace(
    /^((?:\s*set -[A-Za-z]+(?: pipefail)?\s*(?:;|&&|\n))?\s*)(trap '[\w ./;&|>$"{}-]{1,500}'(?: (?:EXIT|INT|TERM|HUP|QUIT|0|1|2|15)){1,9})\s*(?:;|\n)\s*([A-Za-z_]\w{0,40}="?\$\(mktemp[^()\n;&|]{0,90}\)"?)(?=\s*(?:;|&&|\n|$))/,
    "$1$3; $2",
  );

/** A variable that the text sets as the first thing, to plain words. */
const SETS =
  /^(\s*)([A-Za-z_]\w{0,40})=(?:"([\w ./:,@%+-]{1,300})"|'([\w ./:,@%+-]{1,300})'|("?)((?:\$PWD\/)?[\w./:,@%+-]{1,300})\5)(\s*(?:;|&&|\n)\s*)/;
/** Quotes and the like change what a shell makes of the variable. */
const CHANGES_READING = /['`\\#]|<</;
/** Words of a shell that are none when they come from a variable. */
const KEYWORD =
  /(?:^| )(?:if|then|elif|else|fi|case|esac|in|for|foreach|select|while|until|repeat|do|done|function|time|coproc|begin|switch|end)(?: |$)/;
const MAX_SET = 5;
function withoutSetNames(text: string, left = MAX_SET): string {
  const found = SETS.exec(text);
  if (found === null || left === 0) return text;
  const [whole, , name = "", double, single, , bare] = found;
  const rest = text.slice(whole.length);
  const isSafe = !OF_SYSTEM.test(name) && !CHANGES_READING.test(rest) && !SETTERS.test(rest.replaceAll('"', "")) && isOnlyRead(name, rest);
  const value = double ?? single ?? bare ?? "";
  if (!isSafe || KEYWORD.test(value)) return text;
  const place = (quote: string): RegExp => new RegExp(`(?<=^|[\\s;&|(])${quote}\\$(?:${name}|\\{${name}\\})${quote}(?=$|[\\s;&|)])`, "g");
  const beforeSlash = new RegExp(`(?<=(?:^|[\\s;&|(])"?)\\$(?:${name}|\\{${name}\\})(?=\\/)`, "g");
  return (
    whole +
    withoutSetNames(
      rest
        .replaceAll(place('"'), () => `"${value}"`)
        .replaceAll(place(""), () => value)
        .replaceAll(beforeSlash, (found) => (value.includes(" ") ? found : value)),
      left - 1,
    )
  );
}
function withValues(text: string): string {
  if (!text.includes("$")) return text;
  const plain = withoutQuotes(text);
  const begin = BEGIN.exec(text)?.[0] ?? "";
  const made = MKTEMP_ASSIGNMENT.exec(text.slice(begin.length));
  // `set -e` at the beginning sets no variable; printf does with -v only.
  const rest = plain.slice(withoutQuotes(begin).length).replaceAll(/\bprintf\s+(?=[\w%])/g, "echo ");
  if (SPELT.test(text) || SETTERS.test(rest)) return text;
  let known = isOnlyRead("HOME", text) ? text.replaceAll(IN_HOME, "~$2") : text;
  if (made !== null) {
    const [whole, name = ""] = made;
    const others = known.slice(begin.length + whole.length);
    const isOnly = !OF_SYSTEM.test(name) && !/mktemp|TMPDIR/.test(withoutQuotes(others)) && isOnlyRead(name, others);
    if (isOnly)
      known = `${begin}${whole.replace(/=.*/s, "=made")}${substitute(`"\\$(?:${name}|\\{${name}\\})"`, `/tmp/mktemp.${name}`, others)}`;
  }
  const named = new Set([...text.matchAll(/(?<=^|[\s;&|(])"?\$\{?([A-Z][A-Z0-9]{1,8})\b/g)].map(([, name = ""]) => name));
  for (const name of named)
    if (TOOLS.has(name) && isOnlyRead(name, text)) known = substitute(`("?)\\$(?:${name}|\\{${name}\\})\\1`, name.toLowerCase(), known);
  return known;
}
/** A path by plain names, alone in quotes or without any. */
const IN_HOME = /(?<=^|[\s;&|(])("?)\$(?:HOME|\{HOME\})(\/[\w./-]{1,500})\1(?=$|[\s;&|)])/g;
/** The name stands in the text as `$NAME` or `${NAME}` only. */
function isOnlyRead(name: string, text: string): boolean {
  const bare = withoutQuotes(text).replaceAll(new RegExp(`\\$(?:${name}(?!\\w)|\\{${name}\\})`, "g"), "");
  return !new RegExp(`(?<!\\w)${name}(?!\\w)`).test(bare);
}
/**
 * Where the variable is a word of its own: what is joined to it can make another path of it. The folder only in quotes: without them a
 * name that mktemp could not give leaves no word.
 */
const substitute = (spelling: string, value: string, text: string): string =>
  text.replaceAll(new RegExp(`(?<=^|[\\s;&|(])${spelling}(?=$|[\\s;&|)]|'(?:$|[\\s;&|)]))`, "g"), value);
