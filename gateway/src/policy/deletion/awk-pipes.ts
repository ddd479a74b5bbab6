/** Programs of awk that write their output to a command whose name is in a variable: `print "rm " f | c` (rule PO13). PURE. */

/** The text after the match is no command of its own: the next command begins there. */
const PIPES = /\bprintf?\b[^;}\n|]{0,500}(?<!\|)\|&?\s{0,9}(?!getline\b)([A-Za-z_]\w{0,60})\s{0,9}(?:[;})\n]|$)/g;
/** Takes commands from its input. */
const SHELL = /\b(?:\w{0,4}sh|xargs|parallel|at|batch|python[\d.]*|perl|node|ruby)\b/;

/** `args`: all of the command, which can set a variable too. */
export function pipesToUnknown(script: string, args: readonly string[]): boolean {
  if (!script.includes("|")) return false;
  const names = new Set([...script.matchAll(PIPES)].map(([, name = ""]) => name));
  if (names.size > 5) return true;
  return [...names].some((name) => {
    const values = [
      ...script.matchAll(new RegExp(`(?<!\\w)${name}\\s{0,9}=(?!=)\\s{0,9}(?:"((?:[^"\\\\]|\\\\.)*)"(?=\\s{0,9}[;}\\n]))?`, "g")),
    ];
    const isSet = args.some((arg) => arg.includes(`${name}=`) && arg !== script);
    return isSet || values.length === 0 || values.some(([, value]) => value === undefined || SHELL.test(value));
  });
}
