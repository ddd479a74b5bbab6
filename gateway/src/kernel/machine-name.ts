/**
 * Names of machines. They differ in more than case, because people and models do not tell `Laptop` from `laptop`. Only new names are checked
 * for that, so that machines of earlier versions keep theirs. PURE.
 */
import type { Problem } from "../ports/result.ts";
import { isMachineName, SEPARATOR } from "../tools/registry.ts";

/** The prefix of the gateway's own tools. */
const RESERVED = "gsv";

const RULE: Problem = {
  message: `A machine's name has 1 to 64 letters, digits, \`_\`, \`.\` or \`-\`, begins with a letter or digit, and contains no \`${SEPARATOR}\`. \`${RESERVED}\` is reserved.`,
  hint: "Choose another name, such as `laptop`.",
};

export const isReserved = (name: string): boolean => name.toLowerCase() === RESERVED;
export const isSameMachine = (name: string, other: string): boolean => name.toLowerCase() === other.toLowerCase();

/** Why no machine may have this name. The separator would make `a__b__Bash` a tool of two machines. */
export const machineNameProblem = (name: string): Problem | undefined =>
  isMachineName(name) && !name.includes(SEPARATOR) && !isReserved(name) ? undefined : RULE;

/** The problem of a new name among those that are taken; undefined when there is none, also for a name that is one of them. */
export function caseProblem(name: string, taken: readonly string[]): Problem | undefined {
  const other = taken.includes(name) ? undefined : taken.find((one) => isSameMachine(one, name));
  if (other === undefined) return undefined;
  return {
    message: `A machine is already called \`${other}\`, and two names must differ in more than upper and lower case.`,
    hint: `Use another name, or \`${other}\` if it is the same machine.`,
  };
}

/** Continues a sentence that begins with what names the machine. */
export const unknownMachine = (name: string): string =>
  `names the machine ${name}, which this gateway does not know. See \`gsv nodes list\``;
