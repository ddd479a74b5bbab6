/**
 * The simulator finds each of the deliberate mistakes of mutants.ts, and nothing in the program as it is. A run of all tests tries a part of
 * them, so that a simulator that finds nothing is noticed; with GSV_SIM_FACTOR of 1 or more (lane sim-long) it tries all.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { MUTANTS, type Mutant } from "./mutants.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const scratch = mkdtempSync(join(tmpdir(), "gsv-mutants-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** A copy of what the simulator needs, with one change. */
function copy(name: string, mutant: Mutant): string {
  const home = join(scratch, name);
  mkdirSync(join(home, "gateway"), { recursive: true });
  for (const path of [
    "protocol/gen",
    "protocol/runtime",
    "gateway/src",
    "gateway/test/sim",
    "gateway/test/support/tool-entries.ts",
    "test/seeded.ts",
  ])
    cpSync(join(root, path), join(home, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(home, "node_modules"));
  writeFileSync(join(home, "package.json"), '{ "type": "module" }');
  const file = join(home, "gateway", mutant.file);
  const parts = readFileSync(file, "utf8").split(mutant.find);
  assert.equal(parts.length, 2, `${mutant.file} has the text of "${mutant.name}" ${parts.length - 1} times`);
  writeFileSync(file, parts.join(mutant.put));
  return home;
}
interface Verdict {
  readonly ok: boolean;
  readonly error?: string;
}
const HUNT_MS = 1_200_000;
/** Runs until a promise is broken. A hunt that reaches its time limit proves nothing, so it fails. */
function hunt(home: string, { first = "kept" }: Mutant, share = 1): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const program = join(home, "gateway", "test", "sim", "hunt.ts");
    execFile(process.execPath, [program, first, String(share)], { timeout: HUNT_MS, maxBuffer: 1 << 24 }, (error, stdout, stderr) => {
      const last = stdout.trim().split("\n").at(-1) ?? "";
      if (last.startsWith("{")) resolve(JSON.parse(last) as Verdict);
      else if (error?.killed === true) reject(new Error(`the hunt did not end within ${HUNT_MS / 1000} s`));
      else reject(new Error(`the hunt itself broke: ${stderr.slice(0, 2_000)}`));
    });
  });
}

const NO_CHANGE: Mutant = {
  name: "nothing is changed",
  file: "src/session/apply.ts",
  find: "if (earlier) return",
  put: "if (earlier !== undefined) return",
};

/** Of a short run: each ninth mistake, so that all parts of the machine are among them. */
const STEP = process.env["GSV_SIM_FACTOR"] === undefined || Number(process.env["GSV_SIM_FACTOR"]) < 1 ? 9 : 1;

describe("deliberate mistakes", { concurrency: 2 }, () => {
  // The copy itself breaks no promise. session.sim.test.ts tries these seeds, and more, with the program as it is.
  test("[F81] a change that does nothing is not found, with a part of the seeds", async () => {
    assert.deepEqual((await hunt(copy("none", NO_CHANGE), NO_CHANGE, STEP === 1 ? 0.1 : 0.01)).error, undefined);
  });
  for (const [index, mutant] of MUTANTS.entries()) {
    if (index % STEP !== 0) continue;
    test(`found: ${mutant.name}`, async (t) => {
      const verdict = await hunt(copy(`m${index}`, mutant), mutant);
      t.diagnostic(verdict.error?.replaceAll("\n", " ").slice(0, 200) ?? "nothing was found");
      assert.equal(verdict.ok, false, "the mistake was not found");
    });
  }
});
