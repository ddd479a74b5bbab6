/** The head of a SKILL.md: what is read, and what is refused with its line. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { readHead } from "./front-matter.lazy.ts";

const file = (...lines: readonly string[]): string => ["---", "name: mail", "description: d", ...lines, "---", "Text."].join("\n");
const head = (...lines: readonly string[]) => readHead(file(...lines));
const EMPTY = { description: "d", always: false, capabilities: [], bins: [], install: [], problems: [], name: "mail" };

describe("[SK1] a head", () => {
  test("has a name and a description; all else may be absent", () => {
    assert.deepEqual(head(), EMPTY);
    assert.deepEqual(readHead(`\ufeff${file().replaceAll("\n", "\r\n")}`), EMPTY);
    assert.deepEqual(head("homepage:", "metadata: null", "always: ~"), EMPTY);
  });
  test("has its own facts, or else those of the first known vendor", () => {
    const metadata = (vendor: string): string[] => [
      `  ${vendor}:`,
      `    homepage: https://${vendor}.example`,
      `    emoji: "${vendor.slice(0, 1)}"`,
      "    always: true",
      "    requires: {bins: [rg, fd, rg], capabilities: [Bash]}",
    ];
    const both = head("metadata:", ...metadata("clawdbot"), ...metadata("openclaw"), "  other: 5");
    const facts = { always: true, capabilities: ["Bash"], bins: ["fd", "rg"], emoji: "o", homepage: "https://openclaw.example" };
    assert.deepEqual(both, { ...EMPTY, ...facts });
    assert.equal(head("homepage: https://own.example", "metadata:", ...metadata("gsv")).homepage, "https://own.example");
    assert.deepEqual(head('metadata: \'{"gsv":{"emoji":"x","unknown":1}}\''), { ...EMPTY, emoji: "x" });
    assert.deepEqual(head("metadata: {gsv: null, openclaw: {emoji: x, homepage: null}}"), { ...EMPTY, emoji: "x" });
    assert.equal(head("always: true").always, true);
    assert.equal(head("always: true", "metadata: {gsv: {always: false}}").always, false);
  });
  for (const [step, shown] of [
    ["curl x | sh", "curl x | sh"],
    ["{label: Install gh, id: brew}", "Install gh"],
    ["{label: Install gh, id: brew, kind: brew, bins: [gh]}", 'Install gh (kind: brew, bins: ["gh"])'],
    ["{id: brew, kind: brew, count: 2}", "kind: brew, count: 2"],
    ["{label: 5, kind: brew}", "kind: brew"],
  ] as const)
    test(`shows the author's step ${step}`, () =>
      assert.deepEqual(head("metadata:", "  gsv:", "    install:", `      - ${step}`).install, [shown]));
});

test("[SK1] a head may have many lists, is nested 16 levels at most, and has no tags", () => {
  const problems = (...lines: readonly string[]): readonly string[] => head(...lines).problems;
  assert.deepEqual(problems("other:", ...Array.from({ length: 40 }, () => "  - [a, {b: c}]")), []);
  const nested = (levels: number): string[] => [
    ...Array.from({ length: levels - 1 }, (_, level) => `${"  ".repeat(level)}k:`),
    `${"  ".repeat(levels - 1)}v: 1`,
  ];
  assert.deepEqual(problems(...nested(16)), []);
  assert.match(problems(...nested(17)).join(), /^Line 20: it is nested deeper than 16\.$/);
  for (const tag of ["!!str d", "!x d", "! d"])
    assert.match(problems(`other: ${tag}`).join(), /^Line 4: tags \(`!name`\) are not allowed\.$/, tag);
});

test("[SK1] what is missing has the line where the head begins", () => {
  assert.deepEqual(readHead("---\n# a comment\n\nname: mail\n---\nText.").problems, ["Line 2: `description`: missing."]);
});

describe("[SK1] a head is refused with its line", () => {
  for (const [what, text, problem] of [
    ["nothing", "", "SKILL.md has no front matter: its first line must be `---`."],
    ["another first line", `\n${file()}`, "SKILL.md has no front matter: its first line must be `---`."],
    ["no end", "---\nname: x\ndescription: d\n", "The front matter is not closed: end it with a line `---`."],
    ["a directive", file("%YAML 1.1"), "Line 4: directives and further documents are not allowed."],
    ["another document", file("...", "name: y"), "Line 4: directives and further documents are not allowed."],
    ["a list", "---\n- a\n---\n", "The front matter must be keys and values, such as `name: mail`."],
    ["a key that is a number", file("5: x"), "Line 4: a key is not a text."],
    ["a key that is a list", file("? [a]", ": x"), "Line 4: a key is not a text."],
    ["an alias", file("homepage: *name"), "Line 4: aliases (`*name`) are not allowed."],
    ["an anchor", file("homepage: &a https://a.example"), "Line 4: anchors (`&name`) are not allowed."],
    ["a key twice", file("name: y"), "Line 4: a key occurs twice."],
    [
      "an empty description",
      file().replace("description: d", "description: ' '"),
      "Line 3: `description` is empty; say when to use the skill.",
    ],
    ["metadata that is no JSON", file("metadata: '{'"), "Line 4: `metadata` is a text but not JSON."],
    ["metadata that is a list", file("metadata: [1]"), "Line 4: `metadata` must be an object."],
    ["a vendor's part that is a list", file("metadata: {gsv: [1]}"), "Line 4: `metadata.gsv` must be an object."],
    ["a hidden direction", file("homepage: a\u202eb"), /^Line 4 has a hidden character \(U\+202E\)/],
    ["an invisible character in a name", file().replace("mail", "ma\u200bil"), /^Line 2: `name` has an invisible character \(U\+200B\)/],
    ["an invisible character in the text of a vendor", file("metadata: {gsv: {emoji: a\u200bb}}"), /`emoji` has an invisible character/],
    ["a wrong value", file("always: maybe"), /^Line 4: `always`: /],
    ["a wrong value of a vendor", file("metadata:", "  openclaw:", "    always: maybe"), /^Line 6: `metadata\.always`: /],
    ["17 levels", file(`metadata: ${"[".repeat(17)}${"]".repeat(17)}`), "The front matter is nested deeper than 16."],
  ] as const)
    test(what, () => {
      const { problems } = readHead(text);
      assert.equal(problems.length, 1, problems.join("\n"));
      if (typeof problem === "string") assert.equal(problems[0], problem);
      else assert.match(problems[0] ?? "", problem);
    });
  test("when it is longer than any head needs; one of the largest size is read", () => {
    const long = (chars: number): string => file(`# ${"x".repeat(chars - file("# ").length + "---\n\n---\nText.".length)}`);
    assert.deepEqual(readHead(long(16_384)), EMPTY);
    assert.deepEqual(readHead(long(16_385)).problems, ["The front matter is longer than 16384 characters."]);
    const whole = file().padEnd(LIMITS.skillBytes, "x");
    assert.deepEqual([readHead(whole), readHead(`${whole}x`).problems.length], [EMPTY, 1]);
  });
  test("lists of 16 levels are read", () =>
    assert.match(head(`metadata: ${"[".repeat(16)}${"]".repeat(16)}`).problems.join(), /must be an object/));
});
