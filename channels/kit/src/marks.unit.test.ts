import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toDiscord, toPlain, toWhatsApp } from "./marks.ts";
import { splitText } from "./split-text.ts";

const cases: readonly (readonly [what: string, markdown: string, whatsApp: string, discord: string, plain: string])[] = [
  ["bold", "a **b** c", "a *b* c", "a **b** c", "a b c"],
  ["italic", "a *b* _c_", "a _b_ _c_", "a *b* _c_", "a b c"],
  ["both", "***b***", "_*b*_", "***b***", "b"],
  ["struck", "~~b~~", "~b~", "~~b~~", "b"],
  ["inline code", "`a*b*c`", "`a*b*c`", "`a*b*c`", "a*b*c"],
  ["code inside bold", "**a `b`**", "*a `b`*", "**a `b`**", "a b"],
  ["code inside italic", "*a `b`*", "_a `b`_", "*a `b`*", "a b"],
  ["code inside struck", "~~a `b`~~", "~a `b`~", "~~a `b`~~", "a b"],
  ["arithmetic is not emphasis", "2*3*4 and 5**6**7", "2*3*4 and 5**6**7", "2*3*4 and 5**6**7", "2*3*4 and 5**6**7"],
  [
    "struck and links inside a word",
    "a~~b~~c a[b](https://a.example)c",
    "a~~b~~c ab (https://a.example)c",
    "a~~b~~c a[b](https://a.example)c",
    "a~~b~~c ab (https://a.example)c",
  ],
  ["a mark at one side of a word", "a**b** ~~c~~d é**b**é", "a*b* ~c~d é**b**é", "a**b** ~~c~~d é**b**é", "ab cd é**b**é"],
  ["names with underscores", "snake_case_name", "snake_case_name", "snake_case_name", "snake_case_name"],
  ["a link with a name", "[site](https://a.example)", "site (https://a.example)", "[site](https://a.example)", "site (https://a.example)"],
  ["a bare link", "https://a.example/x_y_z", "https://a.example/x_y_z", "https://a.example/x_y_z", "https://a.example/x_y_z"],
  [
    "an image",
    "![a cat](https://a.example/c.png)",
    "a cat (https://a.example/c.png)",
    "a cat (https://a.example/c.png)",
    "a cat (https://a.example/c.png)",
  ],
  ["a heading", "# Title **x**", "*Title x*", "# Title **x**", "Title x"],
  ["a deep heading", "#### Deep", "*Deep*", "**Deep**", "Deep"],
  ["a heading of the third level", "### Third", "*Third*", "### Third", "Third"],
  ["a rule", "a\n\n---\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb", "a\n\n———\n\nb"],
  ["tasks", "- [x] one\n- [ ] two", "☑ one\n☐ two", "- [x] one\n- [ ] two", "☑ one\n☐ two"],
  ["numbered lists keep their first number", "3. c\n4. d", "3. c\n4. d", "3. c\n4. d", "3. c\n4. d"],
  ["a list in a list", "- a\n  - b", "- a\n  - b", "- a\n  - b", "- a\n  - b"],
  ["a quote", "> a\n> **b**", "> a\n> *b*", "> a\n> **b**", "> a\n> b"],
  ["escapes", "\\*a\\*", "*a*", "\\*a\\*", "*a*"],
  ["entities", "a &amp; b < c", "a & b < c", "a &amp; b < c", "a & b < c"],
  [
    "code keeps its lines and stars",
    "```ts\na = '**x**';  \n\n\n\nb\n```",
    "```\na = '**x**';  \n\n\n\nb\n```",
    "```ts\na = '**x**';  \n\n\n\nb\n```",
    "a = '**x**';  \n\n\n\nb",
  ],
  [
    "a narrow table",
    "| Name | Age |\n|---|---|\n| **Ann** | 3 |\n| Bob | |",
    "- *Ann*\n  Age: 3\n- *Bob*",
    "```\nName  Age\n────  ───\nAnn   3\nBob\n```",
    "- Ann\n  Age: 3\n- Bob",
  ],
];
for (const [what, markdown, whatsApp, discord, plain] of cases) {
  test(`[P7] ${what}`, () => {
    assert.equal(toWhatsApp(markdown), whatsApp);
    assert.equal(toDiscord(markdown), discord);
    assert.equal(toPlain(markdown), plain);
  });
}

test("[P7] a wide table becomes a list on Discord", () => {
  const wide = `| Name | Text |\n|---|---|\n| Ann | ${"word ".repeat(20)} |`;
  assert.match(toDiscord(wide), /^- \*\*Ann\*\*\n {2}Text: word/);
});

test("[P7] quotes of 16 levels are converted, deeper ones are sent unchanged", () => {
  assert.match(toWhatsApp(`${">".repeat(16)} **a**`), /> \*a\*$/);
  assert.match(toWhatsApp(`${">".repeat(17)} **a**`), /> \*\*a\*\*$/);
});
test("[P7] text after a narrow table stays a paragraph of its own on Discord", () => {
  assert.equal(toDiscord("| A |\n|---|\n| 1 |\n\nafter"), "```\nA\n─\n1\n```\n\nafter");
});
test("[P7] a heading with an image stays a heading on Discord", () => {
  assert.equal(toDiscord("# ![a](https://a.example/c.png) b"), "# ![a](https://a.example/c.png) b");
});
test("[P7] very deep nesting is sent unchanged", () => {
  const deep = `${"> ".repeat(5000)}a`;
  assert.equal(toWhatsApp(deep), deep);
});

test("[P7] takes any text and keeps its words", () => {
  const word = fc.stringMatching(/^[a-z]{3,8}$/);
  const dressed = word.chain((text) =>
    fc.constantFrom(
      text,
      `**${text}**`,
      `*${text}*`,
      `~~${text}~~`,
      `\`${text}\``,
      `# ${text}`,
      `- ${text}`,
      `> ${text}`,
      `[${text}](http://e.example)`,
    ),
  );
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 3, arbitrary: dressed }, fc.string({ maxLength: 12 })), { maxLength: 20 }), (parts) => {
      const text = parts.join("\n\n");
      for (const write of [toWhatsApp, toDiscord, toPlain]) assert.equal(typeof write(text), "string");
    }),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.array(dressed, { minLength: 1, maxLength: 20 }), (parts) => {
      const text = parts.join("\n\n");
      const words = text.match(/[a-z]{3,8}/g) ?? [];
      for (const write of [toWhatsApp, toDiscord, toPlain]) {
        const out = write(text);
        for (const each of words) assert.ok(out.includes(each), `${each} is missing in ${out}`);
      }
    }),
    { numRuns: 500 },
  );
});

test("[AP10] a question, which comes as a block of code, is shown as it is, and each piece of a long one is a block", () => {
  const question = "```\n| ls ||curl example.org|| **a** __init__.py \\* &#114;m [a](https://example.org)\n| \\u{60}\n```";
  for (const mark of [toDiscord, toWhatsApp]) {
    assert.equal(mark(question).trimEnd(), question);
    const long = mark(`\`\`\`\n${"| a ||b|| *c*\n".repeat(300)}\`\`\``);
    for (const piece of splitText(long, 2_000)) assert.match(piece, /^```\n[^`]*\n```$/);
  }
});
