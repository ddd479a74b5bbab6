/**
 * What programs for buckets, clusters, backups and file systems delete there (rule PO13). PURE. Their words are taken in their places: an
 * operand that is called `rm` deletes nothing, nor does a trial run.
 *
 * Only the documented options without a value are listed. After any other option the next word may be its value or the command, so both are
 * looked at: so an unlisted option cannot hide a deletion.
 */

interface Removal {
  /** The words of the command, in their order. */
  readonly words?: readonly RegExp[];
  /** Words that may stand in front of them, any number. */
  readonly groups?: RegExp;
  /** The command deletes with this option only. Without `words`, any command does. */
  readonly option?: RegExp;
  /** With this option the command only shows what it would do. None: it has no such option. */
  readonly trial?: RegExp;
}
interface Program {
  readonly removals: readonly Removal[];
  /** Options that take no value for certain. */
  readonly flags: ReadonlySet<string>;
  /** `--help` shows a text, wherever an option may stand. */
  readonly helps?: true;
  /** After the first operand everything is an operand. */
  readonly readsOptionsFirst?: true;
}
const flags = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const DRY_RUN = /^--dry-run$/;
const DRY_RUN_OR_N = /^(?:--dry-run|-n)$/;
const FAKE_OR_DRY_RUN = /^--(?:dry-run|fake)$/;
const REMOVES = /^(?:rm|rb|remove|(?:bulk-)?delete|destroy|prune|purge)$/;
/** Groups of commands of gcloud, until a command that deletes nothing: what follows that one are operands. */
const GROUP_OF_GCLOUD =
  /^(?!(?:help|list|describe|read|tail|create|update|add|set|unset|get|call|publish|pull|ls|cp|mv|cat|du|mb|enable|start|stop|submit|copy|(?:add|describe|get|list|set)-[a-z-]+)$)[a-z][a-z0-9-]*$/;
/** The same for mc. The aliases of its servers are names in its own configuration. */
const GROUP_OF_MC =
  /^(?!(?:alias|cat|cp|diff|du|find|get|head|ls|list|mb|mirror|mv|od|ping|pipe|put|ready|share|sql|stat|tree|watch|info|add|set|create|rm|rb)$)[a-z][a-z0-9-]*$/;
const HADOOP: Program = { removals: [{ option: /^-(?:rm(?:r|dir)?|expunge|delete)$/ }], flags: new Set() };
const PROGRAMS: Readonly<Record<string, Program>> = {
  gcloud: {
    // Other resources have no trial run, and their data goes with them.
    removals: [
      { groups: GROUP_OF_GCLOUD, words: [REMOVES] },
      { option: /^--delete-unmatched/, trial: DRY_RUN },
    ],
    flags: flags("--quiet -q --log-http --no-log-http --no-user-output-enabled --recursive -r -R --delete-unmatched-destination-objects"),
    helps: true,
  },
  s5cmd: {
    // `run` takes its commands from its input or a file.
    removals: [
      { words: [/^(?:rm|rb|run)$/], trial: DRY_RUN },
      { words: [/./], option: /^--?delete(?:=(?!false$).*)?$/, trial: DRY_RUN },
    ],
    flags: flags("--json --stat --no-verify-ssl --no-sign-request --use-list-objects-v1 --dry-run --delete --size-only"),
    helps: true,
    readsOptionsFirst: true,
  },
  mc: {
    removals: [
      { words: [/^rm$/], trial: FAKE_OR_DRY_RUN },
      { words: [/^rb$/] },
      { groups: GROUP_OF_MC, words: [GROUP_OF_MC, REMOVES] },
      { option: /^--?remove(?:=(?!false$).*)?$/, trial: FAKE_OR_DRY_RUN },
    ],
    flags: flags(
      "--quiet -q --no-color --json --debug --insecure --disable-pager --dp --recursive -r --force --dangerous --versions --incomplete -I --bypass " +
        "--non-current --stdin --remove --overwrite --watch -w --preserve -a",
    ),
    helps: true,
  },
  azcopy: {
    removals: [
      { words: [/^(?:rm|remove|r)$/], trial: DRY_RUN },
      { option: /^--delete-destination(?:=(?!false$).*)?$/, trial: DRY_RUN },
    ],
    flags: flags("--recursive --skip-version-check --force-if-read-only"),
    helps: true,
  },
  hdfs: HADOOP,
  hadoop: HADOOP,
  ozone: { ...HADOOP, removals: [...HADOOP.removals, { words: [/^(?:sh|shell)$/, /^(?:volume|bucket|key|snapshot)$/, /^delete$/] }] },
  borg: {
    removals: [{ words: [/^(?:delete|prune|repo-delete|recreate)$/], trial: DRY_RUN_OR_N }],
    flags: flags(
      "--verbose -v --critical --error --warning --info --debug --progress -p --iec --log-json --show-version --show-rc --bypass-lock " +
        "--consider-part-files --stats -s --list --force --cache-only --keep-security-info --save-space",
    ),
    helps: true,
  },
  restic: {
    removals: [
      { words: [/^(?:forget|prune)$/], trial: DRY_RUN_OR_N },
      { words: [/^(?:rewrite|repair)$/], option: /^--forget(?:=(?!false$).*)?$/, trial: DRY_RUN_OR_N },
    ],
    flags: flags(
      "--verbose -v --quiet -q --json --no-cache --no-lock --cleanup-cache --insecure-tls --insecure-no-password --no-extra-verify --prune --forget " +
        "--compact --unsafe-allow-remove-all --repack-small --repack-uncompressed --repack-cacheable-only",
    ),
    helps: true,
  },
  kopia: {
    // A snapshot is a manifest.
    removals: [
      { words: [/^snap(?:shot)?$/, /^(?:delete|expire)$/] },
      { words: [/^(?:manifest|blob|contents?)$/, /^(?:delete|remove|rm)$/] },
      { words: [/^(?:blob|snap(?:shot)?)$/, /^gc$/], option: /^--delete(?:=.*)?$/ },
    ],
    flags: flags("--json --progress --no-progress"),
    helps: true,
  },
  duplicity: {
    removals: [{ words: [/^(?:remove-[a-z-]+|cleanup)$/], trial: DRY_RUN }],
    flags: flags("--force --no-encryption --progress --allow-source-mismatch --use-agent --no-print-statistics"),
    helps: true,
  },
  btrfs: {
    // It takes every beginning of a command that no other one has.
    removals: [{ words: [/^su(?:b(?:v(?:o(?:l(?:u(?:m(?:e)?)?)?)?)?)?)?$/, /^d(?:e(?:l(?:e(?:t(?:e)?)?)?)?)?$/] }],
    flags: flags("--verbose -v --quiet -q --dry-run"),
    helps: true,
  },
  zfs: {
    removals: [
      { words: [/^destroy$/], trial: /^-[Rdfprv]*n[Rdfnprv]*$/ },
      { words: [/^rollback$/] },
      // It destroys newer snapshots, as a rollback does.
      { words: [/^(?:receive|recv)$/], option: /^-[FhMnsuvdecA]*F/, trial: /^-[FhMsuvdecA]*n[FhMnsuvdecA]*(?:[ox].*)?$/ },
    ],
    flags: flags("-R -d -f -n -p -r -v -F -h -M -s -u -e"),
  },
  zpool: { removals: [{ words: [/^(?:destroy|labelclear)$/] }], flags: flags("-f") },
};

/** Whether a call of one of these programs deletes: how many files, its words do not say. */
export function removesStored(program: string, args: readonly string[]): boolean {
  const known = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
  return (
    known?.removals.some(({ words = [], groups, option, trial }) => {
      if (option !== undefined && !args.some((arg) => option.test(arg))) return false;
      const end = endOf(args, words, groups, known.flags);
      return end !== undefined && !isHarmless(args, end, trial, known);
    }) ?? false
  );
}
/** Behind the first place where these words of a command may end. Undefined: they are not there. */
function endOf(
  args: readonly string[],
  words: readonly RegExp[],
  groups: RegExp | undefined,
  noValue: ReadonlySet<string>,
): number | undefined {
  let from = new Set([0]);
  for (const [index, word] of words.entries()) {
    const next = new Set<number>();
    for (const at of placesFrom(args, from, noValue, index === 0 ? groups : undefined)) {
      const arg = args[at] ?? "";
      if (!mayBeOption(arg) && word.test(arg)) next.add(at + 1);
    }
    from = next;
  }
  return from.size === 0 ? undefined : [...from].reduce((first, at) => Math.min(first, at));
}
/** Where the next word of a command may be, behind options, their values and groups. Each place is looked at once. */
function placesFrom(
  args: readonly string[],
  from: ReadonlySet<number>,
  noValue: ReadonlySet<string>,
  groups: RegExp | undefined,
): ReadonlySet<number> {
  const places = new Set(from);
  // A set is walked with what is added on the way.
  for (const at of places) {
    const arg = args[at];
    if (arg === undefined) continue;
    const isOption = mayBeOption(arg);
    if (isOption || groups?.test(arg) === true) places.add(at + 1);
    if (isOption && mayTakeValue(arg, noValue)) places.add(at + 2);
    if (arg === TAKES_TWO) places.add(at + 3);
  }
  return places;
}
/** The shell may make options of a variable or of what a command prints, or nothing. An empty argument is no word of a command. */
const mayBeOption = (arg: string): boolean => arg === "" || /^(?:-.|[$`])/s.test(arg);
function mayTakeValue(arg: string, noValue: ReadonlySet<string>): boolean {
  if (!arg.startsWith("-")) return arg !== "";
  if (arg === "--" || arg.includes("=") || noValue.has(arg)) return false;
  const isCluster = /^-[A-Za-z]{2,}$/.test(arg) && [...arg.slice(1)].every((letter) => noValue.has(`-${letter}`));
  return !isCluster && !HAS_VALUE.test(arg);
}
/** A short option with its value in the same word: none of these programs has an option of such a character. */
const HAS_VALUE = /^-[A-Za-z][/.\d]/;
/** The option of duplicity with two values. */
const TAKES_TWO = "--rename";

/** Whether a command whose words end there only shows something: a text, or what it would do. */
function isHarmless(
  args: readonly string[],
  end: number,
  trial: RegExp | undefined,
  { flags, helps, readsOptionsFirst }: Program,
): boolean {
  const last = readsOptionsFirst === true ? args.findIndex((arg, at) => at >= end && !arg.startsWith("-")) : args.indexOf("--");
  const options = last === -1 ? args : args.slice(0, last);
  const shows = (arg = ""): boolean => trial?.test(arg) === true || (helps === true && arg === "--help");
  if (args.some((arg, at) => TAKES_BACK.test(arg) || (shows(arg) && IS_OFF.test(args[at + 1] ?? "")))) return false;
  return options.some((arg, at) => shows(arg) && (at === 0 || !mayTakeOption(args[at - 1] ?? "", flags)));
}
/** Whether a word may be an option whose value is the next one, which looks like an option. */
const mayTakeOption = (arg: string, noValue: ReadonlySet<string>): boolean => mayBeOption(arg) && mayTakeValue(arg, noValue);
const TAKES_BACK = /^--no-dry|^--?(?:dry-run|fake|help|n)=/;
/** The value of such an option in code, whose words are taken apart at `=`. */
const IS_OFF = /^(?:false|f|0)$/i;
