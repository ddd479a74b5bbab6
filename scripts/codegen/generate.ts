/** Generates the text of every file from a model. It must not touch the disk: `main.ts` writes, compares or freezes the texts. */
import { spawn } from "node:child_process";
import { emitConfigValues } from "./config-values.ts";
import { emitExplainTable } from "./explain-table.ts";
import { fingerprint, protocolSchema } from "./json-schema.ts";
import { emitLookups, emitRustLookups } from "./lookups.ts";
import { emitMarkdown } from "./markdown.ts";
import { ContractError, type Model } from "./model.ts";
import { emitNodePackage, NODE_PACKAGE_FILE } from "./node-package.ts";
import { emitOpenApi } from "./openapi.ts";
import { emitRustErrors, emitRustEvents, emitRustGolden, emitRustHidden, emitRustLimits, emitRustMethods, emitRustTypes } from "./rust.ts";
import { emitErrors, emitLimits, emitMethods, emitServices, emitTypes, exportedNames } from "./typescript.ts";
import { emitCheckIndex, emitChecks, emitCheckTypes } from "./validators.ts";

const RUST = "crates/gsv-protocol";

/** Paths below the repository's root, sorted, each with its whole text. */
export type Files = ReadonlyMap<string, string>;

export async function generate(model: Model): Promise<Files> {
  const seen = new Set<string>();
  for (const name of exportedNames(model)) {
    if (seen.has(name)) throw new ContractError(`${name} would be exported twice from types.ts`);
    seen.add(name);
  }
  const schema = protocolSchema(model);
  const print = fingerprint(schema);
  const rust: readonly (readonly [string, string])[] = [
    [`${RUST}/src/types.rs`, emitRustTypes(model)],
    [`${RUST}/src/methods.rs`, emitRustMethods(model, print)],
    [`${RUST}/src/events.rs`, emitRustEvents(model)],
    [`${RUST}/src/errors.rs`, emitRustErrors(model)],
    [`${RUST}/src/hidden.rs`, emitRustHidden()],
    [`${RUST}/src/limits.rs`, emitRustLimits(model)],
    [`${RUST}/src/lookups.rs`, emitRustLookups(model)],
    [`${RUST}/tests/contract/golden_types.rs`, emitRustGolden(model)],
  ];
  const files = new Map<string, string>([
    ["protocol/gen/protocol.schema.json", `${JSON.stringify(schema, null, 2)}\n`],
    ["protocol/gen/types.ts", emitTypes(model)],
    ["protocol/gen/methods.ts", emitMethods(model, print)],
    ["protocol/gen/errors.ts", emitErrors(model)],
    ["protocol/gen/services.ts", emitServices(model)],
    ["protocol/gen/limits.ts", emitLimits(model)],
    ["protocol/gen/lookups.ts", emitLookups(model)],
    ["protocol/gen/explain-table.ts", emitExplainTable(model)],
    ["protocol/gen/validators/checks.js", emitChecks(model)],
    ["protocol/gen/validators/checks.d.ts", emitCheckTypes(model)],
    ["protocol/gen/validators/index.ts", emitCheckIndex(model)],
    ["protocol/gen/METHODS.md", emitMarkdown(model, print)],
    ["protocol/gen/config.ts", emitConfigValues()],
  ]);
  // Models of tests have no HTTP contract and no package.
  if (model.typeByName.has("HealthResult")) {
    files.set("protocol/gen/openapi.json", emitOpenApi(model));
    files.set(NODE_PACKAGE_FILE, emitNodePackage(model));
  }
  const formatted = await Promise.all(rust.map(async ([path, text]) => [path, await rustfmt(path, text)] as const));
  for (const [path, text] of formatted) files.set(path, text);
  return new Map([...files].sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** Formats one Rust file as the workspace's rustfmt.toml says. */
function rustfmt(path: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("rustfmt", ["--edition", "2024", "--config", "max_width=120", "--emit", "stdout"], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    const out: Buffer[] = [];
    const problems: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => problems.push(chunk));
    child.on("error", () => reject(new ContractError("rustfmt is not installed; run: rustup component add rustfmt")));
    child.on("close", (code) => {
      if (code === 0) resolve(Buffer.concat(out).toString("utf8"));
      else reject(new ContractError(`rustfmt refused ${path}: ${Buffer.concat(problems).toString("utf8")}`));
    });
    child.stdin.end(text);
  });
}
