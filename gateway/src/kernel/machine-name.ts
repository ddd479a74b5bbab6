/**
 * Names of machines, which differ in more than case: people and models do not tell `Laptop` from `laptop`. Only new names are checked, so that
 * machines of earlier versions keep theirs. PURE.
 */

/** The prefix of the gateway's own tools. */
const RESERVED = "gsv";

export const isReserved = (name: string): boolean => name.toLowerCase() === RESERVED;
export const isSameMachine = (name: string, other: string): boolean => name.toLowerCase() === other.toLowerCase();

/** The problem of a new name among those that are taken; undefined when there is none, also for a name that is one of them. */
export function caseProblem(name: string, taken: readonly string[]): string | undefined {
  const other = taken.includes(name) ? undefined : taken.find((one) => isSameMachine(one, name));
  return other === undefined
    ? undefined
    : `A machine is already called \`${other}\`, and two names must differ in more than upper and lower case. Use another name, or \`${other}\` if it is the same machine.`;
}
