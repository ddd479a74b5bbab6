/**
 * Builds the package into dist/: the addon of this platform, the JavaScript and its types.
 *
 *   node build.ts [--release] [--check]
 *
 * The types of the addon (js/gen/native.d.ts) come from its Rust code, and are committed. `--check` fails when they have changed,
 * and without `--release` builds all Rust code, as the tests do.
 * Cargo decides what is out of date.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { nativeTypes } from "./native-types.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "../..");
const DIST = join(HERE, "dist");
const TYPES = join(HERE, "js", "gen", "native.d.ts");

const { values } = parseArgs({ options: { release: { type: "boolean", default: false }, check: { type: "boolean", default: false } } });

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): void {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env } });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed${error === undefined ? "" : `: ${error.message}`}`);
}

const target = process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");
const definitions = join(target, "napi-types");
mkdirSync(definitions, { recursive: true });
const found = readdirSync(definitions).length > 0;
/** One package alone chooses fewer features of the dependencies, and compiles most of them again beside those of the tests. */
const what = values.check && !values.release ? ["--workspace", "--all-targets"] : ["--package", "gsv-napi"];
run("cargo", ["build", "--locked", ...what, ...(values.release ? ["--release"] : [])], {
  // The addon's macros write its types there while it is compiled. A build that finds them may reuse what it has.
  NAPI_TYPE_DEF_TMP_FOLDER: definitions,
  ...(found ? {} : { NAPI_FORCE_BUILD_GSV_NAPI: "types" }),
});

const text = nativeTypes(readdirSync(definitions).map((name) => readFileSync(join(definitions, name), "utf8")));
if (values.check) {
  if (!existsSync(TYPES) || readFileSync(TYPES, "utf8") !== text)
    throw new Error("js/gen/native.d.ts has drifted from the Rust code. Run: npm run build --workspace @gsv/node");
} else writeFileSync(TYPES, text);

rmSync(DIST, { recursive: true, force: true });
mkdirSync(join(DIST, "gen"), { recursive: true });
run(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", join(HERE, "tsconfig.build.json")]);
copyFileSync(TYPES, join(DIST, "gen", "native.d.ts"));
const { platformName } = (await import("./js/load.ts")) as { platformName: () => string };
const library = join(target, values.release ? "release" : "debug", `libgsv_napi.${process.platform === "darwin" ? "dylib" : "so"}`);
const addon = join(DIST, `gsv-node.${platformName()}.node`);
// A new file: a program that has loaded the old one keeps it.
copyFileSync(library, `${addon}.new`);
renameSync(`${addon}.new`, addon);
