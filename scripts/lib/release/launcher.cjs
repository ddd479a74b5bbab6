#!/usr/bin/env node
/**
 * Starts the program of this machine's platform, which npm has installed beside this package, with the runtime of this package and npm's
 * workerd. Decides nothing else: arguments, input, output, signals and the exit status are the program's.
 */
"use strict";
const { spawn } = require("node:child_process");
const { createRequire } = require("node:module");
const { constants } = require("node:os");
const { dirname, join } = require("node:path");

const platform = `${process.platform}-${process.arch}`;

function fail(text, next) {
  process.stderr.write(`error: ${text}\n next: ${next}\n`);
  process.exit(1);
}

/** A file of a package that is found from another one. */
function find(from, name, file) {
  try {
    return join(dirname(createRequire(from).resolve(`${name}/package.json`)), file);
  } catch {
    return undefined;
  }
}

const program = find(__filename, `@gsv/cli-${platform}`, join("bin", "gsv"));
if (program === undefined)
  fail(
    `GSV has no program for this machine (${platform}), or npm left it out.`,
    "Install again without --omit=optional: `npm install -g gsv`. Other machines: build GSV from its sources.",
  );
const env = { ...process.env };
if (!env.GSV_RUNTIME_DIR) env.GSV_RUNTIME_DIR = join(dirname(__dirname), "runtime");
const workerd = find(__filename, "workerd", "package.json");
const cpu = process.arch === "x64" ? "64" : process.arch;
const runs = workerd && find(workerd, `@cloudflare/workerd-${process.platform}-${cpu}`, join("bin", "workerd"));
if (runs && !env.GSV_WORKERD) env.GSV_WORKERD = runs;

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", env });
// The terminal sends these to both; the program decides what they mean.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => undefined);
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`${program} does not start: ${error.message}.`, "Install again: `npm install -g gsv`."));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
