/** PURE. Types of the addon, from what its macros wrote while it was compiled: one JSON object a line. */

interface Written {
  readonly kind: string;
  readonly name: string;
  readonly js_doc: string;
  readonly def: string;
}

const indented = (lines: string): string =>
  lines
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => `  ${line}${line.endsWith("*/") ? "" : ";"}\n`)
    .join("");

/** `files`: the text of each file. Throws for a kind that this package does not use. */
export function nativeTypes(files: readonly string[]): string {
  // The addon and its tests are compiled apart, and each writes the same lines.
  const lines = new Set(files.flatMap((text) => text.split("\n")).filter((line) => line !== ""));
  const written = [...lines].map((line) => JSON.parse(line) as Written);
  const classes = new Map(written.filter(({ kind }) => kind === "struct").map(({ name, js_doc }) => [name, js_doc]));
  let out = "// Generated from crates/gsv-napi/src: npm run build --workspace @gsv/node. Do not edit.\n";
  for (const { kind, name, js_doc, def } of written.toSorted((left, right) => (left.name < right.name ? -1 : 1))) {
    if (kind === "struct") continue;
    if (kind !== "interface" && kind !== "impl") throw new Error(`the addon has a ${kind}, ${name}, which native-types.ts does not know`);
    const doc = kind === "impl" ? (classes.get(name) ?? "") : js_doc;
    out += `\n${doc}export ${kind === "impl" ? "declare class" : "interface"} ${name} {\n${indented(def)}}\n`;
  }
  return out;
}
