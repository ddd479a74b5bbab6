/** `npm run pack -- new NAME` in a copy of the folder of packs: what it makes has the right types, imports and words, and a test that passes. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { packWordFindings, typescriptFindings } from "../check/dependency-rules.ts";
import { languageFindings } from "../check/language.ts";
import { isPackName, withPack } from "./new-pack.ts";
import { ROOT } from "./root.ts";

describe("[PK1] npm run pack -- new", () => {
  const root = mkdtempSync(join(tmpdir(), "gsv-pack-"));
  const packs = join(root, "gateway", "packs");
  const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  const make = (name: string) => node(join(ROOT, "scripts", "pack.ts"), "new", name, root);
  before(() => {
    mkdirSync(join(root, "gateway"));
    for (const link of ["protocol", "node_modules", join("gateway", "src")]) symlinkSync(join(ROOT, link), join(root, link));
    for (const file of ["package.json", "biome.json", ".gitignore", join("gateway", "package.json")])
      cpSync(join(ROOT, file), join(root, file));
    cpSync(join(ROOT, "gateway", "packs"), packs, { recursive: true });
    const tsconfig = JSON.parse(readFileSync(join(ROOT, "gateway", "tsconfig.json"), "utf8").replaceAll(/^\s*\/\/.*$/gm, "")) as object;
    writeFileSync(
      join(root, "gateway", "tsconfig.json"),
      JSON.stringify({ ...tsconfig, include: ["packs"], exclude: ["packs/**/*.unit.test.ts"] }),
    );
    const made = make("clinic");
    assert.equal(made.status, 0, made.stderr);
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  it("makes a pack whose test passes and whose types, layout, imports and words are right", () => {
    const test = node("--test", join(packs, "clinic", "clinic.unit.test.ts"));
    assert.equal(test.status, 0, test.stdout);
    const types = node(join(ROOT, "node_modules", "typescript", "bin", "tsc"), "--noEmit", "-p", "gateway");
    assert.equal(types.status, 0, types.stdout);
    const layout = spawnSync(join(ROOT, "node_modules", ".bin", "biome"), ["check", "gateway/packs/clinic", "gateway/packs/index.ts"], {
      cwd: root,
      encoding: "utf8",
    });
    assert.equal(layout.status, 0, layout.stdout + layout.stderr);
    const sources = new Map(
      readdirSync(packs, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .map((file) => [file.slice(root.length + 1), readFileSync(file, "utf8")]),
    );
    assert.ok(sources.has("gateway/packs/clinic/gen/agents.ts"));
    assert.deepEqual([...typescriptFindings(sources), ...packWordFindings(sources), ...languageFindings(sources)], []);
    assert.match(sources.get("gateway/packs/index.ts") ?? "", /packList\(\[commerce, success, clinic\]\)/);
  });
  it("overwrites nothing and takes plain names alone", () => {
    for (const name of ["clinic", "commerce", "", "A", "a-b", "../x"]) assert.equal(make(name).status, 2, name);
    assert.equal(node(join(ROOT, "scripts", "pack.ts")).status, 2);
    assert.deepEqual(["clinic", "c2"].map(isPackName), [true, true]);
    assert.equal(withPack("packList([]);\n", "a"), 'import { a } from "./a/index.ts";\npackList([a]);\n');
  });
});
