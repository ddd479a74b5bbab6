import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MIN_PIECE, splitText } from "./split-text.ts";

const bare = (text: string): string => text.replaceAll(/\s+/g, "");
/** Without the fence lines, which each part of a code block repeats. */
const content = (text: string): string =>
  bare(
    text
      .split("\n")
      .filter((line) => !/^ {0,3}(?:`{3,}|~{3,})[^`]*$/.test(line))
      .join("\n"),
  );
const fences = (text: string): number => text.split("\n").filter((line) => /^ {0,3}(?:`{3,}|~{3,})/.test(line)).length;

test("a text that fits is one piece", () => {
  assert.deepEqual(splitText("Hello.\n\nHow are you?", 2000), ["Hello.\n\nHow are you?"]);
  assert.deepEqual(splitText("  \n\n ", 2000), []);
  assert.deepEqual(splitText("", 2000), []);
});

test("borders are between paragraphs first", () => {
  const one = "a".repeat(50);
  const two = "b".repeat(50);
  const three = "c".repeat(20);
  assert.deepEqual(splitText(`${one}\n\n${two}\n\n${three}`, 100), [one, `${two}\n\n${three}`]);
});

test("text without any border fills whole pieces", () => {
  assert.deepEqual(splitText("x".repeat(200), 100), ["x".repeat(100), "x".repeat(100)]);
  assert.deepEqual(splitText("x".repeat(201), 100), ["x".repeat(100), "x".repeat(100), "x"]);
});

test("then between lines, sentences and words", () => {
  assert.deepEqual(splitText(`${"a".repeat(60)}\n${"b".repeat(60)}`, 64), ["a".repeat(60), "b".repeat(60)]);
  assert.deepEqual(splitText(`${"a ".repeat(25)}end. ${"b ".repeat(25)}end.`, 64), [`${"a ".repeat(25)}end.`, `${"b ".repeat(25)}end.`]);
  const words = splitText("word ".repeat(100), 64);
  assert.ok(words.every((piece) => /^(?:word ?)+$/.test(piece)));
  assert.equal(words.join(" "), "word ".repeat(100).trim());
});

test("a grapheme is never split", () => {
  const family = "👨‍👩‍👧‍👦";
  const pieces = splitText(family.repeat(40), 64);
  assert.ok(pieces.length > 1);
  for (const piece of pieces) assert.equal(piece.replaceAll(family, ""), "");
});

test("a grapheme that is as long as a piece is a piece of its own", () => {
  const letter = `e${"\u0301".repeat(MIN_PIECE - 1)}`;
  assert.deepEqual(splitText(`x${letter}y`, MIN_PIECE), ["x", letter, "y"]);
});
test("a block of code that fits stays whole", () => {
  const code = "```ts\nconst a = 1;\n\nconst b = 2;\n```";
  const pieces = splitText(`${"x ".repeat(40)}\n\n${code}\n\nafter`, 100);
  assert.ok(
    pieces.some((piece) => piece.includes(code)),
    JSON.stringify(pieces),
  );
});

test("a fence with an info string of 24 characters is repeated; a longer one is ordinary text", () => {
  const block = (info: string): string => `\`\`\`${info}\n${"a line of code\n".repeat(10)}\`\`\``;
  const [one, two] = ["x".repeat(24), "x".repeat(25)];
  for (const piece of splitText(block(one), 100)) assert.match(piece, /^```x{24}\n[^`]+\n```$/);
  const plain = splitText(block(two), 100);
  assert.ok(plain.length > 1);
  assert.equal(plain.filter((piece) => piece.includes("```x")).length, 1, JSON.stringify(plain));
});
test("a code block whose fences leave 16 characters of a piece is repeated; with less it is ordinary text", () => {
  const pieces = (closer: number): string[] => splitText(`\`\`\`${"x".repeat(24)}\n${"code\n".repeat(20)}${"`".repeat(closer)}`, MIN_PIECE);
  for (const piece of pieces(19)) assert.match(piece, /^```x{24}\n[^`]+\n`{19}$/);
  assert.equal(pieces(20).filter((piece) => piece.includes("```x")).length, 1);
});
test("[P7] the parts of a code block are as long as they can be", () => {
  const line = "0123456789";
  const pieces = splitText(`\`\`\`\n${`${line}\n`.repeat(12)}\`\`\``, MIN_PIECE);
  // Five lines and their fences have 62 characters.
  assert.deepEqual(
    pieces.map((piece) => piece.split("\n").length - 2),
    [5, 5, 2],
  );
});
test("[P7] lines that fill a piece exactly stay in it", () => {
  // Three lines of 18 characters, their line ends and the fences have 64 characters.
  const pieces = splitText(`\`\`\`\n${`${"x".repeat(18)}\n`.repeat(6)}\`\`\``, MIN_PIECE);
  assert.deepEqual(
    pieces.map((piece) => [piece.length, piece.split("\n").length - 2]),
    [
      [64, 3],
      [64, 3],
    ],
  );
});
test("a longer code block is cut between lines, each part a block of its own", () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index} of the code`);
  const pieces = splitText(`Before.\n\n\`\`\`sh\n${lines.join("\n")}\n\`\`\`\n\nAfter.`, 200);
  assert.ok(pieces.length > 3);
  for (const piece of pieces) assert.equal(fences(piece) % 2, 0, piece);
  for (const piece of pieces.slice(1, -1)) assert.match(piece, /^```sh\n/);
  const seen = pieces
    .join("\n")
    .split("\n")
    .filter((line) => line.startsWith("line "));
  assert.deepEqual(seen, lines);
});

test("[P7] a line of code that is longer than a piece is cut, and nothing of it is lost", () => {
  const long = Array.from({ length: 60 }, (_, index) => `word${index}`).join("-");
  const pieces = splitText(`\`\`\`sh\nfirst\n${long}\nlast\n\`\`\``, 100);
  assert.ok(pieces.length > 3 && pieces.every((piece) => piece.length <= 100));
  assert.equal(pieces.map((piece) => piece.replaceAll(/^```.*$/gm, "").replaceAll("\n", "")).join(""), `first${long}last`);
});
test("empty lines inside code survive", () => {
  const code = `\`\`\`\n${"a\n\n\nb\n".repeat(30)}\`\`\``;
  const pieces = splitText(code, 80);
  const joined = pieces.map((piece) => piece.replace(/^```\n/, "").replace(/\n```$/, "")).join("\n");
  assert.equal(joined, "a\n\n\nb\n".repeat(30).slice(0, -1));
});

test("a fence that is never closed is text", () => {
  const pieces = splitText(`\`\`\`\n${"word ".repeat(60)}`, 100);
  assert.ok(pieces.every((piece) => piece.length <= 100));
});

test("[P7] any text: pieces fit, none is blank, nothing is lost, fences stay closed", () => {
  const line = fc.oneof(
    fc.string({ maxLength: 120 }),
    fc.constantFrom("```", "```ts", "~~~", "", "# Heading", "- item", "a sentence. Another one! A third?"),
    fc.string({ unit: "grapheme", maxLength: 200 }),
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 40 }), fc.integer({ min: MIN_PIECE, max: 400 }), (lines, limit) => {
      const text = lines.join("\n").toWellFormed();
      const pieces = splitText(text, limit);
      for (const piece of pieces) {
        assert.ok(piece.length <= limit, `${piece.length} > ${limit}`);
        assert.notEqual(piece.trim(), "");
        assert.ok(piece.isWellFormed());
      }
      assert.equal(content(pieces.join("\n")), content(text.replaceAll(/\r\n?/g, "\n")));
    }),
    { numRuns: 2000 },
  );
});

test("refuses a limit that is too small", () => {
  assert.throws(() => splitText("hello", 3), RangeError);
  assert.throws(() => splitText("hello", Number.NaN), RangeError);
});
