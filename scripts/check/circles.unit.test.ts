import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { circleFindings, circlesOf, rustGraph, typescriptGraph } from "./circles.ts";

const ts = (files: Readonly<Record<string, string>>): string[][] => circlesOf(typescriptGraph(new Map(Object.entries(files))));
const rust = (files: Readonly<Record<string, string>>): string[][] => circlesOf(rustGraph(new Map(Object.entries(files))));

describe("circles of imports", () => {
  it("are found in TypeScript, through several files and by type imports", () => {
    const files = {
      "gateway/src/a.ts": 'import { b } from "./b.ts";',
      "gateway/src/b.ts": 'import type { C } from "./x/c.ts";\nimport "./leaf.ts";',
      "gateway/src/x/c.ts": 'export * from "../a.ts";',
      "gateway/src/leaf.ts": "",
    };
    assert.deepEqual(ts(files), [["gateway/src/a.ts", "gateway/src/b.ts", "gateway/src/x/c.ts"]]);
    assert.deepEqual(ts({ ...files, "gateway/src/x/c.ts": "// import '../a.ts'" }), []);
  });

  it("are found in Rust by `use crate::` and `use super::`, in groups too", () => {
    const files = {
      "cli/src/main.rs": "mod a;\nmod b;\nuse crate::a::A;",
      "cli/src/a/mod.rs": "mod deep;\nuse crate::{\n  b::{self, B as Other},\n  clean,\n};",
      "cli/src/b.rs": "use crate::a::deep::Deep;",
      "cli/src/a/deep.rs": "use super::A;",
      "cli/src/clean.rs": "",
    };
    assert.deepEqual(rust(files), [["cli/src/a/deep.rs", "cli/src/a/mod.rs", "cli/src/b.rs"]]);
    assert.deepEqual(
      rust({ ...files, "cli/src/a/deep.rs": "use crate::A;\n// use super::A;\n#[cfg(test)]\nmod tests { use super::super::A; }" }),
      [],
    );
  });

  it("a finding shows the way round", () => {
    const graph = typescriptGraph(
      new Map([
        ["channels/kit/src/a.ts", 'import "./b.ts";'],
        ["channels/kit/src/b.ts", 'import "./a.ts";'],
      ]),
    );
    assert.match(circleFindings(graph)[0]?.message ?? "", /2 files.* a\.ts -> b\.ts -> a\.ts/);
    assert.deepEqual(circleFindings(new Map()), []);
  });
});
