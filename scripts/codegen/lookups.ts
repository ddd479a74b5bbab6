/** Emit the lookups: functions from any string to a value of an enum, in TypeScript and Rust. */
import type { LookupSpec, Model } from "./model.ts";
import { BANNER, pascal, rustDoc, snake } from "./names.ts";
import { comment } from "./typescript.ts";

const ABOUT = "Functions from any string to a value of an enum.";

const resultsOf = (model: Model): string[] => [...new Set(model.lookups.map(({ result }) => result))].sort();

function typescript({ name, doc, result, rows, otherwise }: LookupSpec): string {
  const cases = Object.entries(rows).map(([key, value]) => `    case ${JSON.stringify(key)}:\n      return ${JSON.stringify(value)};\n`);
  return (
    `\n${comment(doc)}export function ${name}(name: string): ${result} {\n  switch (name) {\n${cases.join("")}` +
    `    default:\n      return ${JSON.stringify(otherwise)};\n  }\n}\n`
  );
}

export function emitLookups(model: Model): string {
  const imports = model.lookups.length === 0 ? "export {};\n" : `import type { ${resultsOf(model).join(", ")} } from "./types.ts";\n`;
  return `// ${BANNER}\n/** ${ABOUT} */\n${imports}${model.lookups.map(typescript).join("")}`;
}

function rust({ name, doc, result, rows, otherwise }: LookupSpec): string {
  const arms = Object.entries(rows).map(([key, value]) => `${JSON.stringify(key)} => ${result}::${pascal(value)},\n`);
  return (
    `\n${rustDoc(doc)}#[must_use]\npub fn ${snake(name)}(name: &str) -> ${result} {\nmatch name {\n${arms.join("")}` +
    `_ => ${result}::${pascal(otherwise)},\n}\n}\n`
  );
}

const ALLOWS = `#![allow(
    clippy::doc_markdown,
    clippy::match_same_arms,
    rustdoc::all,
    reason = "rows and prose come from the contract"
)]
`;

export function emitRustLookups(model: Model): string {
  const imports = model.lookups.length === 0 ? "" : `use crate::types::{${resultsOf(model).join(", ")}};\n`;
  return `// ${BANNER}\n//! ${ABOUT}\n${ALLOWS}\n${imports}${model.lookups.map(rust).join("")}`;
}
