/**
 * What programs for buckets, clusters, backups and file systems delete there (rule PO13). PURE. Their words are taken in their places: an
 * operand that is called `rm` deletes nothing, nor does a trial run.
 */

interface Removals {
  /** The first words that are no options, joined by blanks. */
  readonly words?: RegExp;
  /** An option of these words, whatever the first words are. */
  readonly option?: RegExp;
  readonly trial?: RegExp;
}
const TRIAL = /^(?:--dry-?run|-n)$/i;
const NO_TRIAL = /^$/;
const FS_COMMAND = /^-(?:rm(?:r|dir)?|expunge|delete)$/;
const PROGRAMS: Readonly<Record<string, Removals>> = {
  gcloud: {
    words: /^(?:alpha |beta )?storage (?:rm|rb|(?:buckets|objects|managed-folders|folders) delete)\b/,
    option: /^--delete-unmatched/,
    trial: NO_TRIAL,
  },
  // `run` takes its commands from its input or a file.
  s5cmd: { words: /^(?:rm|rb|run)\b/, option: /^--delete$/ },
  mc: { words: /^(?:rm|rb)\b/, option: /^--remove$/, trial: /^--(?:dry-run|fake)$/ },
  azcopy: { words: /^(?:rm|remove)\b/, option: /^--delete-destination(?:=(?!false$).*)?$/, trial: /^--dry-run$/ },
  hdfs: { option: FS_COMMAND, trial: NO_TRIAL },
  hadoop: { option: FS_COMMAND, trial: NO_TRIAL },
  ozone: { option: FS_COMMAND, trial: NO_TRIAL },
  borg: { words: /^(?:delete|prune|repo-delete|recreate)\b/ },
  restic: { words: /^(?:forget|prune)\b/ },
  kopia: { words: /^snap(?:shot)? (?:delete|expire)\b/ },
  duplicity: { words: /^(?:remove-|cleanup\b)/ },
  btrfs: { words: /^su(?:b(?:v(?:o(?:l(?:u(?:m(?:e)?)?)?)?)?)?)? d(?:e(?:l(?:e(?:t(?:e)?)?)?)?)?\b/, trial: NO_TRIAL },
  zfs: { words: /^(?:destroy|rollback)\b/ },
  zpool: { words: /^destroy\b/, trial: NO_TRIAL },
};

/** Whether a call of one of these programs deletes: how many files, its words do not say. */
export function removesStored(program: string, args: readonly string[]): boolean {
  const removals = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
  if (removals === undefined) return false;
  const { words, option, trial = TRIAL } = removals;
  if (args.some((arg) => trial.test(arg) || arg === "--help")) return false;
  const named = args
    .filter((arg) => !arg.startsWith("-"))
    .slice(0, 4)
    .join(" ");
  return words?.test(named) === true || (option !== undefined && args.some((arg) => option.test(arg)));
}
