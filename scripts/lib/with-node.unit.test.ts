import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ROOT } from "./root.ts";
import { type RunResult, run } from "./run.ts";

/** A program that is called node, says that it is an old version, and can run nothing. */
const OLD_NODE = '#!/bin/sh\n[ "$1" = --version ] && { echo v20.20.2; exit 0; }\necho "Unknown file extension" >&2\nexit 1\n';
/** Stands for npm: "installs" the Node that runs this test. */
const fakeNpm = (node: string): string => `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --prefix ] && prefix=$2; last=$1; shift; done
folder="$prefix/node_modules/\${last%@*}/bin"
mkdir -p "$folder" && ln -s "${node}" "$folder/node" && echo installed >> "$prefix/installed"
`;

describe("scripts/with-node", () => {
  let root = "";
  before(() => {
    // A separate repository with an empty .tools.
    root = mkdtempSync(join(tmpdir(), "gsv with-node "));
    mkdirSync(join(root, "scripts"));
    mkdirSync(join(root, "bin"));
    for (const name of ["with-node", "lib.sh"]) symlinkSync(join(ROOT, "scripts", name), join(root, "scripts", name));
    for (const [name, text] of Object.entries({ node: OLD_NODE, npm: fakeNpm(process.execPath) })) {
      writeFileSync(join(root, "bin", name), text);
      chmodSync(join(root, "bin", name), 0o755);
    }
    writeFileSync(join(root, "scripts", "typed.ts"), "const words: string[] = process.argv.slice(2);\nconsole.log(words.join('+'));\n");
  });
  after(() => rmSync(root, { recursive: true }));

  const launch = (...args: string[]): Promise<RunResult> =>
    run("bash", [join(root, "scripts", "with-node"), ...args], { cwd: root, env: { PATH: `${join(root, "bin")}:/usr/bin:/bin` } });

  it("installs a Node that can load TypeScript when the machine's own is too old, and only once", async () => {
    for (const round of [1, 2]) {
      const { code, stdout, output } = await launch("scripts/typed.ts", "a b", `${round}`);
      assert.equal(code, 0, output);
      assert.equal(stdout, `a b+${round}\n`);
    }
    assert.equal(readFileSync(join(root, ".tools", "node", "installed"), "utf8"), "installed\n");
  });

  it("gives the script's exit status", async () => {
    writeFileSync(join(root, "scripts", "fails.ts"), "process.exitCode = 3;\n");
    assert.equal((await launch("scripts/fails.ts")).code, 3);
  });

  it("is what every script of package.json that runs TypeScript uses", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
    for (const [name, command] of Object.entries(scripts)) assert.match(command, /^\.\/scripts\//, name);
  });
});
