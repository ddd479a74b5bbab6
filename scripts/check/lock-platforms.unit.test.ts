import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LockFile, withAllPlatforms } from "./lock-platforms.ts";

const lock: LockFile = {
  lockfileVersion: 3,
  packages: {
    "": { version: "1.0.0" },
    "node_modules/@x/tool": {
      version: "2.0.0",
      dev: true,
      license: "MIT",
      optionalDependencies: {
        "@x/tool-darwin-arm64": "2.0.0",
        "@x/tool-linux-64": "2.0.0",
        "@x/tool-linux-x64-musl": "2.0.0",
        fsevents: "~2.3.3",
      },
    },
    "node_modules/@x/tool-linux-64": { version: "2.0.0", integrity: "sha512-x" },
  },
};

describe("platforms in the lock file", () => {
  it("are added, with the fields that npm checks", () => {
    const { lock: whole, added } = withAllPlatforms(lock);
    assert.deepEqual(added, ["@x/tool-darwin-arm64", "@x/tool-linux-x64-musl"]);
    assert.deepEqual(whole.packages["node_modules/@x/tool-darwin-arm64"], {
      version: "2.0.0",
      cpu: ["arm64"],
      dev: true,
      license: "MIT",
      optional: true,
      os: ["darwin"],
    });
    assert.deepEqual(whole.packages["node_modules/@x/tool-linux-x64-musl"]?.["libc"], ["musl"]);
    assert.deepEqual(whole.packages["node_modules/@x/tool-linux-64"], lock.packages["node_modules/@x/tool-linux-64"]);
  });

  it("a complete lock file is unchanged", () => {
    const { lock: whole } = withAllPlatforms(lock);
    assert.deepEqual(withAllPlatforms(whole), { lock: whole, added: [] });
  });
});
