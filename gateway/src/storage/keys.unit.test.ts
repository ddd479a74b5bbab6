import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  archiveKey,
  contentTypeOf,
  dailyPath,
  extensionFor,
  fileKey,
  mediaKey,
  mediaPrefix,
  parseFolder,
  isOwnKey,
  parseArchivePath,
  parsePath,
  parseVersionId,
  partArchiveKey,
  resultPath,
  versionId,
  versionKey,
  versionOfKey,
  versionsPrefix,
} from "./keys.ts";

const key = (path: string): string | undefined => {
  const parsed = parsePath(path);
  return parsed.ok ? fileKey("main", parsed.value) : undefined;
};

describe("[P5.1] storage layout", () => {
  it("builds the keys of the layout", () => {
    assert.equal(key("SOUL.md"), "agents/main/SOUL.md");
    assert.equal(fileKey("main", dailyPath("2026-02-19")), "agents/main/memory/2026-02-19.md");
    assert.equal(archiveKey("main", "s-1"), "agents/main/sessions/s-1.jsonl.gz");
    assert.equal(partArchiveKey("main", "s-1", 1708300000000), "agents/main/sessions/s-1-part1708300000000.jsonl.gz");
    assert.equal(key("skills/mail/SKILL.md"), "agents/main/skills/mail/SKILL.md");
    assert.equal(
      mediaKey("agent:main:cli:dm:main", "0b0e7c1e-0000-4000-8000-000000000000", "image/jpeg"),
      "media/agent:main:cli:dm:main/0b0e7c1e-0000-4000-8000-000000000000.jpg",
    );
    assert.equal(resultPath("ab12/r3/1/0"), "results/ab12-r3-1-0.txt");
  });
  it("maps MIME types to extensions by the layout's table", () => {
    const table =
      "image/jpeg jpg image/png png image/gif gif image/webp webp image/svg+xml svg audio/ogg ogg audio/opus opus audio/mpeg mp3 audio/mp3 mp3 audio/mp4 m4a audio/m4a m4a audio/wav wav audio/webm webm audio/flac flac video/mp4 mp4 video/webm webm video/quicktime mov application/pdf pdf application/msword doc application/vnd.openxmlformats-officedocument.wordprocessingml.document docx application/x-thing bin constructor bin".split(
        " ",
      );
    for (let i = 0; i < table.length; i += 2) assert.equal(extensionFor(table[i] ?? ""), table[i + 1]);
    assert.equal(extensionFor("Audio/OGG; codecs=opus"), "ogg");
    assert.equal(contentTypeOf("a/B.MD"), "text/markdown; charset=utf-8");
    assert.equal(contentTypeOf("Makefile"), "text/plain; charset=utf-8");
  });
});

describe("[WF1][P5.4] paths stay in the agent's workspace", () => {
  const bad = [
    "",
    "/etc/passwd",
    "../other/SOUL.md",
    "a/../../b",
    "a/./b",
    "..",
    ".",
    "a//b",
    "a/",
    "~/x",
    "C:\\x",
    "c:/x",
    "file:///x",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\u007fb",
    "%2e%2e/x",
    "%2E%2e/x",
    "a/%2e%2e",
    "a/.%2e/b",
    "%252e%252e/x",
    "%25252e%25252e/x",
    "a%2fb",
    "a%2F..%2Fb",
    "a%5cb",
    "a%00b",
    "\ud800",
    "x".repeat(201),
    `${"a/".repeat(600)}a`,
    "ü".repeat(101),
  ];
  for (const path of bad)
    it(`refuses ${JSON.stringify(path.length > 40 ? `${path.slice(0, 40)}...` : path)}`, () => assert.equal(key(path), undefined));
  const good = [
    "USER.md",
    "./USER.md",
    "memory/2026-01-01.md",
    "notes/zwölf ✓.md",
    ".hidden",
    "a..b",
    "...",
    "100%.md",
    "50%20off.md",
    "a b/c",
    "-rf",
    "results/x-r1-0-0.txt",
  ];
  for (const path of good) it(`takes ${JSON.stringify(path)}`, () => assert.ok(key(path)?.startsWith("agents/main/")));
  it("for any input, the key is under the agent's folder and no decoding leaves it", () => {
    const part = fc.oneof(fc.string(), fc.constantFrom("..", ".", "%2e", "%2e%2e", "%252e", "a", "/", "//", "\\", "%2f", "\0"));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const made = key(parts.join("/"));
        if (made === undefined) return;
        for (let form = made, i = 0; i < 4; i++) {
          assert.equal(
            new URL(`http://h/${form.replaceAll("#", "%23").replaceAll("?", "%3f")}`).pathname.startsWith("/agents/main/"),
            true,
            made,
          );
          try {
            form = decodeURIComponent(form);
          } catch {
            break;
          }
        }
      }),
      { numRuns: 5000 },
    );
  });
  it("folders may end with a slash, and the empty path is the workspace itself", () => {
    for (const path of [undefined, "", ".", "/", "./"]) assert.deepEqual(parseFolder(path), { ok: true, value: "" });
    assert.deepEqual(parseFolder("memory/"), { ok: true, value: "memory" });
    assert.equal(parseFolder("../x").ok, false);
  });
  it("an invalid agent id throws", () => {
    for (const id of ["", "..", "a/b", "A", "x".repeat(65)]) assert.throws(() => fileKey(id, dailyPath("2026-01-01")));
  });
  it("media of one session is never under another's prefix", () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^agent:main:[A-Za-z0-9+\-_@.:%]{1,400}$/),
        fc.stringMatching(/^agent:main:[A-Za-z0-9+\-_@.:%]{1,400}$/),
        (a, b) => {
          if (a === b) return;
          assert.ok(!mediaPrefix(a).startsWith(mediaPrefix(b)));
        },
      ),
    );
  });
});

describe("[W20] names in the bucket", () => {
  const refusal = (path: string): string => {
    const parsed = parsePath(path);
    return parsed.ok ? "accepted" : `${parsed.error.reason}: ${parsed.error.message}`;
  };
  it("a path that is refused says why", () => {
    for (const [path, problem] of [
      ["", "path.invalid: The path is empty. Name a file, such as `USER.md`."],
      ["a/", "path.not_a_file: The path names a folder; name a file."],
      ["a\0b", "path.invalid: The path contains a NUL character."],
      ["a\nb", "path.invalid: The path contains control characters."],
      ["a/@1708300000000-abc/b", "path.invalid: A part of the path has the form of a file version's name. Choose another name."],
      ["%2e%2e/a", "path.invalid: The path must not contain `.` or `..`."],
      ["a%2fb", "path.invalid: The path must not contain encoded separators."],
      ["%25252e%25252e", "path.invalid: The path must not contain `.` or `..`."],
    ] as const)
      assert.equal(refusal(path), problem, path);
    for (const path of ["./a.md", "%2525252e%2525252e", "50%.md", "@1-a"]) assert.equal(refusal(path), "accepted", path);
  });
  it("the lengths are exact, in bytes", () => {
    const part = (bytes: number): string => "ü".repeat(bytes / 2);
    const long = (bytes: number): string => `${part(200)}/${part(200)}/${part(200)}/${part(200)}/${"x".repeat(bytes - 804)}`;
    assert.deepEqual(
      [refusal(part(200)), refusal(`${part(200)}x`)],
      ["accepted", "path.invalid: A part of the path is longer than 200 bytes."],
    );
    assert.deepEqual([refusal(long(880)), refusal(long(881))], ["accepted", "path.invalid: The path is longer than 880 bytes."]);
  });
  it("an archive's name has its session and, for a part, its time", () => {
    assert.deepEqual(parseArchivePath("sessions/s-1.jsonl.gz"), { path: "sessions/s-1.jsonl.gz", sessionId: "s-1" });
    assert.deepEqual(parseArchivePath("sessions/s-1-part5.jsonl.gz"), { path: "sessions/s-1-part5.jsonl.gz", sessionId: "s-1", part: 5 });
    for (const none of ["sessions/.jsonl.gz", "sessions/a/b.jsonl.gz", "x/s.jsonl.gz", "sessions/a\u0001.jsonl.gz"])
      assert.equal(parseArchivePath(none), undefined, none);
  });
  it("a version's name has its time and its etag", () => {
    const id = versionId(1_708_300_000_000, 'W/"ab-c"');
    assert.equal(id, "1708300000000-W__ab_c_");
    assert.deepEqual(parseVersionId(id), { id, at: 1_708_300_000_000, etag: "W__ab_c_" });
    const path = parsePath("a/b.md");
    assert.ok(path.ok);
    const key = versionKey("main", path.value, id);
    assert.equal(key, `versions/main/a/b.md/@${id}`);
    assert.equal(versionOfKey(key), id);
    for (const none of ["", "1-a", "1708300000000", "170830000000x-a"]) assert.equal(parseVersionId(none), undefined, none);
    assert.equal(versionOfKey("versions/main/a/b.md"), undefined);
    assert.throws(() => versionsPrefix("../x", path.value), /agent ids/);
  });
  it("a session's files have a folder of their own, also when its key is longer than a name", () => {
    const folder = (key: string): string => mediaPrefix(key);
    assert.equal(folder("k".repeat(200)), `media/${"k".repeat(200)}/`);
    assert.match(folder("k".repeat(201)), /^media\/k{150}~[0-9a-f]+\/$/);
    assert.notEqual(folder("k".repeat(201)), folder("k".repeat(202)));
    for (const bad of ["", ".", "..", "a/b", "a\\b", "a b", "a\u0001"]) assert.throws(() => folder(bad), /not canonical/, bad);
    assert.ok(isOwnKey("s", "media/s/0b0e.jpg") && !isOwnKey("s", "media/s2/0b0e.jpg") && !isOwnKey("s", "media/s/x.jpg"));
  });
});
