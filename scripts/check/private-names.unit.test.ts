import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { privateNameFindings } from "./private-names.ts";

const count = (text: string, file = "a.ts"): number => privateNameFindings(new Map([[file, text]])).length;

describe("names of machines and accounts", () => {
  it("are found", () => {
    for (const text of [
      "cd /root/x",
      '"/mnt/build/x"',
      "see /home/jane/gsv/x",
      "/Users/jane/gsv",
      `${"sk-ant-"}api03-aaaaaaaaaaaaaaaaaaaaaaaa`,
    ])
      assert.equal(count(text), 1, text);
    assert.equal(count('      "resolved": "https://npm.internal/x.tgz",', "package-lock.json"), 1);
  });

  it("ordinary words pass", () => {
    for (const text of ["https://x.dev/root/y", "src/work/a", "/home/user/x", "/tmp/x", "$HOME/root/", "{root}/work/x", "sk-ant-..."])
      assert.equal(count(text), 0, text);
    assert.equal(count('      "resolved": "gateway",', "package-lock.json"), 0);
  });
});
