/** Paths in arguments, as rules and modes compare them. PURE. Knows no file system: where a path leads is decided at its target. */

const PATH_NAMES: ReadonlySet<string> = new Set([
  "path",
  "file",
  "folder",
  "dir",
  "directory",
  "workdir",
  "cwd",
  "root",
  "source",
  "destination",
]);
/** Whether an argument of this name is a path. */
export const isPathName = (name: string): boolean => PATH_NAMES.has(name);

/** Without `.`, empty parts and `..`, as far as the text tells. */
export function normalPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (part !== ".." || !path.startsWith("/")) parts.push(part);
  }
  return (path.startsWith("/") ? "/" : "") + parts.join("/");
}
/** Whether a path names one of these folders or what is below it, as a machine reads it whose tools use no other: `..` goes by the text. */
export function isInFileRoots(path: string, folders: readonly string[]): boolean {
  if (!path.startsWith("/")) return normalPath(path).split("/")[0] !== "..";
  const parts = (text: string): readonly string[] =>
    normalPath(text)
      .split("/")
      .filter((part) => part !== "");
  return folders.some((folder) => parts(folder).every((part, index) => part === parts(path)[index]));
}
/** One form for all spellings that some disk takes for the same name. */
export const foldedPath = (path: string): string =>
  normalPath(path.replaceAll("\\", "/")).normalize("NFKC").replaceAll(INVISIBLE, "").toLowerCase();
const INVISIBLE = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\ufe00-\ufe0f]/g;

/**
 * Names with a dot at the front are settings, and most make some program run something: `.git/hooks`, `.bashrc`, `.local/bin`, `.gdbinit`. No
 * list of those is ever complete, so here are the ones that do not. A change of any other is more than a change of a file.
 */
const ONLY_SETTINGS: ReadonlySet<string> = new Set(
  (
    ".gitignore .gitkeep .keep .nojekyll .well-known .editorconfig .dockerignore .npmignore .eslintignore .prettierignore .ignore .rgignore " +
    ".env.example .env.sample .env.template .nvmrc .node-version .python-version .ruby-version .mailmap .markdownlint.json .yamllint .hidden"
  ).split(" "),
);
/** Names without a dot whose programs start what they name: tools of an agent, tasks of an environment. */
const STARTS_PROGRAMS: ReadonlySet<string> = new Set("opencode.json opencode.jsonc mise.toml mise.local.toml".split(" "));
/** A folder with a file HEAD can be a repository of git, and the settings beside it start programs when git looks at the folder. */
const REPOSITORY = "head";
const startsPrograms = (part: string): boolean =>
  part === REPOSITORY || STARTS_PROGRAMS.has(part) || (part.startsWith(".") && part !== "." && !ONLY_SETTINGS.has(part));
/**
 * Files of git in a directory of any name: a repository without files (`mirror.git`) has none that begins with a dot. Each sets which programs
 * git starts, or where such settings are.
 */
const OF_GIT: ReadonlySet<string> = new Set(["config", "config.worktree", "commondir", "gitdir"]);
/** Git runs only these names. */
const HOOKS: ReadonlySet<string> = new Set(
  (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout " +
    "post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite " +
    "sendemail-validate fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
  ).split(" "),
);
function isOfGit(parts: readonly string[]): boolean {
  const [folder, name = ""] = [parts.at(-2), parts.at(-1)];
  return OF_GIT.has(name) || (folder === "hooks" && HOOKS.has(name)) || (folder === "info" && name === "attributes");
}
/** Whether a file of a machine is surely inside the workspace, and none that makes other programs run something. */
export function isOrdinaryInside(path: unknown): boolean {
  if (typeof path !== "string" || path === "" || path.length > 4096 || /^[/~]|[\\\p{Cc}\p{Cf}\p{Cs}]|^[A-Za-z]:/u.test(path)) return false;
  const parts = foldedPath(path).split("/");
  return !path.split("/").includes("..") && !parts.some((part) => part === ".." || startsPrograms(part)) && !isOfGit(parts);
}
/** Whether a path says for certain which folder it is. Absolute paths too. */
export function isGrantableFolder(path: unknown): path is string {
  if (typeof path !== "string" || path === "" || path.length > 512 || /^~|[\\\p{Cc}\p{Cf}\p{Cs}]|^[A-Za-z]:/u.test(path)) return false;
  const parts = path.split("/");
  return !parts.includes("..") && !foldedPath(path).split("/").some(startsPrograms);
}
/** The same for a file that no other program runs. */
export const isGrantablePath = (path: unknown): path is string =>
  isGrantableFolder(path) && !isOfGit(foldedPath(path).split("/")) && !(path.startsWith("/") && startsByPlace(foldedPath(path)));
/** Outside the workspace: folders and names from which the system, or a shell, starts programs. */
const startsByPlace = (path: string): boolean => STARTS_BY_FOLDER.test(path) || STARTS_BY_NAME.test(path);
const STARTS_BY_FOLDER =
  /\/(?:s?bin|libexec|launchagents|launchdaemons|startupitems|autostart|startup|cron(?:\.\w+|tabs)?|systemd|init\.d|profile\.d|sudoers\.d|powershell|site-packages)\//;
const STARTS_BY_NAME = /(?:\.(?:desktop|plist|service|timer|pth)|profile\.ps1|\/(?:crontab|sudoers|profile|environment|ld\.so\.preload))$/;
