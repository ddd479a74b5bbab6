import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hideValues, spellingsOf, unfinishedAt } from "../../../../protocol/runtime/secret-shapes.ts";
import { LiveOutput } from "./live-output.ts";

const SECRET = 'canary "of a provider"/1';
const TOKEN = `gsv_admin_abcdefghij_${"5e".repeat(32)}`;
const values = spellingsOf([SECRET]);
const output = (): LiveOutput =>
  new LiveOutput({ scrub: (text) => hideValues(text, values), unfinished: (text) => unfinishedAt(text, values) });
/** All that is shown of these pieces, piece by piece. */
const shown = (pieces: readonly string[]): string[] => {
  const live = output();
  return [...pieces.map((piece) => live.next("c", piece)), live.end("c")];
};

describe("[S5] live output that comes in parts", () => {
  for (const [what, secret] of [
    ["a stored secret", SECRET],
    ["one in base64", Buffer.from(SECRET).toString("base64")],
    ["one in hexadecimal", Buffer.from(SECRET).toString("hex")],
    ["one in an address", encodeURIComponent(SECRET)],
    ["one in JSON", JSON.stringify(SECRET)],
    ["a token", TOKEN],
  ] as const)
    test(`hides ${what}, wherever it is cut`, () => {
      for (let cut = 0; cut <= secret.length; cut++) {
        const texts = shown([`before ${secret.slice(0, cut)}`, `${secret.slice(cut)} after`]);
        assert.ok(texts[0]?.startsWith("before"), "the text before the secret is shown at once");
        const all = texts.join("");
        assert.ok(all.includes("[redacted]") && all.endsWith(" after"), all);
        for (const value of [secret, secret.slice(4, -4)]) assert.ok(!all.includes(value), `${cut}: ${all}`);
      }
    });

  test("hides a secret that comes a character at a time", () => {
    assert.equal(shown([...`a ${SECRET} b ${TOKEN} c`]).join(""), "a [redacted] b [redacted] c");
  });

  test("shows all other text, the last characters at the end of the call", () => {
    const texts = ["canary birds sin", "g", ", and a gs", "v file: gsv_node x g"];
    assert.equal(shown(texts).join(""), texts.join(""));
    assert.deepEqual(shown(["no secret here.\n"]), ["no secret here.\n", ""]);
  });

  test("keeps the calls apart, and forgets the oldest of very many", () => {
    const live = output();
    for (let call = 0; call < 300; call++) assert.equal(live.next(`c${call}`, "x canary"), "x ");
    assert.equal(live.end("c0"), "");
    assert.equal(live.end("c299"), "canary");
    assert.equal(live.end("c299"), "");
  });
});
