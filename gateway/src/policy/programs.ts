/**
 * What is known about programs by their names, for grants (rule GR3). PURE. A name that no list has is an unknown program: without a
 * sandbox it is granted as exactly the one command, because an option of it may write a file or start a program.
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
/**
 * Start programs that a configuration in the working folder names, or load code from it. A command in a sandbox may have written that
 * configuration, so outside of one their name and arguments do not tell what they do. In a sandbox they have subcommands, as others do.
 */
const RUNS_CONFIGURED = words(`
  git gitk tig lazygit hub gh glab jj yadm chezmoi etckeeper stg hg svn bzr brz fossil darcs cvs
  direnv devbox devenv mise asdf pyenv rbenv nodenv lefthook husky overcommit lint-staged
  docker-compose podman-compose terragrunt pulumi cdk serverless sam skaffold tilt earthly dagger act wrangler vercel netlify heroku flyctl
  rustc rustdoc rustfmt rust-analyzer gopls golangci-lint mage goreleaser air javac kotlinc scalac lein mill dune opam gleam raku prove
  swiftc xcodebuild pod fastlane
  eslint prettier stylelint webpack rollup vite next nuxt astro parcel babel postcss tailwindcss turbo nx lerna gulp grunt ava karma cypress
  playwright storybook tsup typedoc knip commitlint
  pylint flake8 mypy sphinx-build mkdocs alembic flask gunicorn uvicorn celery invoke fab doit snakemake scons waf ipython jupyter dvc dbt
  rubocop rspec rails rackup puma guard jekyll thor phpunit phpstan psalm phpcs
  bmake pmake remake samu tup redo autoreconf automake autoconf qmake xmake pants latexmk doxygen foreman overmind honcho pm2 tmuxinator
  code codium cursor subl hx helix kak micro gvim
  ctest coverage devcontainer ng nest tauri maturin wasm-pack cross trunk dub crystal bazelisk prisma semantic-release electron manage.py behave
  locust repo mr sl p4 got scalar ghq vcs sccache ccache reflex modd gotestsum ginkgo platformio gtags nvm
`);
/** Their subcommands are programs of their own. */
const CONFIGURED_FAMILY = /^(?:git|cargo|ansible|docker|hg|eslint|mvn)-/;
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
/** Do only that as long as none of their arguments is like this: those write a file. */
const READS_UNLESS: Readonly<Record<string, RegExp>> = {
  sort: /^-[A-Za-z]*[oT]|^--(?!(?:reverse|unique|numeric-sort|human-numeric-sort|version-sort|ignore-case)$|key=)/,
  rg: /^--(?:pre|hostname-bin)/,
  // Its second operand is written.
  uniq: /^(?!-.)/,
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

/** Whether a command outside a sandbox may run code that its name does not tell. */
export function runsCode(command: readonly string[]): boolean {
  const [program = ""] = command;
  if (namesCode(program) || isOutsideSystem(program) || runsAnother(command)) return true;
  // Programs that start another one are more than a list can have (`dotenv git status`): one that is named may be started.
  return !isPlain(command) && command.slice(1).some(namesCode);
}
const namesCode = (word: string): boolean => isIn(RUNS_CODE, word) || isConfigured(word);
const isConfigured = (program: string): boolean => isIn(RUNS_CONFIGURED, program) || CONFIGURED_FAMILY.test(baseOf(program).toLowerCase());
/** Whether a text for a shell names git as a program, or may. Told to the owner, so a word too much does no harm. */
export const namesGit = (text: string): boolean => /(?<![\w.-])git(?![\w.@:=])/i.test(text.replaceAll(/["'\\]/g, ""));
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

const WORD = /^[A-Za-z][A-Za-z0-9:_-]*$/;
/** Undefined: the program has none, or the command begins with an option. */
export function subcommandOf([program = "", first, second]: readonly string[]): string | undefined {
  if (first === undefined || !WORD.test(first)) return undefined;
  if ([READS, NO_SUBCOMMAND, RUNS_CODE].some((list) => isIn(list, program))) return undefined;
  return isIn(TWO_WORDS, program) && second !== undefined && WORD.test(second) ? `${first} ${second}` : first;
}
