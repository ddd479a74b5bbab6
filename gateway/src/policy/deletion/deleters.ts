/**
 * How many files one command deletes, as its name and options say (rule PO13). PURE. It gets a single command; deletions.ts finds those that
 * are inside of another one.
 */

import { isTemporary, type TemporaryTrust } from "./temporary-paths.ts";
import { namesFile } from "./file-names.ts";
import { removesFromStore } from "./git-store.ts";
import { setsRemover } from "./given-to-git.ts";
import { byRsync } from "./rsync.ts";
import { isFolderOfTool } from "./set-folders.ts";
import { removesStored } from "./stored-files.ts";
import { asGit, GIT_PROGRAM, nameOf } from "../wrappers.ts";

/** Names by which a command deletes that is written somewhere in the arguments of another one. */
export const DELETERS: ReadonlySet<string> = new Set(
  (
    "rm grm srm zf_rm remove-item wipe unlink shred truncate rimraf premove rmrf find gfind bfs git rsync tar gtar bsdtar star cmake zip 7z 7za 7zr 7zz rar rclone " +
    "aws gsutil s3cmd s5cmd mc gcloud azcopy hdfs hadoop ozone borg restic kopia duplicity btrfs zfs zpool hg svn bzr fossil zstd lz4 gio lha fdupes jdupes rdfind tmpreaper tmpwatch"
  ).split(" "),
);

/** Whether a word names such a program, with the subcommands of git that are programs. */
export const namesDeleter = (word = ""): boolean => DELETERS.has(nameOf(word)) || GIT_PROGRAM.test(word);

/** How many files a command names for deletion, without those in temporary folders. */
export function countOf([program, ...args]: readonly string[], trust: TemporaryTrust): number | "many" {
  const name = nameOf(program);
  switch (name) {
    case "rm":
    case "grm":
    case "srm":
    case "zf_rm":
    case "wipe":
      return countRemoved(args, trust, (option) => /^-[A-Za-z]*[rR]|^--r/.test(option));
    // PowerShell takes any beginning of `-Recurse`.
    case "remove-item":
    case "ri":
    case "rd":
    case "erase":
      return countRemoved(args, trust, (option) => /^-r/i.test(option));
    case "unlink":
    case "shred":
    case "truncate":
      return countRemoved(args, trust);
    case "rimraf":
    case "premove":
    case "rmrf":
    case "del":
    case "del-cli":
      return countRemoved(["-r", ...args], trust, () => true);
    // They run the program of a package.
    case "yarn":
    case "pnpm":
      return /^(?:rimraf|premove|del|del-cli|shx)$/.test(nameOf(args[0])) ? countOf(args[0] === "shx" ? args.slice(1) : args, trust) : 0;
    case "trash-empty":
    case "tmpreaper":
    case "tmpwatch":
      return "many";
    case "systemd-tmpfiles":
      return args.some((arg) => /^--(?:rem|cl|pu)/.test(arg)) ? "many" : 0;
    case "fdupes":
    case "jdupes":
      return args.some((arg) => /^-[A-Za-z]*d|^--del/.test(arg)) ? "many" : 0;
    case "rdfind":
      return args.some((arg) => /^-delete/i.test(arg)) ? "many" : 0;
    case "find":
    case "gfind":
    case "bfs":
      // `-follow` leads through links, as `-L` does, after which there is no root.
      return args.includes("-delete") && (args.includes("-follow") || !areTemporary(rootsOf(args), trust)) ? "many" : 0;
    case "git":
      return byGit(args, trust);
    case "rsync":
      return byRsync(args, trust);
    case "tar":
    case "gtar":
    case "bsdtar":
    case "star":
      return args.some((arg) => /^--(?:rem|recursiv)/.test(arg)) || extractsIncrements(args) ? "many" : 0;
    case "virtualenv":
    case "uv":
    case "pytest":
    case "pytest-3":
    case "py.test":
    case "coverage":
      return byModule(name, args, trust);
    case "cargo":
      return byCargo(args, trust);
    case "cmake":
      return byCmake(args, trust);
    case "zip":
      return args.some((arg) => /^-[A-Za-z0-9@]*m|^--mo/.test(arg)) ? "many" : 0;
    case "patch":
    case "gpatch":
      return takesBack(args, /^-[A-Za-z]*[RE]|^--re[mv]/, /^--(?:dr|ch)/);
    case "7z":
    case "7za":
    case "7zr":
    case "7zz":
      return args.some((arg) => /^-sdel/i.test(arg)) ? "many" : 0;
    case "rar":
      return args.some((arg, at) => /^-d[fr]/i.test(arg) || (at === 0 && /^mf?$/i.test(arg))) ? "many" : 0;
    case "rclone":
      return args.some((arg) => /^(?:purge|delete|sync|bisync|move|moveto|rmdirs|cleanup|dedupe)$/.test(arg)) ? "many" : 0;
    case "aws":
    case "gsutil":
      return args.some((arg) => /^(?:rm|--delete|-d)$/.test(arg)) ? "many" : 0;
    case "gcloud":
    case "s5cmd":
    case "mc":
    case "azcopy":
    case "hdfs":
    case "hadoop":
    case "ozone":
    case "borg":
    case "restic":
    case "kopia":
    case "duplicity":
    case "btrfs":
    case "zfs":
    case "zpool":
      return removesStored(name, args) ? "many" : 0;
    case "s3cmd":
    case "lftp":
      return byMirror(args);
    case "rg":
      return byPreprocessor(args);
    case "hg":
      return args.some((arg) => /^(?:purge|clean)$/.test(arg)) ||
        isDiscarding(args, /^(?:revert|update|up|checkout|co)$/, /^-[A-Za-z]*[aC]|^--(?:all|clean)/)
        ? "many"
        : 0;
    case "svn":
      return args.some((arg) => arg.startsWith("--remove-")) || isDiscarding(args, /^revert$/, /^-R|^--rec|^--depth/) ? "many" : 0;
    case "zstd":
    case "lz4":
    case "gio":
      return args.some((arg) => /^--rm$|^remove$|^trash$/.test(arg))
        ? countRemoved(args.slice(1), trust, (option) => /^-[A-Za-z]*r$|^--rm$/.test(option))
        : 0;
    case "lha":
      return args.some((arg) => /^-?[a-z]*m/.test(arg)) ? "many" : 0;
    case "bzr":
    case "fossil":
      return args.some((arg) => /^clean(?:-tree)?$/.test(arg)) ? "many" : 0;
    default: {
      if (name.startsWith("py") && PYTHON.test(name)) return byPython(args, trust);
      const [git = "", ...subcommand] = asGit(program ?? "");
      return subcommand.length > 0 ? countOf([git, ...subcommand, ...args], trust) : 0;
    }
  }
}

/** Whether a version control replaces what was changed in all files. */
const isDiscarding = (args: readonly string[], subcommand: RegExp, option: RegExp): boolean =>
  args.some((arg) => subcommand.test(arg)) && args.some((arg) => option.test(arg));
/** Whether tar deletes what the archive of a folder does not hold, or may: an option in a variable comes without the mode. */
function extractsIncrements(args: readonly string[]): boolean {
  const letters = args.filter((arg, at) => /^-[A-Za-z]/.test(arg) || (at === 0 && /^[A-Za-z]+$/.test(arg)));
  // Behind such a letter the rest of an option is its value.
  const flags = letters.map((arg) => (arg.startsWith("-") ? arg.replace(/(?<=[bCfgFHIKLNTVX]).*$/s, "") : arg)).join("");
  const has = (flag: RegExp, option: RegExp): boolean => flag.test(flags) || args.some((arg) => option.test(arg));
  if (!has(/[Gg]/, /^--(?:inc|listed)/)) return false;
  return has(/x/, /^--(?:ext|ge)/) || !has(/[ctrud]/, /^--(?:cr|lis$|list$|ap|up|di|co|del)/);
}
/** Whether a patch is taken back, with the files that it has made. `shows`: it only shows what it would do. */
const takesBack = (args: readonly string[], option: RegExp, shows: RegExp): number | "many" =>
  args.some((arg) => option.test(arg)) && !args.some((arg) => shows.test(arg)) ? "many" : 0;
const PYTHON = /^(?:python|pypy)[\d.]*$/;
/** Tools of Python that empty a folder. */
function byModule(name: string, args: readonly string[], trust: TemporaryTrust): number | "many" {
  if (/^py\.?test(?:-3)?$/.test(name)) return byPytest(args, trust);
  if (name === "coverage") return byPython(args, trust);
  const makes = name === "uv" ? args.includes("venv") : name === "venv" || name === "virtualenv";
  return makes && args.some((arg) => arg.startsWith("--cl")) ? "many" : 0;
}
function byPython(args: readonly string[], trust: TemporaryTrust): number | "many" {
  const at = args.findIndex((arg) => /^-[A-Za-z]*m/.test(arg));
  if (at === -1) return 0;
  const given = args[at]?.replace(/^-[A-Za-z]*?m/, "");
  const [name = "", ...rest] = given ? [given, ...args.slice(at + 1)] : args.slice(at + 1);
  return byModule(name, rest, trust);
}
/** It empties the folder for its temporary files. */
function byPytest(args: readonly string[], trust: TemporaryTrust): number | "many" {
  const given = args.find((arg) => /^(?:-o|--override-ini=)?addopts=.*--bas/s.test(arg));
  if (given !== undefined) return byPytest(given.slice(given.indexOf("=") + 1).split(/\s+/), trust);
  const at = args.findIndex((arg) => arg.startsWith("--bas"));
  if (at === -1) return 0;
  return isTemporary(/=["']?(.*)/s.exec(args[at] ?? "")?.[1] ?? args[at + 1] ?? "", trust) ? 0 : "many";
}
/** Without a folder that its arguments name, it empties one of its own. */
const byCargo = (args: readonly string[], trust: TemporaryTrust): number | "many" =>
  args.includes("clean") &&
  args.some((arg, at) => {
    const value =
      /^(?:--target-dir=|(?:--config=)?build\.target-dir=)["']?([^"']*)/.exec(arg)?.[1] ??
      (arg === "--target-dir" ? args[at + 1] : undefined);
    return value !== undefined && !isFolderOfTool(value, trust);
  })
    ? "many"
    : 0;
/** Make a folder the same as another one, elsewhere or here. */
const byMirror = (args: readonly string[]): number | "many" =>
  args.some((arg) => /^(?:del|rm|--delete-r\w*)$|\bmirror\b[^;]{0,300}\s(?:--del|-[A-Za-z]{0,9}e)/.test(arg)) ? "many" : 0;
/** ripgrep gives each file to the program of `--pre`. */
const byPreprocessor = (args: readonly string[]): number | "many" =>
  args.some((arg, at) => givesDeleter(arg, /^--pre=/) || (arg === "--pre" && givesDeleter(args[at + 1], /^/))) ? "many" : 0;
/** Programs of cmake that are written behind `-E`. */
function byCmake(args: readonly string[], trust: TemporaryTrust): number | "many" {
  const [program, ...rest] = args.slice(args.indexOf("-E") + 1);
  if (!args.includes("-E")) return 0;
  if (program === "rm") return countRemoved(rest, trust, (option) => /^-[A-Za-z]*[rR]/.test(option));
  if (program === "remove") return countRemoved(rest, trust);
  return program === "remove_directory" ? countRemoved(["-r", ...rest], trust, () => true) : 0;
}

function countRemoved(
  args: readonly string[],
  trust: TemporaryTrust,
  isRecursive: (option: string) => boolean = () => false,
): number | "many" {
  const end = args.indexOf("--");
  const before = end < 0 ? args : args.slice(0, end);
  const options = before.filter((arg) => arg.startsWith("-"));
  // After a name it is another name, for some.
  if (args[0] === "--help" || args[0] === "--version") return 0;
  const paths = [...before.filter((arg) => !arg.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))];
  // Its paths come from elsewhere, as in `xargs rm`.
  if (paths.length === 0) return "many";
  const lasting = paths.filter((path) => !isTemporary(path, trust));
  // The shell may make `-r` of such an option.
  if (lasting.length > 0 && options.some((option) => isRecursive(option) || UNNAMED.test(option))) return "many";
  let count = 0;
  for (const path of lasting) {
    const [, list] = LISTED.exec(path) ?? [];
    if (list === undefined && UNNAMED.test(path)) return "many";
    count += list?.split(",").length ?? 1;
  }
  return count;
}
/** Characters of a word whose expansion by the shell is not known. */
const UNNAMED = /[*?[\]{}$`^]/;
/** The shell makes one name of each word in the braces. None of them becomes an option. */
const LISTED = /^(?:[\w./~][\w./~-]*)?\{(\w[\w.-]*(?:,\w[\w.-]*)+)\}[\w./-]*$/;

const rootsOf = (args: readonly string[]): readonly string[] => {
  const end = args.findIndex((arg) => /^[-(!]/.test(arg));
  return end === -1 ? args : args.slice(0, end);
};
const areTemporary = (paths: readonly string[], trust: TemporaryTrust): boolean =>
  paths.length > 0 && paths.every((path) => isTemporary(path, trust));

/** Options of git itself that take the next word. */
export const GIT_VALUE: ReadonlySet<string> = new Set(
  "-C -c --git-dir --work-tree --namespace --exec-path --attr-source --super-prefix --config-env".split(" "),
);
/** Where the subcommand is in arguments of git. */
export function subcommandAt(args: readonly string[]): number {
  let at = 0;
  while (args[at]?.startsWith("-") === true) at += GIT_VALUE.has(args[at] ?? "") ? 2 : 1;
  return at;
}
function byGit(args: readonly string[], trust: TemporaryTrust): number | "many" {
  const at = subcommandAt(args);
  const [subcommand, ...rest] = args.slice(at);
  const has = (option: RegExp): boolean => rest.some((arg) => option.test(arg));
  if (removesFromStore(subcommand ?? "", rest, args.slice(0, at)) || setsRemover(args.slice(0, at))) return "many";
  // Git takes every beginning of a long option that no other one has.
  switch (subcommand) {
    case "clean":
      return isDryRunOr(rest, /^--dr/) ? 0 : "many";
    case "rm":
      return isDryRunOr(rest, /^--(?:dr|ca)/) ? 0 : countRemoved(rest, trust, (option) => /^-[a-zA-Z]*r/.test(option));
    case "worktree":
      return rest[0] === "remove" ? "many" : 0;
    case "stash":
      if (rest[0] === "drop" || rest[0] === "clear") return "many";
      // The other files of the work tree go with it; it keeps them until it is dropped.
      return (rest[0] === undefined || /^(?:push|save|-.*)$/.test(rest[0])) && has(/^-[a-z]*[au]|^--[ai]/) ? "many" : 0;
    case "reset":
      return has(/^--(?:h(?!elp)|mer?)/) ? "many" : 0;
    case "checkout":
    case "switch":
    case "restore":
      return countReplaced(subcommand, rest);
    case "checkout-index":
      if (!has(/^-[a-z]*f|^--f/)) return 0;
      return has(/^-[a-z]*a|^--a|^--std/) || rest.some((arg) => UNNAMED.test(arg))
        ? "many"
        : rest.filter((arg) => !arg.startsWith("-")).length;
    case "grep":
      return has(PAGER) && rest.some((arg) => givesDeleter(arg, /^(?:-[A-Za-z0-9]*O|--op[a-z-]*=)/))
        ? "many"
        : pagedBy(args.slice(0, at), rest);
    case "difftool":
      return rest.some(
        (arg, place) => givesDeleter(arg, /^(?:-[A-Za-z]*x|--e[a-z]*=)/) || (EXTCMD.test(arg) && givesDeleter(rest[place + 1], /^/)),
      )
        ? "many"
        : 0;
    // Takes back what a patch has made, whole files included.
    case "apply":
      return takesBack(rest, /^-[A-Za-z]*R|^--rev/, /^--(?:ch|st|num|su)/);
    case "read-tree":
      return has(/^--res|^-[a-z]*m/) && has(/^-[a-z]*u/) ? "many" : 0;
    case "sparse-checkout":
      return has(/^(?:set|init|reapply)$/) ? "many" : 0;
    case "submodule":
      return rest.includes("deinit") ? "many" : 0;
    case "filter-repo":
    case "p4":
      return "many";
    default:
      return 0;
  }
}
/** Options of git grep and difftool that name a program, which gets the names of the files. */
const PAGER = /^(?:-[A-Za-z0-9]*O|--op)/;
const EXTCMD = /^(?:-[A-Za-z]*x|--e[a-z]*)$/;
/** Whether a value names a program that deletes. `option`: what stands before the value in the same word. */
const givesDeleter = (arg = "", option: RegExp): boolean =>
  option.test(arg) &&
  arg
    .replace(option, "")
    .split(/[\s"'\\;&|()]+/)
    .some((word) => DELETERS.has(nameOf(word)));
/** Without a program in the option it is the pager that the configuration names. */
const pagedBy = (options: readonly string[], rest: readonly string[]): number | "many" =>
  rest.some((arg) => PAGER.test(arg)) && options.some((option) => givesDeleter(option, /^[^=]*=/)) ? "many" : 0;
/** Files of the work tree that git replaces by earlier ones. */
function countReplaced(subcommand: string, args: readonly string[]): number | "many" {
  if (subcommand !== "restore" && args.some((arg) => /^-[a-z]*f|^--(?:f|di)/.test(arg))) return "many";
  const staged = args.some((arg) => /^-[a-zA-Z]*S|^--stag/.test(arg));
  if (subcommand === "restore" && staged && !args.some((arg) => /^-[a-zA-Z]*W|^--w/.test(arg))) return 0;
  // An orphan begins without the files of the branch before.
  if (subcommand === "switch") return args.some((arg) => /^--or/.test(arg)) ? "many" : 0;
  const end = args.indexOf("--");
  const paths = end === -1 ? args.filter((arg) => !arg.startsWith("-")) : args.slice(end + 1);
  if (args.some((arg) => arg.startsWith("--pathspec-f")) || paths.some((path) => /^(?:\.\.?|:.*)$|\/$|[*?[]/.test(path))) return "many";
  // They come from elsewhere, as in `xargs git restore`.
  if (paths.length === 0 && (end !== -1 || subcommand === "restore")) return "many";
  // The first word of a checkout may be a branch. A name without an extension that files have may be a folder.
  const mayBeBranch = end === -1 && subcommand === "checkout" && !args.some((arg) => TAKES_SIDE.test(arg));
  const named = !mayBeBranch ? paths : args.some((arg) => MAKES_BRANCH.test(arg)) ? [] : paths.slice(1);
  return named.every(namesFile) ? named.length : "many";
}
const MAKES_BRANCH = /^-[A-Za-z]*[bBt]|^--(?:tr|or)/;
/** One side of a merge: every word is a path then. */
const TAKES_SIDE = /^--(?:ou|th)|^-[23]$/;
/**
 * Whether git only shows what it would do (`-n`), or what a long option says. Git takes every
 * beginning of a long option for the whole. `-e`, `--exclude` and `--pathspec-from-file` take the next text; `--no-` takes back.
 */
function isDryRunOr(args: readonly string[], long: RegExp): boolean {
  let found = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") break;
    if (arg.startsWith("--no-")) return false;
    const value = arg.indexOf("e");
    if (arg.startsWith("--")) found ||= long.test(arg);
    else if (arg.startsWith("-")) found ||= (value < 0 ? arg : arg.slice(0, value)).includes("n");
    if (/^--(?:e|p)[a-z-]*$/.test(arg) || (/^-[^-]/.test(arg) && value === arg.length - 1)) at++;
  }
  return found;
}
