/** The command line of the mutation lane: arguments to options, or to what is printed instead. Reads and writes nothing. */
import { parseArgs } from "node:util";

export const AREAS = ["cores", "kit", "crates"] as const;
export type Area = (typeof AREAS)[number];

export const HELP = `Makes one-line mistakes in a copy of the product, one at a time, and runs the tests that should notice.

Usage: node scripts/mutants/main.ts [OPTIONS]

  --area AREA     cores (pure TypeScript), kit (the channel kit) or crates (gsv-link and gsv-tools); can be repeated; default: all
  --count N       mistakes in each area; default: cores 100, kit 40, crates 30
  --seed N        another choice of mistakes; default: 1
  --state DIR     keep the copy and the results here: the same command continues an interrupted run
  --minutes N     stop after N minutes with exit status 3; continue with --state
  --report FILE   write the result as JSON
  -h, --help      show this help

Prints each survivor, then the rate of each area. The exit status is 1 when a rate is below 95 %, when the tests fail without a
mistake, and when an entry of scripts/mutants/survivors.json is out of date; 2 for wrong arguments.`;

export interface Options {
  readonly areas: readonly Area[];
  readonly count?: number;
  readonly seed: number;
  readonly state?: string;
  readonly minutes?: number;
  readonly report?: string;
}
/** Text: what is wrong with the arguments. */
export function optionsOf(args: readonly string[]): Options | "help" | { readonly error: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        area: { type: "string", multiple: true },
        count: { type: "string" },
        seed: { type: "string", default: "1" },
        state: { type: "string" },
        minutes: { type: "string" },
        report: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help === true) return "help";
    const unknown = values.area?.find((name) => !AREAS.some((area) => area === name));
    if (unknown !== undefined) return { error: `There is no area ${unknown}. The areas are ${AREAS.join(", ")}.` };
    if (values.minutes !== undefined && values.state === undefined)
      return { error: "--minutes needs --state DIR, where the results stay." };
    return {
      areas: AREAS.filter((area) => values.area?.includes(area) ?? true),
      seed: whole("--seed", values.seed, 0),
      ...(values.count === undefined ? {} : { count: whole("--count", values.count, 1) }),
      ...(values.minutes === undefined ? {} : { minutes: whole("--minutes", values.minutes, 1) }),
      ...(values.state === undefined ? {} : { state: values.state }),
      ...(values.report === undefined ? {} : { report: values.report }),
    };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
function whole(name: string, text: string, least: number): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < least)
    throw new Error(`${name} ${text}: give a whole number of at least ${least}.`);
  return number;
}
