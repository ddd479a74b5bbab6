/**
 * Everything that can be judged without running the program: layout, lint, types, generated files, dependencies, rules, language.
 *
 *   npm run check [-- --fix] [-- --rust] [-- --json FILE]
 *
 * Each finding comes with advice, often a command. `--fix` runs the commands that need no judgement, `--rust` adds clippy.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { NOT_SERVED_PATHS } from "../protocol/gen/config.ts";
import { ERRORS } from "../protocol/gen/errors.ts";
import type { TypeName } from "../protocol/gen/explain-table.ts";
import { METHODS } from "../protocol/gen/methods.ts";
import { resolveCell } from "../protocol/runtime/cells.ts";
import { adviceFindings } from "./check/advice.ts";
import { circleFindings, type Graph, rustGraph, typescriptGraph } from "./check/circles.ts";
import {
  type Finding,
  packWordFindings,
  type RustPackage,
  rustFindings,
  type Sources,
  typescriptFindings,
} from "./check/dependency-rules.ts";
import { languageFindings } from "./check/language.ts";
import { type LockFile, withAllPlatforms } from "./check/lock-platforms.ts";
import { nextStepFindings } from "./check/next-steps.ts";
import { privateNameFindings } from "./check/private-names.ts";
import { documentFindings, pageFindings, ruleFindings } from "./check/rule-ids.ts";
import { lineOfField, settingFindings, settingsOf } from "./check/settings.ts";
import { startLanguageServer } from "./lib/language-server.ts";
import { ROOT } from "./lib/root.ts";
import { run } from "./lib/run.ts";

const USAGE = `Usage: npm run check [-- --fix] [-- --rust] [-- --json FILE]

  --fix        run the fixes that need no judgement first
  --rust       add clippy
  --json FILE  write the names of the failed checks to a file`;
function readOptions(): { readonly fix?: boolean; readonly rust?: boolean; readonly json?: string } {
  try {
    const { values } = parseArgs({
      options: { fix: { type: "boolean" }, rust: { type: "boolean" }, json: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help !== true) return values;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    process.exit(2);
  }
}
const options = readOptions();

interface Check {
  readonly name: string;
  /** What to do when it fails. */
  readonly advice: string;
  /** Null when nothing is wrong, else the findings. */
  readonly look: () => Promise<string | null>;
  readonly fix?: () => Promise<unknown>;
}

const LOCK = join(ROOT, "package-lock.json");
const readLock = (): LockFile => JSON.parse(readFileSync(LOCK, "utf8")) as LockFile;
const bin = (name: string): string => join(ROOT, "node_modules", ".bin", name);
const program = async (command: string, args: readonly string[]): Promise<string | null> => {
  const result = await run(command, args, { cwd: ROOT, env: { NO_COLOR: "1" } });
  return result.code === 0 ? null : result.output.trim() || `${command} ended with ${result.code}`;
};
const shown = (findings: readonly Finding[]): string | null =>
  findings.length === 0 ? null : findings.map(({ file, line, rule, message }) => `${file}:${line} [${rule}] ${message}`).join("\n");

let texts: Promise<Sources> | undefined;
/** The files that git knows or would know, as text. Read once for all checks, and again for each fix. */
const sources = (): Promise<Sources> => (texts ??= readSources());
async function readSources(): Promise<Sources> {
  const { stdout } = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
  const files = stdout.split("\0").filter((file) => file !== "" && existsSync(join(ROOT, file)));
  return new Map(files.map((file) => [file, readFileSync(join(ROOT, file), "utf8")] as const).filter(([, text]) => !text.includes("\0")));
}

async function graph(): Promise<Graph> {
  const files = await sources();
  return new Map([...typescriptGraph(files), ...rustGraph(files)]);
}

/** Who reads which setting, by the type checker's own references. */
async function unreadSettings(): Promise<Finding[]> {
  const types = join(ROOT, "protocol", "gen", "types.ts");
  const text = readFileSync(types, "utf8");
  const settings = settingsOf("GsvConfig", (type) => resolveCell(["ref", type as TypeName]));
  const server = await startLanguageServer(ROOT, bin("tsc"));
  try {
    // The gateway's project is loaded with one of its files.
    server.open(join(ROOT, "gateway", "src", "app", "worker.ts"));
    server.open(types);
    const files = new Map<string, readonly string[]>();
    for (const setting of settings) {
      const line = lineOfField(text, setting);
      const places = line === undefined ? [] : await server.references({ file: types, line, character: 2 });
      files.set(
        setting.path,
        places.map(({ file }) => relative(ROOT, file).replaceAll("\\", "/")),
      );
    }
    return settingFindings(settings, NOT_SERVED_PATHS, ({ path }) => files.get(path) ?? []);
  } finally {
    server.stop();
  }
}

const CONTRACT = { root: ["ref", "GsvConfig"], otherNames: new Set([...Object.keys(METHODS), ...Object.keys(ERRORS)]) } as const;

async function rustPackages(): Promise<RustPackage[]> {
  const { code, stdout, output } = await run("cargo", ["metadata", "--format-version=1", "--no-deps", "--offline"], { cwd: ROOT });
  if (code !== 0) throw new Error(output);
  const metadata = JSON.parse(stdout) as { packages: { name: string; dependencies: { name: string; kind: string | null }[] }[] };
  return metadata.packages.map(({ name, dependencies }) => ({
    name,
    dependencies: dependencies.filter(({ kind }) => kind !== "dev").map((dependency) => dependency.name),
  }));
}

const PROJECTS = [
  "protocol",
  "gateway",
  "gateway/tsconfig.test.json",
  "gateway/embedded",
  "channels",
  "channels/tsconfig.test.json",
  "crates/gsv-napi",
  "scripts",
  "test",
];
const typeCheck = (project: string): Check => ({
  name: `types of ${project}`,
  advice: `npx tsc -p ${project}   # and fix what it names`,
  look: () => program(bin("tsc"), ["--noEmit", "-p", project]),
});

const checks: Check[] = [
  {
    name: "layout and lint (TypeScript)",
    advice: "npx biome check --write .",
    look: () => program(bin("biome"), ["check", "--max-diagnostics=50", "."]),
    fix: () => run(bin("biome"), ["check", "--write", "."], { cwd: ROOT, inherit: true }),
  },
  {
    name: "layout (Rust)",
    advice: "cargo fmt --all",
    look: () => program("cargo", ["fmt", "--all", "--check"]),
    fix: () => run("cargo", ["fmt", "--all"], { cwd: ROOT, inherit: true }),
  },
  {
    name: "generated files",
    advice: "npm run codegen",
    look: () => program(process.execPath, [join(ROOT, "scripts", "codegen", "main.ts"), "--check"]),
    fix: () => run(process.execPath, [join(ROOT, "scripts", "codegen", "main.ts")], { cwd: ROOT, inherit: true }),
  },
  {
    name: "who imports whom (TypeScript)",
    advice: "move the code, or pass what it needs as an argument (README.md, rules of dependency)",
    look: async () => {
      const files = await sources();
      return shown([...typescriptFindings(files), ...packWordFindings(files)]);
    },
  },
  {
    name: "who imports whom (Rust)",
    advice: "move the code, or pass what it needs as an argument (README.md, rules of dependency)",
    look: async () => shown(rustFindings(await rustPackages(), await sources())),
  },
  {
    name: "circles of imports",
    advice: "move what both need into a file of its own",
    look: async () => shown(circleFindings(await graph())),
  },
  {
    name: "every platform in the lock file",
    advice: "npm run check -- --fix",
    look: async () => {
      const { added } = withAllPlatforms(readLock());
      return added.length === 0 ? null : `package-lock.json does not name ${added.join(", ")}; npm ci would refuse it.`;
    },
    fix: async () => writeFileSync(LOCK, `${JSON.stringify(withAllPlatforms(readLock()).lock, null, 2)}\n`),
  },
  {
    name: "rules and their tests",
    advice: "write the rule or the test, or mark the rule (planned) (docs/promises.md, gateway/SPEC.md, protocol/SPEC.md)",
    look: async () => {
      const files = await sources();
      return shown([...ruleFindings(files), ...pageFindings(files)]);
    },
  },
  {
    name: "settings and their readers",
    advice: "read the setting, or list it as not served (protocol/src/config.ts)",
    look: async () => shown(await unreadSettings()),
  },
  {
    name: "settings that texts name",
    advice: "name a setting of protocol/src/config.ts, or the command that does it",
    look: async () => shown(adviceFindings(await sources(), CONTRACT)),
  },
  {
    name: "documents that are mentioned",
    advice: "name a document of this repository, or say it in the text",
    look: async () => shown(documentFindings(await sources(), (path) => existsSync(join(ROOT, path)))),
  },
  {
    name: "language",
    advice: "say it in plain words (docs/glossary.md)",
    look: async () => shown(languageFindings(await sources())),
  },
  {
    name: "next steps in messages of errors",
    advice: "give the next step as the error's hint (gateway/src/ports/result.ts)",
    look: async () => shown(nextStepFindings(await sources())),
  },
  {
    name: "names of machines and accounts",
    advice: "write a relative or made-up path instead",
    look: async () => shown(privateNameFindings(await sources())),
  },
  ...PROJECTS.filter((project) => existsSync(join(ROOT, project.endsWith(".json") ? project : `${project}/tsconfig.json`))).map(typeCheck),
];
if (options.rust === true) {
  checks.push({
    name: "lint (Rust)",
    advice: "fix what clippy names: cargo clippy --workspace --all-targets",
    look: () => program("cargo", ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"]),
  });
}

if (options.fix === true)
  for (const { fix } of checks) {
    texts = undefined;
    await fix?.();
  }
texts = undefined;

const results = await Promise.all(
  checks.map(async (check) => {
    let problem: string | null;
    try {
      problem = await check.look();
    } catch (error) {
      problem = String(error);
    }
    return { ...check, problem };
  }),
);
for (const { name, problem, advice } of results) {
  console.log(`${problem === null ? "ok  " : "FAIL"} ${name}`);
  if (problem !== null) console.log(`${problem.replaceAll(/^/gm, "     ")}\n  -> ${advice}\n`);
}
const failed = results.filter(({ problem }) => problem !== null);
if (options.json !== undefined)
  writeFileSync(options.json, JSON.stringify({ passed: results.length - failed.length, failed: failed.map(({ name }) => name) }));
if (failed.length > 0) process.exitCode = 1;
