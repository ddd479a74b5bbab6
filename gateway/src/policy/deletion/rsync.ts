/** What rsync deletes (rule PO13). PURE. */
import { type TemporaryTrust, isTemporary } from "./temporary-paths.ts";

/** Behind such a word comes no value of an option. */
const NO_VALUE =
  /^(?:[^-]|-[avzhrltpgoDHAXPxuSnqicRbWk]+$|--(?:del|archive|verbose|recursive|progress|stats|itemize-changes|checksum|force|dry-run|human))/;
/** Letters before it have no value. */
const SHOWS = /^(?:-[avzhrltpgoDHAXPxuSqicRbWk]*n[avzhrltpgoDHAXPxuSnqicRbWk]*|--dry-run)$/;

/** Counts what rsync deletes: files that the source does not have, a folder in the place of a file, or the source. */
export function byRsync(args: readonly string[], trust: TemporaryTrust): number | "many" {
  if (!args.some((arg) => /^--(?:del|remove-s|force$)/.test(arg))) return 0;
  const isOption = (at: number): boolean => at === 0 || NO_VALUE.test(args[at - 1] ?? "");
  const end = args.indexOf("--");
  const isShown = args.some((arg, at) => (end === -1 || at < end) && SHOWS.test(arg) && isOption(at));
  if (isShown && !args.some((arg) => arg.startsWith("--no-"))) return 0;
  const target = args.at(-1) ?? "";
  const isThere = args.length > 2 && isOption(args.length - 1) && isTemporary(target.replace(/\/+$/, ""), trust);
  return isThere && !args.some((arg) => arg.startsWith("--remove-s")) ? 0 : "many";
}
