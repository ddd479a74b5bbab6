import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Answer, failingAfter, failingSentence, type Failings, toldOf } from "./failing.ts";
import { check, type Condition, type Marks, readInstructions, standing } from "./precheck.ts";
import { publicUrl } from "./public-url.ts";

const read = (...lines: readonly string[]) => readInstructions(`---\n${lines.join("\n")}\n---\n- look`);
const conditionsOf = (...lines: readonly string[]): readonly Condition[] => {
  const found = read(...lines);
  assert.ok(found.kind === "tasks", found.kind === "wrong" ? found.problem : found.kind);
  return found.conditions;
};
const problemOf = (...lines: readonly string[]): string => {
  const found = read(...lines);
  assert.ok(found.kind === "wrong", lines.join());
  return found.problem;
};
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe("[HB9] the addresses that the gateway reads", () => {
  test("are public ones", () => {
    for (const url of [
      "https://example.org/news?page=1#top",
      "HTTP://example.org:8080",
      "http://8.8.8.8/",
      "http://172.15.255.255/",
      "http://172.32.0.1/",
      "http://100.63.0.1/",
      "http://100.128.0.1/",
      "http://192.169.0.1/",
      "http://[2606:4700::1]/",
      "http://[2001:4860:4860::8888]/",
      "https://localhost.example.org/",
      "https://local.dev/",
    ])
      assert.deepEqual(publicUrl(url), { ok: true }, url);
  });
  test("are none of this machine, of a local network or of a metadata service, however they are written", () => {
    for (const host of [
      "127.0.0.1",
      "127.1",
      "2130706433",
      "0x7f.0.0.1",
      "0177.0.0.1",
      "0.0.0.0",
      "10.1.2.3",
      "100.64.0.1",
      "100.127.255.255",
      "169.254.169.254",
      "172.16.0.1",
      "172.31.255.255",
      "192.0.0.192",
      "192.168.1.1",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
      "[::]",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::ffff:8.8.8.8]",
      "[64:ff9b::a00:1]",
      "[2002:a00:1::]",
      "[2001::1]",
      "[2001:db8::1]",
      "[fc00::1]",
      "[fd12:3456::1]",
      "[fe80::1]",
      "[ff02::1]",
      "[fd00:ec2::254]",
      "localhost",
      "LOCALHOST.",
      "a.localhost",
      "router",
      "printer.local",
      "nas.lan",
      "metadata.google.internal",
      "x.home.arpa.",
      "%6cocalhost",
      "１２７.0.0.1",
    ]) {
      const found = publicUrl(`http://${host}/`);
      assert.ok(!found.ok && found.problem.includes("local network"), host);
    }
  });
  test("have http or https, and no credentials", () => {
    for (const url of [
      "example.org",
      "ftp://example.org/",
      "file:///etc/passwd",
      "data:text/plain,x",
      "javascript:1",
      "https://",
      "http:example.org",
    ])
      assert.ok(!publicUrl(url).ok, url);
    const named = publicUrl("https://me:secret@example.org/");
    assert.ok(!named.ok && named.problem.includes("a password") && !named.problem.includes("secret"));
  });
});

describe("[HB9] [HB10] [HB11] conditions that pages and machines answer", () => {
  test("are read, a command with all its characters", () => {
    assert.deepEqual(conditionsOf("http_changed: https://example.org/#top # the news", "  - exec: laptop grep -c ' # ' a.txt"), [
      { kind: "http_changed", url: "https://example.org/#top", text: "http_changed: https://example.org/#top" },
      { kind: "exec", nodeId: "laptop", command: "grep -c ' # ' a.txt", text: "exec: laptop grep -c ' # ' a.txt" },
    ]);
  });
  test("a wrong one stops the heartbeat and says why", () => {
    assert.match(problemOf("http_changed: http://10.0.0.1/"), /`http_changed: http:\/\/10\.0\.0\.1\/` in HEARTBEAT\.md is an address of/);
    for (const line of ["exec: laptop", "exec: -x true", "exec: a/b true"]) assert.match(problemOf(line), /names no machine and command/);
    assert.equal(
      problemOf("http_changed: https://ann:hunter2@example.org/a"),
      "`http_changed: https://***@example.org/a` in HEARTBEAT.md has a user name or a password in it, which the gateway does not send.",
    );
    for (const line of [
      "http_change: https://ann:hunter2@example.org/a",
      "http_changed: ftp://ann:hunter2@example.org",
      "x: //a:hunter2@b",
    ])
      assert.doesNotMatch(problemOf(line), /hunter2/, line);
    assert.match(problemOf("exec:"), /is not a condition\..*`http_changed: .*`exec: laptop/);
    const six = Array.from({ length: 6 }, (_, at) =>
      at % 2 === 0 ? `exec: laptop test -e ${at}` : `http_changed: https://example.org/${at}`,
    );
    assert.equal(conditionsOf(...six.slice(1), "every: 1h").length, 6);
    assert.match(problemOf(...six), /has 6 conditions with `http_changed` or `exec`; at most 5/);
  });
  const looks = (line: string, answers: readonly (Answer | undefined)[]): { due: boolean[]; marks: Marks } => {
    const conditions = conditionsOf(line);
    let marks: Marks = {};
    const due = answers.map((answer) => {
      const found = check(conditions, marks, {
        now: 0,
        tz: "UTC",
        states: new Map(),
        answers: new Map(answer === undefined ? [] : [[conditions[0]?.text ?? "", answer]]),
      });
      marks = found.marks;
      return found.due.length > 0;
    });
    return { due, marks };
  };
  const failed: Answer = { kind: "failed", why: "It is away." };
  const page = (print: string): Answer => ({ kind: "print", print });
  test("a page is due when it changes; the first look is no change, and a failure keeps the mark", () => {
    const { due, marks } = looks("http_changed: https://example.org", [
      failed,
      page("a"),
      page("a"),
      failed,
      undefined,
      page("a"),
      page("b"),
      page("b"),
    ]);
    assert.deepEqual(due, [false, false, false, false, false, false, true, false]);
    assert.deepEqual(marks, { "http_changed: https://example.org": "b" });
  });
  test("a command is due as often as it ends with 0", () => {
    const ended = (isTrue: boolean): Answer => ({ kind: "ended", isTrue });
    const { due, marks } = looks("exec: laptop true", [ended(false), ended(true), failed, undefined, ended(true)]);
    assert.deepEqual(due, [false, true, false, false, true]);
    assert.deepEqual(marks, {});
  });
});

describe("[HB11] conditions that fail", () => {
  const look = (before: Failings, kind: "failed" | "ended", now: number, why = "It is away.") => {
    const answer: Answer = kind === "failed" ? { kind, why } : { kind, isTrue: false };
    const { failing, tell } = failingAfter(before, new Map([["exec: a b", answer]]), now);
    return { failing: toldOf(failing, tell, now), told: tell.length > 0 };
  };
  test("are counted in a row, and told at most once a day, also when they hold in between", () => {
    const first = look({}, "failed", 1 * HOUR);
    assert.deepEqual(first, { failing: { "exec: a b": { count: 1, since: HOUR, why: "It is away.", toldAt: HOUR } }, told: true });
    const second = look(first.failing, "failed", 2 * HOUR, "It is gone.");
    assert.deepEqual(second, { failing: { "exec: a b": { count: 2, since: HOUR, why: "It is gone.", toldAt: HOUR } }, told: false });
    const held = look(second.failing, "ended", 3 * HOUR);
    assert.equal(held.failing["exec: a b"]?.count, 0);
    const again = look(held.failing, "failed", 4 * HOUR);
    assert.deepEqual([again.told, again.failing["exec: a b"]?.count, again.failing["exec: a b"]?.since], [false, 1, 4 * HOUR]);
    assert.ok(!look(again.failing, "failed", DAY).told);
    const next = look(again.failing, "failed", DAY + HOUR);
    assert.deepEqual([next.told, next.failing["exec: a b"]?.toldAt], [true, DAY + HOUR]);
    assert.deepEqual(look(again.failing, "ended", DAY + HOUR).failing, {});
    // The clock was set back: the model is told again.
    assert.ok(look(first.failing, "failed", 0).told);
  });
  test("are kept only while the file has them, and told with their number", () => {
    const { failing } = look({}, "failed", 1);
    assert.deepEqual(failingAfter(failing, new Map(), 2), { failing: {}, tell: [] });
    assert.equal(
      failingSentence("exec: a b", { count: 1, since: 1, why: "It is away." }),
      "`exec: a b` could not be looked at: It is away.",
    );
    assert.equal(
      failingSentence("exec: a b", { count: 3, since: 1, why: "It is away." }),
      "`exec: a b` could not be looked at 3 times in a row: It is away.",
    );
  });
});

test("[HB4] a front matter without an end stops the heartbeat: its conditions would count as tasks, and each beat would ask the model", () => {
  for (const text of ["---\nexec: box false\n- look at things\n", "---\n\nwhen:\n- every: 2h\n", "\ufeff---\r\n- every: 2h\r\nLook.\r\n"]) {
    const read = readInstructions(text);
    assert.ok(read.kind === "wrong" && read.problem.includes("has no end: write a line `---`"), text);
  }
  // A rule of Markdown.
  for (const text of ["---\nLook at things\n", "---\n# Rounds\n- look: at things\n", "----\nevery: 2h\n"])
    assert.equal(readInstructions(text).kind, "tasks", text);
});

describe("[HB9] what the owner is told of a file", () => {
  const [condition] = conditionsOf("file_changed: in.md");
  assert.ok(condition?.kind === "file_changed");
  const now = Date.parse("2026-11-30T12:00:00Z");
  const told = (before: string | undefined, after: string | undefined) => {
    const marks = before === undefined ? {} : { [condition.text]: before };
    const states = new Map(after === undefined ? [] : [["in.md", after]]);
    const { isTrue, why } = standing(condition, marks, { now, tz: "UTC", states });
    return [isTrue, why];
  };
  test("is whether it has changed since the last check, and that it is not there", () => {
    assert.deepEqual(told(undefined, "a"), [false, "There is nothing to compare with yet: the first look of a heartbeat is a beginning."]);
    assert.deepEqual(told("a", "a"), [false, "The file has not changed since the last check."]);
    assert.deepEqual(told("a", "b"), [true, "The file has changed since the last check."]);
    assert.deepEqual(told("a", undefined), [true, "The file has changed since the last check. There is no such file."]);
    assert.deepEqual(told("absent", undefined), [false, "The file has not changed since the last check. There is no such file."]);
  });
});
