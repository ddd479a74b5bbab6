/** Variables that a text only reads: their values come from outside of it, where no one has made a command of them (rule PO13). PURE. */
import { once } from "../once.ts";
import { withoutQuotes } from "../quotes.ts";
import { maySetAnyVariable } from "./known-variables.ts";

/** Set by what a shell does, without their names. */
const OF_SHELL =
  /^(?:_|REPLY|OPT(?:ARG|IND)|MAPFILE|COPROC|DIRSTACK|OLDPWD|IFS|PATH|CDPATH|BASH\w*|PIPESTATUS|MATCH|match|reply|argv|status|path|cdpath|fpath|manpath|psvar|history|dirstack|commands|aliases|functions)$/;
/** Reads another text, which may set any. */
const READS_TEXT = /(?:^|[\s;&|(`{!])(?:eval|source|\.)(?=\s)/;
/** A folder by a command that gives no other. */
const SET_TO_FOLDER = /(?<![\w$])[A-Za-z_]\w{0,40}=(?:\$\((?:git rev-parse --show-toplevel|pwd|mktemp -d)\)|made)(?=[\s;&]|$)/g;
/** Texts with more such names are left as they are. */
const MAX_NAMES = 20;

/** Whether the text only reads the variable of a name. */
export function givenVariables(text: string): (name: string) => boolean {
  const known = new Map<string, boolean>();
  const plain = once(() => withoutQuotes(text.replaceAll("\\\n", "")).replaceAll(SET_TO_FOLDER, " "));
  const mayBeAny = once(() => READS_TEXT.test(plain()) || maySetAnyVariable(text));
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const isGiven = known.size < MAX_NAMES && !OF_SHELL.test(name) && !mayBeAny() && isOnlyRead(name, plain());
    if (known.size < MAX_NAMES) known.set(name, isGiven);
    return isGiven;
  };
}
/** The name stands in the text as `$NAME` or `${NAME}` only. Some programs write it in their messages. */
const isOnlyRead = (name: string, plain: string): boolean =>
  !new RegExp(`(?<![\\w$]|\\$\\{)${name}(?!\\w)|\\$\\{${name}(?![\\w}])`).test(plain);
