/**
 * What is known about programs by their names, for grants (rule GR3). PURE. A name that no list has counts as an ordinary program: its
 * first word-like argument is its subcommand, which only makes a grant narrower.
 */
import { runsAnother } from "./wrappers.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Run a program that is written in a file or in their input: what they do is not in their name. */
const RUNS_CODE = words(`
  python pythonw pypy perl ruby node nodejs bun deno php lua luajit R Rscript julia java groovy scala kotlin elixir erl iex ghc ghci runghc racket
  guile clj clojure tclsh wish osascript irb swift dart ts-node tsx
  sh bash dash ash zsh ksh mksh fish csh tcsh pwsh
  awk gawk mawk nawk vi vim nvim view ex ed emacs nano less more man
  make gmake ninja cmake meson just rake ant mvn gradle gradlew sbt bazel buck task tox nox pytest jest vitest mocha
  npm npx pnpm pnpx yarn corepack pip pipx uv uvx poetry pdm hatch conda mamba gem bundle bundler composer cargo rustup go dotnet cabal stack zig
  nim flutter mix rebar3 pre-commit
  psql mysql sqlite sqlite3 redis-cli mongosh gdb lldb terraform tofu ansible ansible-playbook vagrant packer helm kubectl kubectx nix nix-shell
`);
/** Overwrite, remove or stop what an argument names: a grant names the whole command. */
const DESTROYS = words(`
  cp ln tee install patch rsync split tar zip unzip gzip gunzip 7z
  rm rmdir unlink shred dd mv truncate mkfs fdisk parted wipefs chmod chown chgrp chattr setfacl kill pkill killall systemctl service
  launchctl shutdown reboot halt poweroff mount umount swapoff useradd userdel usermod groupdel passwd visudo iptables nft ufw
`);
/** Send data to a place that an argument names. */
const SENDS = words(`
  curl wget http https xh aria2c scp sftp ftp lftp tftp nc ncat netcat socat telnet mail mailx sendmail msmtp mutt rclone s3cmd aws gsutil gcloud az
  gh glab hub heroku flyctl wrangler vercel netlify dig nslookup host ping
`);
/** The first argument is a value, never a subcommand. */
const NO_SUBCOMMAND = words(`
  ls cat head tail wc sort uniq cut tr grep egrep fgrep rg find file stat du df diff cmp comm echo printf mkdir touch cp ln basename dirname realpath
  readlink tree jq yq sha256sum md5sum cksum date sleep seq test true false pwd which type whoami id uname hostname env printenv ps column paste
  join split nl fold fmt expand tee xxd od hexdump strings base64 gzip gunzip zip unzip tar
`);
/** Their subcommands have subcommands. */
const TWO_WORDS = words("gh glab aws gcloud az docker podman kubectl helm ip nmcli");

const baseOf = (program: string): string => program.slice(program.lastIndexOf("/") + 1);
/** `python3.12` is `python`. */
const familyOf = (program: string): string => baseOf(program).replace(/(?<=[A-Za-z])[0-9.]+$/, "");
const isIn = (list: ReadonlySet<string>, program: string): boolean =>
  [baseOf(program), familyOf(program)].some((name) => list.has(name) || list.has(name.toLowerCase()));

const SYSTEM_FOLDERS: ReadonlySet<string> = new Set(["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"]);
/** A program of the workspace can be changed by the agent, as a script can. */
const isOutsideSystem = (program: string): boolean =>
  program.includes("/") && !SYSTEM_FOLDERS.has(program.slice(0, program.lastIndexOf("/")));

/** Whether a command may run code that its name does not tell. */
export function runsCode(command: readonly string[]): boolean {
  const [program = ""] = command;
  return isIn(RUNS_CODE, program) || isOutsideSystem(program) || runsAnother(command);
}
export const destroys = ([program = ""]: readonly string[]): boolean => isIn(DESTROYS, program);
export const sends = ([program = ""]: readonly string[]): boolean => isIn(SENDS, program);

const WORD = /^[A-Za-z][A-Za-z0-9:_-]*$/;
/** Undefined: the program has none, or the command begins with an option. */
export function subcommandOf([program = "", first, second]: readonly string[]): string | undefined {
  if (first === undefined || !WORD.test(first)) return undefined;
  if (isIn(NO_SUBCOMMAND, program) || isIn(RUNS_CODE, program)) return undefined;
  return isIn(TWO_WORDS, program) && second !== undefined && WORD.test(second) ? `${first} ${second}` : first;
}
