import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { searchable } from "../../storage/searchable.ts";
import {
  dayOfName,
  dayWords,
  isMemory,
  linePieces,
  MARK_BEGIN as B,
  MARK_END as E,
  linesBefore,
  pieces,
  segment,
  snippetOf,
  unmarked,
  withoutMarks,
} from "./text.ts";

const same = (text: string): string => text;

describe("[SE2] places", () => {
  test("a text is split between lines, then between words, without loss", () => {
    assert.deepEqual(pieces("one\ntwo\nthree\n", 8), [
      { text: "one\ntwo\n", line: 1 },
      { text: "three\n", line: 3 },
    ]);
    // A line is a better border than a word, and what fits to its last character is one piece.
    assert.deepEqual(
      pieces("one\ntwo three", 10).map(({ text }) => text),
      ["one\n", "two three"],
    );
    assert.deepEqual(
      pieces("one two", 7).map(({ text }) => text),
      ["one two"],
    );
    for (const most of [8, 10])
      assert.deepEqual(
        pieces("aaa bbb ccc", most).map(({ text }) => text),
        ["aaa bbb ", "ccc"],
      );
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "b", " ", "\n", "😀", "word "), { maxLength: 200 }),
        fc.integer({ min: 2, max: 30 }),
        (parts, max) => {
          const text = `x${parts.join("")}`;
          const found = pieces(text, max);
          for (const piece of found) {
            assert.ok(piece.text.length <= max && piece.text.isWellFormed());
            assert.equal(text.split("\n")[piece.line - 1] === undefined, false);
          }
          const words = (from: string): string => from.replace(/[^a-z]/g, "");
          assert.equal(words(found.map((piece) => piece.text).join("")), words(text));
        },
      ),
    );
  });
  test("a piece without a letter or digit is dropped", () => assert.deepEqual(pieces("--- \n***", 100), []));
});

describe("[SE2] borders of pieces", () => {
  const texts = (text: string, most: number): string[] => pieces(text, most).map((piece) => piece.text);
  for (const [text, most, split] of [
    ["aaaa", 4, ["aaaa"]],
    ["aaaab", 4, ["aaaa", "b"]],
    ["aa\nbbbb", 4, ["aa\n", "bbbb"]],
    ["aaa\nb", 4, ["aaa\n", "b"]],
    ["\naaaab", 4, ["\naaa", "ab"]],
    ["aa bbbb", 4, ["aa ", "bbbb"]],
    [" aaaab", 4, [" aaa", "ab"]],
    ["a bb\nc dd", 6, ["a bb\n", "c dd"]],
    ["aaa😀b", 4, ["aaa", "😀b"]],
  ] as const)
    test(JSON.stringify([text, most]), () => assert.deepEqual(texts(text, most), split));
  test("lines of a memory are texts of their own, each with its number", () => {
    assert.deepEqual(linePieces("one\n---\naaa bbb", 4), [
      { text: "one", line: 1 },
      { text: "aaa ", line: 3 },
      { text: "bbb", line: 3 },
    ]);
    assert.deepEqual(["MEMORY.md", "memory/2026-03-09.md", "memory", "notes/MEMORY.md", "memory.md"].map(isMemory), [
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("[SE4] days", () => {
  test("a time has the words of its day; no time has none", () => {
    assert.equal(dayWords(Date.UTC(2026, 2, 9, 23, 59)), "2026-03-09 monday 9 march");
    assert.equal(dayWords(1), "1970-01-01 thursday 1 january");
    for (const none of [0, -1, Number.NaN, 9e15, Number.POSITIVE_INFINITY]) assert.equal(dayWords(none), "", String(none));
  });
  test("a file's name may have a day", () => {
    assert.equal(dayOfName("memory/2026-12-31.md"), "2026-12-31 thursday 31 december");
    for (const name of ["notes.md", "memory/2026-99-99.md", "12026-12-31.md", "2026-12-311.md"]) assert.equal(dayOfName(name), "", name);
  });
});

describe("[SE3] snippets", () => {
  test("a match at the end of the line is cut, one behind it is left out", () => {
    const at = (lead: number, match: string): string => `${"x".repeat(lead)}${B}${match}${E} tail`;
    assert.equal(snippetOf(at(2, "ab"), same, 4), `xx${B}ab${E}…`);
    assert.equal(snippetOf(at(2, "abc"), same, 4), `xx${B}ab${E}…`);
    assert.equal(snippetOf(`${B}ab${E}cd${B}ef${E}`, same, 4), `${B}ab${E}cd…`);
    assert.equal(snippetOf(`${B}ab${E}c${B}ef${E}`, same, 4), `${B}ab${E}c${B}e${E}…`);
    assert.equal(snippetOf(`${B}ab${E}`, same, 2), `${B}ab${E}`);
  });
  test("of places with equally many matches the first is shown, and the line begins with a whole word", () => {
    const far = "y ".repeat(100);
    assert.match(snippetOf(`${far}${B}one${E} ${far}${B}two${E}`, same, 80), /^…(?:y )+\ue000one\ue001/);
    const word = `${"w".repeat(100)} ${"z ".repeat(10)}${B}one${E}`;
    assert.equal(snippetOf(word, same, 80), `…${"z ".repeat(10)}${B}one${E}`);
    assert.equal(snippetOf(`${"w".repeat(100)}${B}one${E}`, same, 80), `…${"w".repeat(60)}${B}one${E}`);
  });

  test("a match at the very end of what fits counts, one that does not fit does not", () => {
    const text = (gap: number): string => `${"x ".repeat(200)}${B}two${E}${"y".repeat(gap)}${B}six${E}${" z".repeat(100)}`;
    const before = (gap: number): number => (snippetOf(text(gap), same, 77).split("two")[0]?.match(/x/g) ?? []).length;
    // 60 characters before the first match, and the second one ends at the last of 77; else the line begins before the second one.
    assert.ok(before(11) >= 29, String(before(11)));
    assert.ok(before(12) < 29, String(before(12)));
    // A match with which the text begins counts, too.
    assert.match(snippetOf(`${B}one${E} ${"x ".repeat(200)}${B}two${E}`, same, 80), /^\ue000one/);
  });
  test("are one line around the matches, with marks", () => {
    const text = `${"before ".repeat(60)}\nthe ${B}needle${E} and\tthe ${B}thread${E} ${"after ".repeat(60)}`;
    const snippet = snippetOf(text, same);
    assert.match(snippet, /^…before .* the \ue000needle\ue001 and the \ue000thread\ue001 after .*…$/);
    assert.ok(withoutMarks(snippet).length <= 242);
    assert.equal(linesBefore(text), 1);
  });
  test("come from where most of the matches are", () => {
    const text = `${B}one${E} ${"x ".repeat(400)} ${B}one${E} ${B}two${E} ${B}three${E}`;
    assert.match(snippetOf(text, same), /two.*three/);
  });
  test("[S5] a secret is masked completely, and no mark shows where it matched", () => {
    const text = `key is hunter2-${B}swordfish${E}-99 ok`;
    assert.equal(
      snippetOf(text, (plain) => plain.replaceAll("hunter2-swordfish-99", "[redacted]")),
      "key is [redacted] ok",
    );
  });
  test("never show the index's separators", () => {
    const indexed = segment("私は東京へ行く iPhone版");
    assert.deepEqual(unmarked(indexed), { text: "私は東京へ行く iPhone版", ranges: [] });
    const marked = indexed.replace("\u200b東\u200b\u200b京\u200b", `\u200b${B}東\u200b\u200b京${E}\u200b`);
    assert.equal(snippetOf(marked, same), `私は${B}東京${E}へ行く iPhone版`);
  });
  test("marks in the original text are removed", () => assert.equal(segment(`a${B}b${E}c`), "a b c"));
});

describe("[SE4] the searchable text of a message", () => {
  test("consists of texts, file names, transcribed speech and tool arguments", () => {
    const found = searchable({
      role: "assistant",
      timestamp: 5,
      content: [
        { type: "thinking", thinking: "hidden" },
        { type: "text", text: "hello" },
        { type: "toolCall", name: "pi__Bash", arguments: { command: "make all" } },
        { type: "audio", r2Key: "k", mimeType: "audio/ogg", filename: "note.ogg", transcript: "buy milk" },
        { type: "image", data: "QUJD", mimeType: "image/png" },
      ],
    });
    assert.deepEqual(found, { role: "assistant", at: 5, text: 'hello\npi__Bash {"command":"make all"}\nnote.ogg\nbuy milk' });
  });
  test("an invalid message has none and never throws", () => {
    for (const value of [null, 1, "x", [], {}, { role: "system", content: "x" }]) assert.equal(searchable(value), undefined);
    assert.deepEqual(searchable({ role: "user", content: [null, 3, { type: "text", text: 4 }, {}], timestamp: "x" }), {
      role: "user",
      at: 0,
      text: "",
    });
    fc.assert(
      fc.property(fc.anything(), (content) => {
        const found = searchable({ role: "user", content });
        assert.equal(typeof found?.text, "string");
      }),
    );
  });
});
