/**
 * What is known about programs by their names, for grants (rule GR3). PURE. A name that no list has is an unknown program: without a
 * sandbox it is allowed once only, because it may start what a file of its folder names, and that file may be another one next time.
 */
import { isGrantablePath } from "./paths.ts";
import { runsAnother } from "./wrappers.ts";
import { withoutQuotes } from "./quotes.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Run a program that is written in a file or in their input, or edit or make one: their first argument is no subcommand. */
const RUNS_CODE = words(`
  python pythonw pypy perl ruby node nodejs php lua luajit R Rscript julia java groovy scala kotlin elixir erl iex ghc ghci runghc racket
  guile clj clojure tclsh wish osascript irb ts-node tsx
  sh bash dash ash zsh ksh mksh fish csh tcsh pwsh
  awk gawk mawk nawk vi vim nvim view ex ed emacs nano less more man
  make gmake ninja just rake ant pytest jest vitest mocha psql mysql sqlite sqlite3 redis-cli mongosh gdb lldb
`);
/** Send data to a place that an argument names. */
const SENDS = words(`
  curl wget http https xh aria2c scp sftp ftp lftp tftp nc ncat netcat socat telnet mail mailx sendmail msmtp mutt rclone s3cmd aws gsutil gcloud az
  gh glab hub heroku flyctl wrangler vercel netlify dig nslookup host ping
`);
/** Read and print, or make an empty file or folder, whatever their arguments are. */
const READS = words(`
  ls cat head tail wc cut tr grep egrep fgrep find stat du df diff cmp comm echo basename dirname realpath readlink jq sha256sum md5sum cksum sleep
  seq true false pwd which whoami id uname ps column paste join nl fold fmt expand od hexdump strings printenv mkdir touch
`);
const NAMES_IN_FILE = /^--?f(?:i(?:l(?:e(?:s.*)?)?)?)?(?:=|$)|^--?files/;
const CHECKS = /^-[A-Za-z]*c|^--c/;
/**
 * Do only that as long as none of their arguments is like this: those write a file, or read further names or parts of the program from one,
 * which may have others the next time.
 */
const READS_UNLESS: Readonly<Record<string, RegExp>> = {
  sort: /^-[A-Za-z]*[oT]|^--(?!(?:reverse|unique|numeric-sort|human-numeric-sort|version-sort|ignore-case)$|key=)/,
  find: NAMES_IN_FILE,
  du: NAMES_IN_FILE,
  wc: NAMES_IN_FILE,
  sha256sum: CHECKS,
  md5sum: CHECKS,
  cksum: CHECKS,
  strings: /^@/,
  // Its programs read modules and the variables of the environment.
  jq: /import|include|search|modulemeta|env|^-[A-Za-z]*[fL]|^--(?!(?:raw-output|compact-output|null-input|slurp|sort-keys|tab|exit-status|raw-input|join-output|arg|argjson)$)/i,
  rg: /^--(?:pre|hostname-bin)/,
  // Its second operand is written.
  uniq: /^(?!-.)/,
};
const NO_FOLDERS = /^[^/]*$/;
/**
 * Do the same each time with arguments like these, one in a line: they read no configuration of their folder, start nothing, write nothing
 * that they read from a file, and follow no link, which may lead elsewhere the next time.
 */
const SAME_EACH_TIME: Readonly<Record<string, RegExp>> = {
  rm: NO_FOLDERS,
  rmdir: NO_FOLDERS,
  unlink: NO_FOLDERS,
  printf: /^(?!-)/,
  date: /^/,
  ping: /^/,
  host: /^[^-\n]/,
  nslookup: /^[^-\n]/,
  dig: /^(?!(?:.*\n)*-[fk])[^\n]/,
  // A page that is only read. Other options send files, read their options from one, or name a place to write.
  curl: /^(?:(?:-[sSLfIiv46]+|--(?:silent|show-error|location|fail|head|include|verbose|compressed))\n)*https?:\/\/[^\n]+$/,
  // With `-H` it starts another program, to reach another machine.
  systemctl:
    /^(?:--user\n)?(?:status|show|is-active|is-enabled|is-failed|list-units|list-timers|list-unit-files)(?:\n(?:[^-\n][^\n]*|--(?:no-pager|all|failed)))*$/,
  journalctl: /^(?:(?:-[befknqrux]+|--(?:user|no-pager|since|until|unit|boot|lines)(?:=[^\n]*)?|[^-\n][^\n]*)(?:\n|$))*$/,
};
/** None of their arguments is a command. */
const GIT_READS = words("status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree merge-base grep");
/** Beside those that read: their first argument is a value, never a subcommand. */
const NO_SUBCOMMAND = words(
  "sort uniq date file yq tree xxd base64 cp ln tee gzip gunzip zip unzip tar split hostname env printf test type",
);
/** Their subcommands have subcommands. */
const TWO_WORDS = words("gh glab aws gcloud az docker podman kubectl helm ip nmcli");

const baseOf = (program: string): string => program.slice(program.lastIndexOf("/") + 1);
/** `python3.12` is `python`. */
const familyOf = (program: string): string => baseOf(program).replace(/(?<=[A-Za-z])[0-9.]+$|\.exe$/i, "");
const isIn = (list: ReadonlySet<string>, program: string): boolean =>
  [baseOf(program), familyOf(program)].some((name) => list.has(name) || list.has(name.toLowerCase()));

const SYSTEM_FOLDERS: ReadonlySet<string> = new Set(["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"]);
/** A program of the workspace can be changed by the agent, as a script can. */
const isOutsideSystem = (program: string): boolean =>
  program.includes("/") && !SYSTEM_FOLDERS.has(program.slice(0, program.lastIndexOf("/")));

/** Reading programs that open no file named by an argument. */
const OPENS_NOTHING = words("echo basename dirname sleep seq true false pwd which whoami id uname");
/** Reading programs that with other arguments show variables of the environment, which may be secrets. */
const SHOWS_VARIABLES = words("printenv ps");
/** Programs that count as reading but make a file or folder, which another program may run. */
const MAKES = words("mkdir touch");
/** No path that leads out of the folder in which the command begins: other files of the user were not shown. */
const staysInFolder = (word: string): boolean =>
  word.startsWith("-") ? !/[/~]|\.\./.test(word) : !/(?:^|[^\w.-])[/~]|(?:^|[^\w.-])\.\.(?:[^\w.-]|$)/.test(word);
/**
 * As what a command is granted outside a sandbox: its program with any arguments that stay in the folder, exactly this command, or not at
 * all. It is granted when no file that something else may write makes it do something else the next time. `leaves`: it leaves the sandbox of
 * its machine, in which a command can make a link of any name to a file that the sandbox hides.
 */
export function unconfinedGrant(command: readonly string[], leaves = false): "any" | "exact" | undefined {
  const [program = "", ...args] = command;
  if (isOutsideSystem(program) || runsAnother(command)) return undefined;
  if (isPlain(command)) {
    const name = baseOf(program);
    if (leaves && !OPENS_NOTHING.has(name) && !SHOWS_VARIABLES.has(name)) return undefined;
    const isExact = SHOWS_VARIABLES.has(name) || (MAKES.has(name) && !args.every((arg) => arg.startsWith("-") || isGrantablePath(arg)));
    return !isExact && args.every(staysInFolder) ? "any" : "exact";
  }
  const same = Object.hasOwn(SAME_EACH_TIME, baseOf(program)) ? SAME_EACH_TIME[baseOf(program)] : undefined;
  return same?.test(args.join("\n")) === true ? "exact" : undefined;
}
/** Whether a text for a shell names git as a program, or may. Told to the owner, so a word too much does no harm. */
export const namesGit = (text: string): boolean => /(?<![\w.-])git(?![\w.@:=])/i.test(withoutQuotes(text));
export const sends = ([program = ""]: readonly string[]): boolean => isIn(SENDS, program);

/** Whether a command is known to do no more than its program and subcommand say, with any further arguments like its own. */
export function isPlain([program = "", ...args]: readonly string[]): boolean {
  const name = baseOf(program);
  const unless = Object.hasOwn(READS_UNLESS, name) ? READS_UNLESS[name] : undefined;
  return unless === undefined ? READS.has(name) : !args.some((arg) => unless.test(arg));
}
/** Whether no argument of a command is run as another command. What a program reads from its folder is another matter. */
export const runsNoArgument = (command: readonly string[]): boolean =>
  isPlain(command) || (baseOf(command[0] ?? "") === "git" && GIT_READS.has(command[1] ?? ""));

/** Have subcommands that do very different things. */
const HAS_SUBCOMMANDS = words("git npm pnpm yarn cargo go brew apt apt-get systemctl terraform dotnet gradle mvn");
/** Whether a command begins with options, and its program does different things by the subcommand behind them. */
export const hidesSubcommand = ([program = "", first = ""]: readonly string[]): boolean =>
  first.startsWith("-") && (isIn(HAS_SUBCOMMANDS, program) || isIn(TWO_WORDS, program));

const WORD = /^[A-Za-z][A-Za-z0-9:_-]*$/;
/** Undefined: the program has none, or the command begins with an option. */
export function subcommandOf([program = "", first, second]: readonly string[]): string | undefined {
  if (first === undefined || !WORD.test(first)) return undefined;
  if ([READS, NO_SUBCOMMAND, RUNS_CODE].some((list) => isIn(list, program))) return undefined;
  return isIn(TWO_WORDS, program) && second !== undefined && WORD.test(second) ? `${first} ${second}` : first;
}
