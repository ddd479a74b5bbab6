/** Scripts say how to use them instead of doing work that was not asked for. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
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

test("./scripts/bench says how to use it, and measures nothing for an argument that it does not know", () => {
  const help = run("./scripts/bench", ["--help"]);
  assert.equal(help.status, 0);
  assert.match(help.stdout, /--against CHECKOUT {2}compare/);
  for (const args of [["--bogus"], ["--json"]]) {
    const { status, stdout, stderr } = run("./scripts/bench", args);
    assert.deepEqual([status, stdout], [2, ""]);
    assert.match(stderr, /--quick/);
  }
});
test("./scripts/bench --against needs a checkout with a built version, and says how to build it", () => {
  for (const args of [["--against"], ["--against", tmpdir()], ["--quick", "--against", "/nonexistent"]]) {
    const { status, stdout, stderr } = run("./scripts/bench", args);
    assert.deepEqual([status, stdout], [2, ""]);
    assert.match(stderr, /has no built version: run \.\/scripts\/bench --quick in it once\./);
  }
});
