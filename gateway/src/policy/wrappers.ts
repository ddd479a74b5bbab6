/** Commands that run a command which is written in their arguments or their input, so that their own name says little. PURE. */

import { remembered } from "./remembered.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));

/** GNU programs by their names on other systems, beside those that stand in a list by that name. */
const WITH_G = words("genv gtimeout gxargs gnice gnohup gstdbuf gchroot gruncon gtime gshred gtruncate gunlink gtest gprintf ginstall");
const LETTER_G = "g".charCodeAt(0);
export const withoutG = (name: string): string => (name.charCodeAt(0) === LETTER_G && WITH_G.has(name) ? name.slice(1) : name);
/** `rimraf@5` is `rimraf`, and `gtimeout` is `timeout`. */
export const nameOf = (program = ""): string => nameIn(program);
const nameIn = remembered((program) => {
  const name = withoutG(program.slice(program.lastIndexOf("/") + 1).toLowerCase());
  return name.includes("@") ? name.replace(/(?<=[a-z])@.*$/, "") : name;
});

/** Take commands as an argument of `-c`, or as their input. */
export const SHELLS: ReadonlySet<string> = words(
  "sh bash rbash dash ash zsh ksh mksh yash osh ysh es rc fish csh tcsh elvish nu xonsh pwsh powershell",
);
const ALWAYS: ReadonlySet<string> = words(
  `${[...SHELLS].join(" ")} ` +
    // Programs that are many programs.
    "busybox toybox coreutils exe " +
    // Other users, other rights.
    "sudo sudoedit doas su runuser run0 pkexec gosu setpriv capsh runcon sg newgrp chroot unshare nsenter setarch linux32 linux64 uname26 x86_64 i386 " +
    "i486 i586 i686 ppc ppc32 ppc64 s390 s390x sparc sparc32 sparc64 mips mips32 mips64 parisc arm aarch64 arch firejail bwrap nsjail aa-exec sandbox-exec " +
    "tini dumb-init catatonit debconf enosys chpst softlimit setuidgid envuidgid envdir setlock " +
    // Time, priorities, limits, terminals, logs.
    "env command exec time nohup nice ionice chrt taskset numactl timeout stdbuf setsid flock watch script unbuffer rlwrap chronic ts expect tmux screen zellij dtach " +
    "abduco prlimit choom cgexec systemd-run start-stop-daemon daemonize systemd-inhibit systemd-cat uclampset coresched cpulimit timelimit logsave pipesz lckdo caffeinate hyperfine eatmydata faketime fakeroot fakechroot proot xvfb-run dbus-run-session " +
    "ssh-agent torsocks proxychains proxychains4 trickle catchsegv valgrind perf strace ltrace gdb lldb ld.so run-parts run-one inotifywait watchexec nodemon entr " +
    // Lists of commands.
    "xargs parallel sem at batch crontab fd fdfind ifne mispipe pee " +
    // Other machines and containers.
    "ssh mosh telnet rsh rexec docker podman nerdctl buildah kubectl oc lxc lxc-attach incus machinectl systemd-nspawn vagrant ansible salt distrobox toolbox flatpak nix-shell " +
    // Editors, pagers and programs whose input has commands.
    "vi vim nvim ex view rvim vimdiff emacs emacsclient ed nano joe less more most man info mail mutt mc nnn ranger tclsh wish m4 dc gnuplot octave octave-cli r rscript julia guile " +
    "racket sbcl clisp ghci irb pry ocaml erl iex elixir jshell jrunscript groovy scala kotlin osascript sqlite3 psql mysql mariadb mongosh xdg-open open ftp sftp socat nc ncat " +
    "netcat luajit logrotate",
);
/**
 * Interpreters and tools, by the arguments that hold a program or name one. Without such an argument they run a file, or do their own work.
 * Many programs take every unambiguous beginning of a long option for the whole: the shortest one stands here.
 */
const INLINE: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*[cm]|^-i|^-$/,
  pypy: /^-[A-Za-z]*[cm]|^-i|^-$/,
  perl: /^-[A-Za-z0-9.]*[eEMmd]|^-$/,
  ruby: /^-[A-Za-z0-9]*[er]|^-$/,
  node: /^-[a-z]*[epri]$|^-[rp]|^--(?:eval|print|require|import|loader|experimental-loader|interactive)|^-$/,
  bun: /^-[epr]|^--(?:eval|print|preload)|^(?:x|exec|create|repl)$/,
  deno: /^(?:eval|repl)$|^--eval|^https?:|^data:/,
  php: /^-[rBREa]|^--(?:run|process)/,
  lua: /^-[eil]|^-$/,
  crystal: /^eval$/,
  lftp: /^-[A-Za-z]*[cef]/,
  latexmk: /^--?(?:[er]$|[a-z]*latex=)/,
  pdflatex: /^--?(?:shell-e|enable-w|output-driver)|\\(?:write|directlua|immediate|input|openin)/,
  awk: /system|\||getline|@|^-[ilE]|^--(?:i|lo|e|so)/,
  sed: /e|^-/,
  find: /^-(?:exec|ok|delete|fprint|fls)/,
  // Git takes the beginning of a long option for the whole.
  git: /^-c|^--(?:con?f?|config.*|ex(?:e|t).*|ex|upl.*|up?|rec.*|re|op.*|tem.*|te|work-tree|git-dir)(?:=|$)|^-x|^ext::|^-O|^(?:config|foreach|bisect|filter-branch|difftool|mergetool|daemon|instaweb|send-email|svn|p4|hook|shell|for-each-repo|remote-ext|help|maintenance)$/,
  tar: /^--(?:to-|us|checkpoint-|inf|new-|rs|rm|I|F)|^-?[A-Za-z]*[IF]/,
  cpio: /^--(?:rs|fi)|^-[A-Za-z]*[IOF]/,
  rsync: /^-[A-Za-z]*e|^--rs/,
  scp: /^-[A-Za-z]*[SoF]/,
  make: /=|^--ev|^-[A-Za-z]*[fE]|^--(?:fi|ma)/,
  ninja: /^-[tf]/,
  just: /^-[A-Za-z]*c|^--com/,
  rake: /^-[ABGgjmNnqstvX]*[eEp]|^--ex/,
  cmake: /^-[EP]/,
  npm: /^(?:exec|x|init|create|innit|explore|edit|config|set)$|^--(?:scri|node-o|ed|she|git(?:=|$)|br|vi|userc|globalc)/,
  yarn: /^(?:dlx|exec|create|node|config)$/,
  pnpm: /^(?:dlx|exec|create|node|config|env)$|^--(?:scri|she)/,
  cargo: /^--config|^(?:run|r|miri|xtask|watch|fix)$/,
  go: /^-(?:exec|toolexec|vettool|overlay)|^--(?:exec|toolexec|vettool|overlay)|^(?:run|generate|tool|env)$/,
  rustup: /^run$/,
  uv: /^(?:run|tool)$/,
  poetry: /^run$/,
  pipenv: /^(?:run|shell)$/,
  pdm: /^run$/,
  hatch: /^(?:run|shell)$/,
  rye: /^run$/,
  pixi: /^(?:run|exec|shell)$/,
  tox: /^(?:exec|e)$/,
  conda: /^run$/,
  mamba: /^run$/,
  bundle: /^exec$/,
  mise: /^(?:exec|x|run|r)$/,
  asdf: /^exec$/,
  pyenv: /^exec$/,
  rbenv: /^exec$/,
  direnv: /^exec$/,
  nix: /^(?:run|shell|develop|eval|repl)$|^-c$|^--command/,
  guix: /^(?:shell|environment|repl)$/,
  dotnet: /^(?:exec|run|tool|script)$/,
  gcc: /^-wrapper|^--?specs|^-B|^--prefix|^-fplugin/,
  clang: /^-Xclang|^-fplugin|^-B/,
  ghc: /^-e/,
  sort: /^--co|^-[A-Za-z]*[oT]/,
  split: /^--f/,
  rg: /^--(?:pre|hostname-bin)(?:=|$)/,
  hg: /^--conf|^(?:bisect|extdiff)$/,
  svn: /^--(?:config|diff|merge|editor)/,
  fzf: /./,
  // A file of settings names filters, and a writer may be a script.
  pandoc: /^-[A-Za-z]*[FLd]|^--(?:filt|lu|pd|def)|\.lua$/,
  zip: /^-[A-Za-z]*T|^--un/,
  wget: /^--(?:use-a|conf|exe)|^-[bcdEFHhkKLmNpqrSvx46]*e/,
  curl: /^-[A-Za-z]*K|^--conf/,
  tcpdump: /^-[A-Za-z]*z/,
  nmap: /^--?scr/,
  rpm: /^--(?:eval|define|pipe)|^-E|^-D/,
  apt: /^-[A-Za-z]*[oc]|^--(?:opt|con)/,
  "dpkg-architecture": /^-[A-Za-z]*c|^--co/,
  "gpg-agent": /^--(?:$|d)/,
  dpkg: /^--(?:pre-invoke|post-invoke)/,
  install: /^--st|^-[A-Za-z]*s/,
  gpg: /^--(?:ph|ag|pin|dir|exe|opt)/,
  openssl: /^-engine|^-provider/,
  ffmpeg: /^-f$/,
  pip: /^(?:install|download|wheel|config)$/,
  gem: /^(?:exec|install)$/,
  ip: /^exec$/,
  jobs: /^-[a-z]*x/,
};
/** Commands of a shell that compute what an argument says, `name[$(command)]` included. With `-v` they also set what the shell runs for a name. */
const COMPUTES: ReadonlySet<string> = words("printf test print integer float exit logout bye return shift break continue");
const COMPUTED = /^-v|\[.*[$`]/s;
/** Other names of the same program. */
const ALSO: Readonly<Record<string, string>> = {
  nodejs: "node",
  latex: "pdflatex",
  xelatex: "pdflatex",
  lualatex: "pdflatex",
  tex: "pdflatex",
  pdftex: "pdflatex",
  luatex: "pdflatex",
  xetex: "pdflatex",
  gmake: "make",
  gawk: "awk",
  mawk: "awk",
  nawk: "awk",
  gsed: "sed",
  gfind: "find",
  gtar: "tar",
  bsdtar: "tar",
  gsort: "sort",
  gsplit: "split",
  "g++": "gcc",
  cc: "gcc",
  "c++": "gcc",
  "clang++": "clang",
  "apt-get": "apt",
  aptitude: "apt",
  rpmbuild: "rpm",
  gpg2: "gpg",
};
/** Run whatever package is named. */
const RUNNERS: ReadonlySet<string> = words("npx bunx uvx pipx pnpx tsx ts-node");

interface Names {
  /** As it is written, without its folder. */
  readonly base: string;
  /** Without a version. */
  readonly name: string;
  /** In the list of programs with such arguments. */
  readonly known: string | undefined;
  /** Runs another program whatever its arguments are. */
  readonly always: boolean;
  /** Matches an argument with which the program runs another one. */
  readonly inline: RegExp | undefined;
}
const namesOf = remembered((program): Names => {
  const base = withoutG(program.slice(program.lastIndexOf("/") + 1).toLowerCase());
  const name = /[0-9.]$/.test(base) ? base.replace(/-?[0-9.]+$/, "") : base;
  const known = Object.hasOwn(ALSO, base) ? ALSO[base] : Object.hasOwn(ALSO, name) ? ALSO[name] : name;
  const inline = known !== undefined && Object.hasOwn(INLINE, known) ? INLINE[known] : undefined;
  // `/proc/self/exe` is the shell itself, and any process has such a name for its program.
  const isOfSystem = program.startsWith("/proc/") || program.startsWith("/dev/") || /^ld-(?:linux|musl)/.test(base);
  return { base, name, known, always: isOfSystem || ALWAYS.has(base) || ALWAYS.has(name) || RUNNERS.has(name), inline };
});
/** Those of the programs above whose arguments are often texts and no commands, such as a message or a script. */
export const TAKES_TEXTS: ReadonlySet<string> = words(
  "git hg svn sed awk find python pypy perl ruby node bun deno php lua make npm yarn pnpm cargo go rg curl ffmpeg gcc clang",
);
/** Whether a program often has texts as arguments, and it is known which of its arguments hold a command. */
export function takesTexts(program: string): boolean {
  const { known } = namesOf(program);
  return known !== undefined && TAKES_TEXTS.has(known);
}
/** A subcommand of git that is a program of its own: `/usr/lib/git-core/git-push`. */
export const GIT_PROGRAM = /(?:^|\/)git-([a-z][\w-]*)$/i;
/** Such a program as git and its subcommand, any other word as it is. */
export function asGit(word: string): readonly string[] {
  if (!word.includes("-")) return [word];
  const subcommand = GIT_PROGRAM.exec(word)?.[1];
  return subcommand === undefined ? [word] : ["git", subcommand.toLowerCase()];
}
/** Whether a command runs another one that is written in its arguments, or may. */
export function runsAnother(command: readonly string[]): boolean {
  const [program = "", ...subcommand] = asGit(command[0] ?? "");
  const { base, known, always, inline } = namesOf(program);
  const isComputing = COMPUTES.has(base);
  if (always || (inline === undefined && !isComputing)) return always;
  const args = [...subcommand, ...command.slice(1)];
  if (isComputing && args.some((arg) => COMPUTED.test(arg))) return true;
  // Elsewhere in git `-u` is harmless.
  if (known === "git" && args.includes("clone") && args.some((arg) => arg.startsWith("-u"))) return true;
  return inline !== undefined && (args.length === 0 ? isInterpreter(known) : args.some((arg) => inline.test(arg)));
}
/** Reads its program from its input when it has no arguments. */
const isInterpreter = (name: string | undefined): boolean =>
  ["python", "pypy", "perl", "ruby", "node", "bun", "deno", "php", "lua"].includes(name ?? "");
