/** Scripts say how to use them instead of doing work that was not asked for. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { ROOT } from "./root.ts";

const run = (command: string, args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: "utf8", env: { ...process.env, GSV_BIN: "" } });
  return { status, stdout, stderr };
};

for (const [name, command, before] of [
  ["npm run check", process.execPath, ["scripts/check.ts"]],
  ["./scripts/sim", "./scripts/sim", []],
] as const) {
  test(`${name} --help prints only the usage`, () => {
    const { status, stdout, stderr } = run(command, [...before, "--help"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.ok(stdout.startsWith(`Usage: ${name}`), stdout);
  });
  test(`${name} with an unknown option does nothing and ends with 2`, () => {
    const { status, stdout, stderr } = run(command, [...before, "--bogus"]);
    assert.deepEqual([status, stdout], [2, ""]);
    assert.match(stderr, new RegExp(`--bogus[^]*Usage: ${name}`));
  });
}
