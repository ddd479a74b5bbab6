/** Shared by the tests of the protocol: the model of the real contract, the golden examples, and TypeBox's own verdict. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TSchema } from "typebox";
import Value from "typebox/value";
import { buildModel } from "../../scripts/codegen/build-model.ts";
import type { Model } from "../../scripts/codegen/model.ts";
import type { Example } from "../../scripts/codegen/examples.ts";
import * as checks from "../gen/validators/checks.js";
import * as contract from "../src/index.ts";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const GOLDEN = join(ROOT, "protocol/golden");
export const model: Model = buildModel(contract, contract.VALIDATED);

const context = Object.fromEntries([...contract.types].map(([name, named]) => [name, named.schema]));

/** TypeBox's own dynamic check of the schema as it was written: the second opinion on everything generated. */
export function typeboxAccepts(name: string, value: unknown): boolean {
  const schema: TSchema | undefined = context[name];
  if (!schema) throw new Error(`there is no type ${name}`);
  return Value.Check(context, schema, value);
}

/** The generated validator. */
export function generatedAccepts(name: string, value: unknown): boolean {
  const check: unknown = Reflect.get(checks, `check${name}`);
  if (typeof check !== "function") throw new Error(`there is no check${name}`);
  return Reflect.apply(check, undefined, [value]) === true;
}

export interface GoldenExample {
  readonly type: string;
  /** File and line, for messages. */
  readonly at: string;
  readonly example: Example;
}

/** The names in protocol/golden, sorted. */
export const goldenNames = (): string[] => readdirSync(GOLDEN).sort();

const isExample = (line: unknown): line is Example => {
  if (typeof line !== "object" || line === null || !("name" in line && "valid" in line)) return false;
  if (typeof line.name !== "string" || typeof line.valid !== "boolean") return false;
  const keys = line.valid ? "name,valid,value" : "name,valid,mistake,value";
  return Object.keys(line).join() === keys && (line.valid || ("mistake" in line && typeof line.mistake === "string"));
};

/** The examples of one file. Throws an error with file and line when a line is not an example. */
export function parseGolden(file: string, text: string): GoldenExample[] {
  if (!text.endsWith("\n")) throw new Error(`${file}: the last line has no line end`);
  const lines = text.slice(0, -1).split("\n");
  return lines.map((line, index) => {
    const at = `${file}:${index + 1}`;
    let example: unknown;
    try {
      example = JSON.parse(line);
    } catch (error) {
      throw new Error(`${at}: ${String(error)}`);
    }
    if (!isExample(example)) throw new Error(`${at}: the line is not an example (name, valid, mistake if invalid, value)`);
    return { type: file.replace(/\.jsonl$/, ""), at, example };
  });
}

/** Every committed example, by file and line. */
export const goldenExamples = (): GoldenExample[] =>
  goldenNames().flatMap((file) => parseGolden(file, readFileSync(join(GOLDEN, file), "utf8")));
