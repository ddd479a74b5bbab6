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
/** One form for all spellings that some disk takes for the same name. */
export const foldedPath = (path: string): string =>
  normalPath(path.replaceAll("\\", "/")).normalize("NFKC").replaceAll(INVISIBLE, "").toLowerCase();
const INVISIBLE = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\ufe00-\ufe0f]/g;

/** Files and folders that make other programs run something: a change of one is more than a change of a file. */
const STARTS_PROGRAMS: ReadonlySet<string> = new Set(
  (
    ".git .gitmodules .gitattributes .gitconfig .hg .hgrc .svn .envrc .direnv .env .vscode .idea .vim .vimrc .exrc .nvim .emacs .dir-locals.el .bashrc " +
    ".bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .zlogout .config .ssh .gnupg .aws .docker .kube .npmrc .yarnrc " +
    ".yarnrc.yml .pnpmfile.cjs .cargo .pypirc .netrc .husky .github .gitlab-ci.yml .claude .cursor .codex .gemini .opencode .windsurf .continue " +
    ".zed .fleet .nvim.lua .nvimrc .gdbinit .lldbinit .irbrc .pryrc .mcp.json .devcontainer .tool-versions .mise.toml"
  ).split(" "),
);
/** Whether a file of a machine is surely inside the workspace, and none that makes other programs run something. */
export function isOrdinaryInside(path: unknown): boolean {
  if (typeof path !== "string" || path === "" || path.length > 4096 || /^[/~]|[\\\p{Cc}\p{Cf}\p{Cs}]|^[A-Za-z]:/u.test(path)) return false;
  const parts = foldedPath(path).split("/");
  return !path.split("/").includes("..") && !parts.some((part) => part === ".." || STARTS_PROGRAMS.has(part));
}
/** Whether a path says for certain which folder it is in, and that no other program runs the file. Absolute paths too. */
export function isGrantablePath(path: unknown): path is string {
  if (typeof path !== "string" || path === "" || path.length > 512 || /^~|[\\\p{Cc}\p{Cf}\p{Cs}]|^[A-Za-z]:/u.test(path)) return false;
  const parts = path.split("/");
  return (
    !parts.includes("..") &&
    !foldedPath(path)
      .split("/")
      .some((part) => STARTS_PROGRAMS.has(part))
  );
}
