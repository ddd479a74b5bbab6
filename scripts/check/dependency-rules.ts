/**
 * The rules of dependency (README.md, "Who may import whom") over the text of the sources. Pure: takes texts, gives findings.
 * `dependency-rules.unit.test.ts` has one breach of each rule, so that a rule which no longer bites is seen.
 */
import { posix } from "node:path";

export interface Finding {
  readonly rule: string;
  readonly file: string;
  readonly line: number;
  readonly message: string;
}
/** Path from the root, with `/`, to text. */
export type Sources = ReadonlyMap<string, string>;
export interface RustPackage {
  readonly name: string;
  /** Names of all dependencies that are not for tests. */
  readonly dependencies: readonly string[];
}

interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
  readonly line: number;
  /** Path from the root, for relative imports. */
  readonly target: string | undefined;
}

const STATEMENT = /^[ \t]*(?:import|export)\b(\s+type\b)?(?:[^;"'`]*?\bfrom)?\s*["']([^"'\n]+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"'\n]+)["']\s*\)/g;

export function importsOf(file: string, text: string): Import[] {
  const code = blank(text, { comments: true, strings: false });
  const lineAt = (index: number): number => code.slice(0, index).split("\n").length;
  const found = (specifier: string, typeOnly: boolean, index: number): Import => ({
    specifier,
    typeOnly,
    line: lineAt(index),
    target: specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : undefined,
  });
  return [
    ...[...code.matchAll(STATEMENT)].map((match) => found(match[2] ?? "", match[1] !== undefined, match.index + match[0].length)),
    ...[...code.matchAll(DYNAMIC)].map((match) => found(match[1] ?? "", false, match.index)),
  ];
}

/** Comments, and with `strings` also their contents, become spaces; lines stay where they are. */
export function blank(text: string, what: { comments: boolean; strings: boolean }): string {
  const spaces = (part: string): string => part.replaceAll(/[^\n]/g, " ");
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, (part) => {
    if (part.startsWith("/")) return what.comments ? spaces(part) : part;
    // A template may hold code; what is between its braces stays.
    return what.strings ? part.replaceAll(/\$\{[^}]*\}|[^\n]/g, (piece) => (piece.length > 1 ? piece : " ")) : part;
  });
}

const under = (file: string, ...folders: readonly string[]): boolean => folders.some((folder) => file.startsWith(folder));
const isTest = (file: string): boolean => /\.test\.tsx?$/.test(file) || /(^|\/)test\//.test(file);

const PURE_FOLDERS = ["gateway/src/session/machine/", "gateway/src/calls/", "gateway/src/kernel/routing/"];
const isPure = (file: string): boolean => !isTest(file) && (under(file, ...PURE_FOLDERS) || /(^|\/)map-[a-z-]+\.ts$/.test(file));
/** What code without clock, chance, network and runtime can't contain. */
const IMPURE: readonly (readonly [RegExp, string])[] = [
  [/\bawait\b|\basync\b/, "waits"],
  [/\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )(?<![.\w])Date\(/, "reads the clock"],
  [/\bperformance\.now\b/, "reads the clock"],
  [/\bMath\.random\b|\bcrypto\./, "uses chance"],
  [/\bprocess\.|\bglobalThis\b/, "looks at its surroundings"],
  [/\bfetch\(|\bsetTimeout\b|\bsetInterval\b|\bqueueMicrotask\b/, "acts on the outside"],
];

export function typescriptFindings(sources: Sources): Finding[] {
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (!/\.[cm]?ts$|\.js$/.test(file) || /(^|\/)gen\//.test(file)) continue;
    for (const imported of importsOf(file, text)) {
      for (const [rule, message] of importProblems(file, imported)) findings.push({ rule, file, line: imported.line, message });
    }
    if (isPure(file)) {
      const code = blank(text, { comments: true, strings: true });
      for (const [index, line] of code.split("\n").entries()) {
        for (const [pattern, does] of IMPURE)
          if (pattern.test(line))
            findings.push({
              rule: "3",
              file,
              line: index + 1,
              message: `Pure code ${does}. Take it as an argument, or move it to a driver.`,
            });
      }
    }
  }
  return findings;
}

function* importProblems(file: string, { specifier, target, typeOnly }: Import): Generator<readonly [rule: string, message: string]> {
  if (target !== undefined && !/\.(ts|js|json|wasm)$/.test(specifier))
    yield ["imports", `"${specifier}" has no extension. Write ${specifier}.ts.`];
  if (isTest(file)) return;
  const to = target ?? "";

  if (under(file, "protocol/") && target !== undefined && !under(to, "protocol/")) yield ["1", "protocol/ imports nothing of ours."];
  if (under(file, "channels/") && target !== undefined) {
    const own = file.split("/").slice(0, 2).join("/");
    if (!under(to, "protocol/gen/", "protocol/runtime/", "channels/kit/", `${own}/`))
      yield ["2", "A channel imports protocol/gen, protocol/runtime, channels/kit and itself, nothing else."];
  }
  if (isPure(file)) {
    if (specifier.startsWith("cloudflare:") || specifier.startsWith("node:")) yield ["3", `Pure code does not import ${specifier}.`];
    if (
      target !== undefined &&
      !typeOnly &&
      under(to, "gateway/") &&
      !isPure(to) &&
      !under(to, "gateway/src/ports/") &&
      !under(to, "gateway/src/kernel/config/")
    ) {
      yield ["3", `Pure code imports ${to}, which is not pure. Take what it gives as an argument, or import the type only.`];
    }
  }
  if (under(to, "gateway/src/platform/") && !typeOnly && !mayUsePlatform(file)) {
    yield [
      "4",
      "Only shells (*-do.ts), worker.ts, http/, effects/ and the durable tables (registry/, store/) import platform/. Take a port as an argument, or import the type only.",
    ];
  }
  if (specifier.startsWith("cloudflare:") && !typeOnly && under(file, "gateway/src/") && !mayUsePlatform(file))
    yield ["4", `Only the shells, worker.ts, http/ and platform/ import ${specifier}.`];
  if (
    under(file, "gateway/src/session/") &&
    under(to, "gateway/src/kernel/", "gateway/src/features/", "gateway/src/app/") &&
    !allowedForNow(file, to)
  )
    yield ["5", "session/ knows the gateway only through ports/."];
  if (
    under(file, "gateway/src/kernel/") &&
    under(to, "gateway/src/features/", "gateway/src/app/", "gateway/src/session/") &&
    !allowedForNow(file, to)
  )
    yield ["5", "The kernel imports no feature, no session and nothing of app/."];
  if (under(file, "gateway/src/") && !under(file, "gateway/src/app/") && under(to, "gateway/src/app/") && !allowedForNow(file, to))
    yield ["5", "Only app/ imports app/."];
  if (under(to, "gateway/packs/") && !under(file, "gateway/packs/")) yield ["7", "Core never imports packs."];
  // The HTTP contract is no schema: it is given its validators from outside and runs as it stands.
  if (under(file, "gateway/src/", "channels/") && under(to, "protocol/src/") && to !== "protocol/src/http.ts")
    yield ["9", "Import the generated protocol/gen/, not the schemas."];
}
/** Imports that stand until the features are separated. */
const FOR_NOW: readonly RegExp[] = [/^gateway\/src\/(kernel|features|platform)\//, /^gateway\/src\/session\/search-view/];
const allowedForNow = (file: string, _to: string): boolean => FOR_NOW.some((pattern) => pattern.test(file));
/** Shells and drivers, and the durable tables, which are a thin layer over platform/sql. */
const mayUsePlatform = (file: string): boolean =>
  file.endsWith("-do.ts") ||
  under(
    file,
    "gateway/src/platform/",
    "gateway/src/app/",
    "gateway/src/kernel/",
    "gateway/src/features/",
    "gateway/src/session/effects/",
    "gateway/src/session/store/",
  );

/** gsv-protocol <- gsv-link, gsv-tools <- gsv-node <- gsv-napi, gsv. */
const RUST_MAY_USE: Readonly<Record<string, readonly string[]>> = {
  "gsv-protocol": [],
  "gsv-link": ["gsv-protocol"],
  "gsv-tools": ["gsv-protocol"],
  "gsv-node": ["gsv-protocol", "gsv-link", "gsv-tools"],
  "gsv-napi": ["gsv-protocol", "gsv-link", "gsv-tools", "gsv-node"],
  gsv: ["gsv-protocol", "gsv-link", "gsv-tools", "gsv-node"],
};

export function rustFindings(packages: readonly RustPackage[], sources: Sources): Finding[] {
  const findings: Finding[] = [];
  const ours = new Set(packages.map(({ name }) => name));
  for (const { name, dependencies } of packages) {
    const file = name === "gsv" ? "cli/Cargo.toml" : `crates/${name}/Cargo.toml`;
    const allowed = RUST_MAY_USE[name];
    if (allowed === undefined) {
      findings.push({
        rule: "8",
        file,
        line: 1,
        message: `${name} has no place in the order of crates yet: give it one in scripts/check/dependency-rules.ts.`,
      });
      continue;
    }
    for (const dependency of dependencies) {
      if (ours.has(dependency) && !allowed.includes(dependency))
        findings.push({ rule: "8", file, line: 1, message: `${name} must not depend on ${dependency}.` });
      if (dependency === "anyhow" && name !== "gsv")
        findings.push({ rule: "8", file, line: 1, message: "Crates name their errors (thiserror); anyhow is for the command line only." });
    }
  }
  for (const [file, text] of sources) {
    if (!/^crates\/[a-z-]+\/src\/machine\/.*\.rs$/.test(file)) continue;
    const code = blank(text, { comments: true, strings: false });
    for (const [index, line] of code.split("\n").entries()) {
      if (/\btokio\b/.test(line)) findings.push({ rule: "8", file, line: index + 1, message: "The pure machine has no tokio." });
      if (/\b(?:Instant|SystemTime)::now\b/.test(line))
        findings.push({ rule: "8", file, line: index + 1, message: "The pure machine reads no clock: time is an argument." });
    }
  }
  return findings;
}
