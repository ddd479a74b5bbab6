/** What the protocol's tests share: the model of the real contract, the golden files, and TypeBox's own verdict. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TSchema } from "typebox";
import Value from "typebox/value";
import { buildModel, type Model } from "../../scripts/codegen/model.ts";
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

export interface GoldenFile {
  readonly type: string;
  readonly name: string;
  readonly valid: boolean;
  readonly text: string;
}

export function goldenFiles(): GoldenFile[] {
  return readdirSync(GOLDEN, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name: type }) =>
      readdirSync(join(GOLDEN, type)).map((name) => ({
        type,
        name,
        valid: name.startsWith("valid-"),
        text: readFileSync(join(GOLDEN, type, name), "utf8"),
      })),
    );
}
