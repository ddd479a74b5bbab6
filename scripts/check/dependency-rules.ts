/**
 * The rules of dependency (README.md, "Who may import whom"). PURE: takes texts, gives findings.
 * `dependency-rules.unit.test.ts` has one breach of each rule, so that a check which finds nothing any more is noticed.
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

/** Replaces comments, and with `strings` the contents of strings, by spaces. Lines keep their numbers. */
export function blank(text: string, what: { comments: boolean; strings: boolean }): string {
  const spaces = (part: string): string => part.replaceAll(/[^\n]/g, " ");
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, (part) => {
    if (part.startsWith("/")) return what.comments ? spaces(part) : part;
    // Code inside the braces of a template is kept.
    return what.strings ? part.replaceAll(/\$\{[^}]*\}|[^\n]/g, (piece) => (piece.length > 1 ? piece : " ")) : part;
  });
}

const under = (file: string, ...folders: readonly string[]): boolean => folders.some((folder) => file.startsWith(folder));
const isTest = (file: string): boolean => /\.test\.tsx?$/.test(file) || /(^|\/)test\//.test(file);

/** Folders that are pure as a whole. */
const PURE_FOLDERS = ["gateway/src/session/machine/", "gateway/src/kernel/routing/", "gateway/src/prompt/"];
/** The comment at the top of a file. */
const headOf = (text: string): string => /^\s*\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? "";
/** Whether rule 3 holds for a file. Helpers of tests are pure when their heads say so; of their imports nothing is asked. */
export const isPure = (file: string, text = ""): boolean =>
  /\bPURE\b/.test(headOf(text)) || (!isTest(file) && (under(file, ...PURE_FOLDERS) || /(^|\/)map-[a-z-]+\.ts$/.test(file)));
/** What pure code must not contain. */
const IMPURE: readonly (readonly [RegExp, string])[] = [
  [/\bawait\b|\basync\b/, "waits"],
  [/\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )(?<![.\w])Date\(/, "reads the clock"],
  [/\bperformance\.now\b/, "reads the clock"],
  [/\bMath\.random\b|\bcrypto\./, "uses randomness"],
  [/\bprocess\.|\bglobalThis\b/, "reads the environment"],
  [/\bfetch\(|\bsetTimeout\b|\bsetInterval\b|\bqueueMicrotask\b/, "acts on the outside world"],
];

export function typescriptFindings(sources: Sources): Finding[] {
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (!/\.[cm]?ts$|\.js$/.test(file) || /(^|\/)gen\//.test(file)) continue;
    for (const imported of importsOf(file, text)) {
      const target = imported.target === undefined ? undefined : sources.get(imported.target);
      for (const [rule, message] of importProblems({ file, text, target }, imported))
        findings.push({ rule, file, line: imported.line, message });
    }
    if (under(file, "gateway/src/features/") && !isTest(file)) findings.push(...wholeKernel(file, text));
    if (/\bPure\b/.test(headOf(text)))
      findings.push({
        rule: "3",
        file,
        line: 1,
        message: "Only the word PURE in a head makes rule 3 hold. Write PURE, or say it in other words.",
      });
    if (isPure(file, text)) {
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

interface Importer {
  readonly file: string;
  readonly text: string;
  /** Text of the imported file, where it is known. */
  readonly target: string | undefined;
}
function* importProblems(
  { file, text, target: targetText }: Importer,
  { specifier, target, typeOnly }: Import,
): Generator<readonly [rule: string, message: string]> {
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
  if (isPure(file, text)) {
    if (specifier.startsWith("cloudflare:") || (specifier.startsWith("node:") && specifier !== "node:path"))
      yield ["3", `Pure code does not import ${specifier}.`];
    if (target !== undefined && !typeOnly && under(to, "gateway/") && !isPure(to, targetText) && !under(to, "gateway/src/ports/"))
      yield ["3", `Pure code imports ${to}, which is not pure. Take what it gives as an argument, or import the type only.`];
  }
  if (under(to, "gateway/src/platform/") && !typeOnly && !mayUsePlatform(file, to)) {
    yield [
      "4",
      "Only shells (*-do.ts), app/, effects/ and stores (store.ts, *-store.ts) import platform/. Take a port as an argument, or import the type only.",
    ];
  }
  if (specifier.startsWith("cloudflare:") && !typeOnly && under(file, "gateway/src/") && !mayUseRuntime(file))
    yield ["4", `Only the shells, app/ and platform/ import ${specifier}.`];
  if (under(file, "gateway/src/") && target !== undefined) yield* layerProblems(file, to);
  yield* packProblems(file, to);
  // The HTTP contract is no schema: it takes its validators as arguments and needs no generation.
  if (under(file, "gateway/src/", "channels/") && under(to, "protocol/src/") && to !== "protocol/src/http.ts")
    yield ["9", "Import the generated protocol/gen/, not the schemas."];
}
const PACKS = "gateway/packs/";
const packOf = (file: string): string => file.slice(PACKS.length).split("/")[0] ?? "";
/** What a pack may use of the core: its types, its helpers and the contract. */
const FOR_PACKS = ["gateway/src/packs/", "gateway/src/ports/", "gateway/src/events/", "protocol/gen/", "protocol/runtime/"];
function* packProblems(file: string, to: string): Generator<readonly [rule: string, message: string]> {
  if (under(to, PACKS) && !under(file, PACKS) && !(under(file, "gateway/src/app/") && to === `${PACKS}index.ts`))
    yield ["7", "Core never imports packs. app/ composes them through gateway/packs/index.ts."];
  if (!under(file, PACKS) || to === "") return;
  const isOwn = under(to, `${PACKS}${packOf(file)}/`);
  const isList = file === `${PACKS}index.ts` && /^gateway\/packs\/[^/]+\/index\.ts$/.test(to);
  if (!isOwn && !isList && !under(to, ...FOR_PACKS))
    yield ["7", "A pack imports src/packs, src/ports, src/events, protocol/gen, protocol/runtime and itself, no other pack."];
}

/** Words of one kind of business, and every name that a pack gives to something. */
const BUSINESS = /\b(?:shopify|e-?commerce|merchandis\w+|refunds?|storefronts?|webshops?)\b/i;
const CORE = ["gateway/src/", "gateway/embedded/", "protocol/src/", "protocol/runtime/", "cli/src/", "crates/", "channels/"];
/** The core knows no business (rule PK1), so that a pack is added without a change of the core. */
export function packWordFindings(sources: Sources): Finding[] {
  const names = new Set<string>();
  for (const [file, text] of sources) {
    if (!under(file, PACKS) || isTest(file)) continue;
    const [, agent] = /\/agents\/([^/]+)\/agent\.yaml$/.exec(file) ?? [];
    if (agent !== undefined) names.add(agent);
    if (!file.endsWith(".ts") || under(file, `${PACKS}${packOf(file)}/gen/`)) continue;
    for (const [, name = ""] of text.matchAll(/\b(?:name|queue): "([a-z]+(?:[_-][a-z0-9]+)+)"/g)) names.add(name);
  }
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (!under(file, ...CORE) || isTest(file) || /(?:^|\/)gen\//.test(file)) continue;
    for (const [index, line] of text.split("\n").entries()) {
      const word = BUSINESS.exec(line)?.[0] ?? [...names].find((name) => line.includes(name));
      if (word !== undefined)
        findings.push({
          rule: "7",
          file,
          line: index + 1,
          message: `The core knows no business: "${word}" belongs to a pack (gateway/packs).`,
        });
    }
  }
  return findings;
}

/** A feature must not take all of the kernel's ports. */
function wholeKernel(file: string, text: string): Finding[] {
  const statement = /^import\b[^;]*;/gm;
  const code = blank(text, { comments: true, strings: true }).replaceAll(statement, (imported) => imported.replaceAll(/[^\n]/g, " "));
  return [...code.matchAll(/(?<!Pick<\s*)\bKernelPorts\b/g)].map(({ index }) => ({
    rule: "6",
    file,
    line: code.slice(0, index).split("\n").length,
    message: 'Declare the ports that the feature uses: Pick<KernelPorts, "config" | "now">.',
  }));
}

const layerOf = (file: string): string => file.split("/")[2] ?? "";
const featureOf = (file: string): string => file.split("/")[3] ?? "";
/** Layers of gateway/src that know no feature, no kernel and no session. */
const BELOW = [
  "ports",
  "storage",
  "models",
  "prompt",
  "tools",
  "platform",
  "calls",
  "policy",
  "agents",
  "embeddings",
  "events",
  "notify",
  "packs",
  "schedule",
  "telemetry",
];

function* layerProblems(file: string, to: string): Generator<readonly [rule: string, message: string]> {
  const [from, target] = [layerOf(file), layerOf(to)];
  if (!under(to, "gateway/src/")) return;
  if (target === "app" && from !== "app") yield ["5", "Only app/ imports app/."];
  else if (from === "features" && target === "features" && featureOf(file) !== featureOf(to))
    yield ["5", "A feature does not import another feature. Share a port (ports/), or move what both need below them (storage/, prompt/)."];
  else if (from === "features" && target === "session") yield ["5", "A feature knows sessions only through ports/."];
  else if (from === "kernel" && (target === "features" || target === "session"))
    yield ["5", "The kernel imports no feature and no session."];
  else if (from === "session" && (target === "kernel" || target === "features"))
    yield ["5", "session/ knows the gateway only through ports/."];
  else if (BELOW.includes(from) && (target === "features" || target === "kernel" || target === "session"))
    yield ["5", `${from}/ lies below the kernel, the features and the sessions, and imports none of them.`];
}

/** Shells and drivers. */
const mayUseRuntime = (file: string): boolean =>
  file.endsWith("-do.ts") || under(file, "gateway/src/platform/", "gateway/src/app/", "gateway/src/session/effects/");
/** The durable tables are a thin layer over platform/sql; `connections.ts` is the one over sockets. */
const mayUsePlatform = (file: string, to: string): boolean =>
  mayUseRuntime(file) ||
  under(file, "gateway/src/session/store/") ||
  /(?:^|\/|-)store\.ts$/.test(file) ||
  (file === "gateway/src/kernel/connections.ts" && /\/(?:sockets|ids)\.ts$/.test(to)) ||
  (file === "gateway/src/kernel/migrations.ts" && to.endsWith("/sql.ts"));

/** gsv-protocol <- gsv-link, gsv-tools <- gsv-node <- gsv, gsv-napi; gsv-sandbox <- gsv-tools. */
const RUST_MAY_USE: Readonly<Record<string, readonly string[]>> = {
  "gsv-protocol": [],
  "gsv-link": ["gsv-protocol"],
  "gsv-sandbox": [],
  "gsv-tools": ["gsv-protocol", "gsv-sandbox"],
  "gsv-node": ["gsv-protocol", "gsv-link", "gsv-sandbox", "gsv-tools"],
  "gsv-napi": ["gsv-protocol", "gsv-tools", "gsv-node"],
  gsv: ["gsv-protocol", "gsv-link", "gsv-sandbox", "gsv-tools", "gsv-node"],
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
        message: `${name} is missing in the order of crates. Add it in scripts/check/dependency-rules.ts.`,
      });
      continue;
    }
    for (const dependency of dependencies) {
      if (ours.has(dependency) && !allowed.includes(dependency))
        findings.push({ rule: "8", file, line: 1, message: `${name} must not depend on ${dependency}.` });
      if (dependency === "anyhow" && name !== "gsv")
        findings.push({ rule: "8", file, line: 1, message: "Crates define their errors (thiserror). Only the command line uses anyhow." });
    }
  }
  for (const [file, text] of sources) {
    if (!/^crates\/[a-z-]+\/src\/machine\/.*\.rs$/.test(file)) continue;
    const code = blank(text, { comments: true, strings: false });
    for (const [index, line] of code.split("\n").entries()) {
      if (/\btokio\b/.test(line)) findings.push({ rule: "8", file, line: index + 1, message: "The pure machine does not use tokio." });
      if (/\b(?:Instant|SystemTime)::now\b/.test(line))
        findings.push({ rule: "8", file, line: index + 1, message: "The pure machine does not read the clock. Time is an argument." });
    }
  }
  return findings;
}
