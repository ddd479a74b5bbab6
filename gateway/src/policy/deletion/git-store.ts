/**
 * What git removes from its own store for good (rule PO13). PURE. Git keeps commits that no name reaches any
 * more, such as those of a dropped stash, a deleted branch or from before a rebase, for a time. A command that shortens this time removes them.
 */

/** Git's own times, and "never". Text after the weeks makes a date: `2.weeks.2026-01-01`. */
const AS_USUAL = /^(?:never|false|(?:2|two)[. ]?weeks(?:[. ]ago)?)$/;
const isOwnTime = (time: string | undefined): boolean => time !== undefined && !AS_USUAL.test(time);
const SETTING = /^gc\..*expire/i;
const SET_FOR_ONE = /^(?:-c|--config=)?gc\.[^=]*expire[^=]*=(.*)$/is;
/** An option with a time, in the same word or the next one. */
const hasTime = (args: readonly string[], option: RegExp): boolean =>
  args.some((arg, at) => {
    const found = option.exec(arg);
    return found !== null && isOwnTime(found[1] ?? args[at + 1]);
  });
const isShown = (args: readonly string[]): boolean => args.some((arg) => /^-[a-z]*[nh]|^--(?:dr|help$)/.test(arg));

/** `options`: of git itself, before the subcommand. Git takes every beginning of a long option that no other one has. */
export function removesFromStore(subcommand: string, args: readonly string[], options: readonly string[]): boolean {
  if (options.some((option) => isOwnTime(SET_FOR_ONE.exec(option)?.[1]))) return true;
  switch (subcommand) {
    // The input may name any number of them.
    case "update-ref":
      return args.some((arg) => /^-[a-z]*d|^--st/.test(arg));
    case "gc":
      return args.some((arg) => isOwnTime(/^--p[a-z]*=(.*)$/s.exec(arg)?.[1]));
    case "prune":
      return !isShown(args);
    case "reflog":
      if (isShown(args)) return false;
      return /^(?:delete|drop)$/.test(args[0] ?? "") || hasTime(args, /^--exp[a-z-]*(?:=(.*))?$/s);
    case "repack":
      return hasTime(args, /^--(?:cruft-e|unp)[a-z-]*(?:=(.*))?$/s);
    case "config":
      return args.some((arg, at) => SETTING.test(arg) && isOwnTime(args[at + 1]));
    default:
      return false;
  }
}
