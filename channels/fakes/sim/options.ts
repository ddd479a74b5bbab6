/**
 * The options of `./scripts/sim`. The script runs this file first, before it installs or builds anything, so nothing here may need a
 * package. As a program: prints the usage for `--help`, and ends with 2 for wrong options.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";

export const USAGE = `Usage: ./scripts/sim [--home DIR] [--model] [--script FILE]

  --home DIR     keep the state there, and go on with it the next time (else it is thrown away)
  --model        leave the model as it is configured in that home (else the built-in demo model answers)
  --script FILE  read commands from a file; \`-\`, or a pipe, is stdin. The first that fails ends it with status 1

The command \`help\` at the prompt lists the commands.`;

export interface SimOptions {
  readonly home?: string;
  readonly model?: boolean;
  readonly script?: string;
  readonly help?: boolean;
}
export const readOptions = (args: readonly string[]): SimOptions =>
  parseArgs({
    args: [...args],
    options: { home: { type: "string" }, model: { type: "boolean" }, script: { type: "string" }, help: { type: "boolean", short: "h" } },
  }).values;

if (process.argv[1] !== undefined && resolve(process.argv[1]) === resolve(import.meta.filename)) {
  try {
    if (readOptions(process.argv.slice(2)).help === true) console.log(USAGE);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exitCode = 2;
  }
}
