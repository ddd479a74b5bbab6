/** The decision of `scripts/start` whether the running gateway must be restarted. The real function of the script, run by bash. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "./root.ts";

const isOlder = /^is_older\(\) \{.*?^\}/ms.exec(readFileSync(join(ROOT, "scripts/start"), "utf8"))?.[0] ?? "";

test("a gateway of the current build goes on, and one with any other script or module is restarted", () => {
  const folder = mkdtempSync(join(tmpdir(), "gsv-start-"));
  try {
    const [runtime, home] = [join(folder, "runtime"), join(folder, "home")];
    // Where `gsv up` copies them to: scripts beside the configuration, modules in a folder of their own, channels under their names.
    const copies: readonly (readonly [string, string])[] = [
      ["worker.js", "gateway/worker.js"],
      ["pdf.mjs", "gateway/modules/pdf.mjs"],
      ["photon.wasm", "gateway/modules/photon.wasm"],
      ["channels/example.js", "gateway/channel-example.js"],
    ];
    for (const made of [join(runtime, "channels"), join(home, "gateway/modules")]) mkdirSync(made, { recursive: true });
    for (const [from, to] of copies) {
      writeFileSync(join(runtime, from), from);
      writeFileSync(join(home, to), from);
    }
    writeFileSync(join(home, "gateway/config.capnp"), '(name = "channel-example.js")');
    const older = (): boolean => {
      const script = `set -euo pipefail\nhome=${home}\nGSV_RUNTIME_DIR=${runtime}\n${isOlder}\nif is_older; then echo older; else echo same; fi`;
      const { stdout, stderr, status } = spawnSync("bash", ["-c", script], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
      return stdout.trim() === "older";
    };
    assert.equal(older(), false);
    for (const [from] of copies) {
      writeFileSync(join(runtime, from), `${from} of another build`);
      assert.equal(older(), true, from);
      writeFileSync(join(runtime, from), from);
    }
    assert.equal(older(), false);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
