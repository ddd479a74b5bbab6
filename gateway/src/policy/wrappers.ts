/** Commands that run a command which is written in their arguments or their input, so that their own name says little. PURE. */

const ALWAYS: ReadonlySet<string> = new Set(
  (
    "sh bash dash ash zsh ksh mksh fish csh tcsh pwsh busybox toybox env sudo doas su runuser pkexec nohup nice ionice chrt taskset timeout stdbuf setsid " +
    "setarch unshare nsenter chroot flock watch strace ltrace gdb script xargs parallel entr fd ssh docker podman systemd-run at batch crontab expect chronic " +
    "ts unbuffer rlwrap tmux screen ld.so xdg-open open"
  ).split(" "),
);
/** Interpreters, by the options that take a program as an argument. Without such an option they run a file, as any program does. */
const INLINE: Readonly<Record<string, RegExp>> = {
  python: /^-[A-Za-z]*c|^-$/,
  perl: /^-[A-Za-z0-9]*[eE]|^-$/,
  ruby: /^-[A-Za-z]*e|^-$/,
  node: /^-[a-z]*[ep]$|^--(?:eval|print)|^-$/,
  bun: /^-e|^--eval/,
  deno: /^eval$/,
  php: /^-[rBE]/,
  lua: /^-e|^-$/,
  awk: /system|\||getline/,
  gawk: /system|\||getline/,
  mawk: /system|\||getline/,
  sed: /e/,
  find: /^-(?:exec|ok|delete|fprint|fls)/,
  git: /^-c|^--config-env|^--exec|^--upload-pack|^--receive-pack|^-x$|^ext::|^config$|^foreach$|^--open-files-in-pager|^-O/,
  tar: /^--(?:to-c|use-c|checkpoint-a|info-s|new-volume)|^-[A-Za-z]*[IF]/,
  rsync: /^-[A-Za-z]*e|^--rsh/,
  make: /=|^--eval/,
  npm: /^(?:exec|x)$/,
  cargo: /^--config/,
};
const ALSO: Readonly<Record<string, string>> = { nodejs: "node", gmake: "make" };
/** Run whatever package is named. */
const RUNNERS: ReadonlySet<string> = new Set(["npx", "bunx", "uvx", "pipx", "pnpx"]);

/** Whether a command runs another one that is written in its arguments, or may. */
export function runsAnother([program = "", ...args]: readonly string[]): boolean {
  const base = program.slice(program.lastIndexOf("/") + 1).toLowerCase();
  const name = base.replace(/[0-9.]+$/, "");
  if (ALWAYS.has(base) || ALWAYS.has(name) || RUNNERS.has(name) || base.startsWith("ld-linux")) return true;
  const known = Object.hasOwn(ALSO, name) ? (ALSO[name] ?? name) : name;
  const inline = Object.hasOwn(INLINE, known) ? INLINE[known] : undefined;
  return inline !== undefined && (args.length === 0 ? isInterpreter(known) : args.some((arg) => inline.test(arg)));
}
/** Reads its program from its input when it has no arguments. */
const isInterpreter = (name: string): boolean => ["python", "perl", "ruby", "node", "bun", "deno", "php", "lua"].includes(name);
