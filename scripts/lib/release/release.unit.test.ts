import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isSigned, KeyProblem, newKey, parseSecretKey, publicKey, secretKeyText, signature } from "./minisign.ts";
import { launcherPackage, runtimeFiles, shippedManifest } from "./packages.ts";
import { PLATFORMS } from "./platforms.ts";
import { cargoComponents, npmComponents } from "./sbom.ts";
import { header } from "./tarball.ts";

describe("[RE1] the parts of a release", () => {
  it("a key is read as it was written, and signs what its public key verifies", () => {
    const key = newKey();
    const again = parseSecretKey(secretKeyText(key));
    assert.deepEqual([again.id, again.seed], [key.id, key.seed]);
    const text = signature(again, Buffer.from("content"), "a comment");
    assert.ok(isSigned(publicKey(key), Buffer.from("content"), text));
    for (const [content, wrong] of [
      ["Content", text],
      ["content", text.replace("a comment", "another comment")],
      ["content", ""],
    ] as const)
      assert.ok(!isSigned(publicKey(key), Buffer.from(content), wrong));
    assert.ok(!isSigned(publicKey(newKey()), Buffer.from("content"), text));
    for (const bad of ["", "untrusted comment: x\nabc", secretKeyText(key).replace("RWQ", "RWR")])
      assert.throws(() => parseSecretKey(bad), KeyProblem);
  });

  it("a header has the name, the size and its sum where ustar says; a path that is too long is refused", () => {
    const long = `${"a".repeat(90)}/${"b".repeat(90)}`;
    const block = header(long, 5, true, 0);
    assert.equal(block.toString("latin1", 0, 90), "b".repeat(90));
    assert.equal(block.toString("latin1", 345, 435), "a".repeat(90));
    assert.equal(block.toString("latin1", 100, 107), "0000755");
    assert.equal(block.toString("latin1", 124, 135), "00000000005");
    assert.equal(block.toString("latin1", 257, 265), "ustar\u000000");
    let sum = 0;
    for (const [at, byte] of block.entries()) sum += at >= 148 && at < 156 ? 32 : byte;
    assert.equal(Number.parseInt(block.toString("latin1", 148, 154), 8), sum);
    assert.throws(() => header("c".repeat(101), 0, false, 0), /too long/);
  });

  it("nothing of the WhatsApp channel is shipped", () => {
    const manifest = { version: "1", modules: ["pdf.mjs"], channels: { whatsapp: {}, discord: {}, example: {} } };
    assert.deepEqual(Object.keys(shippedManifest(manifest).channels), ["discord", "example"]);
    assert.deepEqual(runtimeFiles(manifest), ["worker.js", "r2.js", "pdf.mjs", "channels/discord.js", "channels/example.js"]);
    assert.throws(() => shippedManifest({ ...manifest, channels: { discord: {} } }));
    assert.match(
      JSON.stringify(launcherPackage("1.0.0", "2.0.0", PLATFORMS.slice(0, 1))),
      /"workerd":"2\.0\.0".*"@gsv\/cli-linux-x64":"1\.0\.0"/,
    );
  });

  it("the bill of materials follows what is needed at run time, by Node's and cargo's rules", () => {
    const lock = {
      packages: {
        app: { dependencies: { a: "1" } },
        "node_modules/a": { version: "1.0.0", license: "MIT", dependencies: { b: "2" }, optionalDependencies: { gone: "1" } },
        "node_modules/a/node_modules/b": { version: "2.0.0", license: "MIT/Apache-2.0", integrity: "sha512-AAAA" },
        "node_modules/b": { version: "1.0.0" },
        "node_modules/dev": { version: "1.0.0" },
      },
    };
    const npm = npmComponents(lock, ["app"]);
    assert.deepEqual(
      npm.map(({ purl, licenses }) => [purl, licenses?.[0]?.expression]),
      [
        ["pkg:npm/a@1.0.0", "MIT"],
        ["pkg:npm/b@2.0.0", "MIT OR Apache-2.0"],
      ],
    );
    assert.deepEqual(npm[1]?.hashes, [{ alg: "SHA-512", content: "000000" }]);
    const crate = (
      name: string,
      source: string | null,
    ): { id: string; name: string; version: string; license: string; source: string | null } => ({
      id: name,
      name,
      version: "1.0.0",
      license: "MIT",
      source,
    });
    const needs = (pkg: string, kind: string | null): { pkg: string; dep_kinds: { kind: string | null }[] } => ({
      pkg,
      dep_kinds: [{ kind }],
    });
    const cargo = cargoComponents(
      {
        packages: [
          crate("gsv", null),
          crate("lib", null),
          crate("tokio", "registry"),
          crate("cc", "registry"),
          crate("proptest", "registry"),
        ],
        resolve: {
          nodes: [
            { id: "gsv", deps: [needs("lib", null), needs("proptest", "dev")] },
            { id: "lib", deps: [needs("tokio", null), needs("cc", "build")] },
          ],
        },
      },
      "gsv",
    );
    assert.deepEqual(
      cargo.map(({ name }) => name),
      ["cc", "tokio"],
    );
  });
});
