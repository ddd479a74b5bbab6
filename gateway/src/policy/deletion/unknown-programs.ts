/**
 * Where a command begins among the arguments of a program that no list knows: it may run its arguments, as `tini -- rm -rf d` does (rule PO13).
 * PURE. It goes by the words of a command that was read with its quotes, and takes no text in quotes for a command.
 */
import { DELETERS, namesDeleter } from "./deleters.ts";
import { TAKES_TEXTS, nameOf } from "../wrappers.ts";

/** Their arguments are texts, names of files, hosts or packages, and never a command. Runners of commands are in wrappers.ts. */
const TAKES_NO_COMMAND: ReadonlySet<string> = new Set([
  ...DELETERS,
  ...TAKES_TEXTS,
  ...// Of the shell.
  (
    ": [ echo printf test cd pushd popd dirs export unset set declare local readonly typeset type which whereis hash alias unalias read return " +
    "exit shift true false let getopts ulimit umask wait kill jobs " +
    // Read and compare.
    "ls dir cat tac head tail wc cut tr grep egrep fgrep ag ack stat du df diff cmp comm basename dirname realpath readlink jq yq md5sum sha1sum " +
    "sha256sum cksum sleep seq pwd whoami id uname ps pgrep pidof column paste join nl fold fmt expand od hexdump xxd base64 strings printenv file " +
    "tree uniq sort date hostname man tldr whatis apropos help cheat " +
    // Write and pack.
    "cp mv ln link mkdir rmdir touch chmod chown chgrp tee dd install mktemp split gzip gunzip bzip2 xz unzip patch pkill killall " +
    // Packages and services.
    "apt apt-get aptitude dpkg dnf yum rpm zypper apk pacman brew snap port emerge pip pip3 pipx uv poetry pdm hatch gem bundle composer conda mamba " +
    "systemctl service journalctl update-alternatives " +
    // Build, test and check.
    "jest vitest mocha pytest eslint prettier biome tsc rustc rustfmt g++ cc c++ clang++ javac gmake nodejs gradle mvn cmake ninja shellcheck shfmt ruff mypy black " +
    // Send.
    "wget http https scp rsync gh glab hub heroku gcloud az helm terraform dig host nslookup ping"
  ).split(" "),
]);
/** Subcommands that names of packages or pages follow. */
const NAMES_FOLLOW = /^(?:i|install|add|remove|uninstall|upgrade|update|outdated|info|show|search|why|list|ls|view|edit|help|man|docs)$/;
const BARE = /^(?:\/[^\s]{1,300}\/)?[A-Za-z0-9][\w.+-]{0,40}$/;
const RUNS_CODE = /^(?:(?:ba|da|z|k|fi)?sh|python[\d.]*|perl|ruby|node)$/;
const HAS_CODE = /^-[A-Za-z]*[ce]/;
/** Delete what they name, so without a name they are none. */
const NEEDS_NAME = /^(?:g?rm|srm|wipe|unlink|shred|truncate|rimraf|premove|rmrf)$/;

/** Undefined: none begins there, or the program is known. `name`: that of the program. */
export function commandInArguments(name: string, words: readonly string[]): number | undefined {
  if (words.length < 3 || TAKES_NO_COMMAND.has(name) || /^(?:python|pypy)[\d.]+$/.test(name)) return undefined;
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? "";
    if (NAMES_FOLLOW.test(word)) return undefined;
    if (!BARE.test(word)) continue;
    if (RUNS_CODE.test(nameOf(word)) && words.slice(at + 1).some((next) => HAS_CODE.test(next))) return at;
    if (!namesDeleter(word)) continue;
    if (!NEEDS_NAME.test(nameOf(word)) || words.slice(at + 1).some((next) => !next.startsWith("-"))) return at;
  }
  return undefined;
}
