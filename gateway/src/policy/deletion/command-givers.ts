/** Programs that give a command in their arguments to a shell, and by which argument (rule PO13). PURE. */

/**
 * Give a command in their arguments to a shell, with the argument that says so. For what deletes (rule PO13) only: their other arguments are
 * names of tasks, folders and hosts, and a rule of the owner looks for its program among all of them in any case.
 */
const GIVES_COMMAND: ReadonlyMap<string, RegExp> = new Map(
  [
    // For each repository, package or host, or several beside each other.
    { argument: /^forall$/, names: "repo west" },
    { argument: /^run$/, names: "mr honcho foreman overmind dotenv doppler infisical op heroku" },
    { argument: /^exec$/, names: "lerna nx meta aws-vault" },
    { argument: /^exec-(?:env|file)$/, names: "sops" },
    { argument: /^add$/, names: "pueue" },
    { argument: /^cmd\.run$/, names: "salt salt-call" },
    { argument: /^shell$/, names: "adb" },
    { argument: /^with-lock$/, names: "borg" },
    { argument: /^--on/i, names: "tsc-watch" },
    { argument: /^(?:shell|super)$/, names: "gita" },
    { argument: /^--$/, names: "fab" },
    {
      argument: /\s/,
      names:
        "concurrently npm-run-all run-p run-s cross-env cross-env-shell onchange chokidar pm2 pdsh pssh parallel-ssh clush dsh sshpass autossh",
    },
    // Terminals.
    {
      argument: /^/,
      names:
        "xterm uxterm lxterm rxvt urxvt x-terminal-emulator gnome-terminal mate-terminal xfce4-terminal lxterminal qterminal konsole " +
        "terminator tilix kitty alacritty wezterm foot footclient st stterm eterm aterm terminology ghostty kgx ptyxis cool-retro-term",
    },
  ].flatMap(({ argument, names }) => names.split(" ").map((name): [string, RegExp] => [name, argument])),
);
/** Run the program of a package by its name, also behind options and `run`. */
const BY_PACKAGE: ReadonlySet<string> = new Set(["yarn", "pnpm", "bun"]);
/** Whether a command gives another one in its arguments to a shell. `name`: of its program. */
export function givesCommand(name: string, command: readonly string[]): boolean {
  const argument = GIVES_COMMAND.get(name);
  if (argument === undefined) {
    const at = BY_PACKAGE.has(name) ? command.findIndex((word, place) => place > 0 && word !== "run" && !word.startsWith("-")) : -1;
    return at !== -1 && at < command.length - 1 && givesCommand(command[at] ?? "", command.slice(at));
  }
  return command.some((word, at) => at > 0 && argument.test(word));
}
