/** The rules of the chain, without a database: test/kernel/audit-chain.test.ts proves them against one. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { anchorBreak, type AuditRow, endBreak, FIRST, firstBreak, hashedText, type Link, pruneDetail } from "./audit-chain.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hashOf = (row: AuditRow): string => sha256(hashedText(row, row.prev_hash ?? ""));
const EMPTY = { target: null, detail: null, args_hash: null, origin: null, tool: null, rule: null } as const;

/** A log of `count` entries; the first `old` have the format of an earlier version. */
function logOf(count: number, old = 0): AuditRow[] {
  const rows: AuditRow[] = [];
  let prev = FIRST.hash;
  for (let seq = 1; seq <= count; seq++) {
    const format = seq <= old ? 1 : 2;
    const row = { ...EMPTY, seq, at: 1000 + seq, actor: "a", action: "b", decision: "allowed", format, prev_hash: prev, hash: null };
    const hash = hashOf(row);
    rows.push({ ...row, hash });
    prev = hash;
  }
  return rows;
}
const broken = (rows: readonly AuditRow[], before: Link = FIRST): string => {
  const found = firstBreak(before, rows, rows.map(hashOf));
  return found === undefined ? "whole" : `${found.seq} at ${found.at}: ${found.problem}`;
};
const changed = (rows: readonly AuditRow[], index: number, change: Partial<AuditRow>): AuditRow[] =>
  rows.map((row, at) => (at === index ? { ...row, ...change } : row));

describe("[AU3] [S16] a page of entries", () => {
  const log = logOf(4, 1);
  test("of an untouched log is whole, from its beginning or from any entry", () => {
    assert.equal(broken(log), "whole");
    assert.equal(broken([]), "whole");
    assert.equal(broken(log.slice(2), { seq: 2, hash: log[1]?.hash ?? "" }), "whole");
  });
  const everyField = { ...EMPTY, seq: 9, at: 9, actor: "x", action: "x", decision: "denied", format: 2 } as const;
  for (const field of Object.keys(everyField) as (keyof typeof everyField)[])
    test(`names an entry whose ${field} was changed`, () => {
      const value = everyField[field] ?? "x";
      const found = broken(changed(log, 2, { [field]: field === "format" ? 1 : value }));
      assert.match(found, / was changed after it was written: its hash does not fit its content\.$/);
    });
  test("names an entry that lost its hash", () => {
    assert.match(broken(changed(log, 2, { hash: null })), /^3 at 1003: Entry 3 was changed/);
  });
  test("names the entry behind one that was removed or moved", () => {
    const missing = "an entry before it was removed, added or moved.";
    assert.equal(broken(log.filter(({ seq }) => seq !== 2)), `3 at 1003: Entry 3 does not follow entry 1: ${missing}`);
    assert.equal(broken(log.slice(1)), `2 at 1002: Entry 2 does not follow entry 0: ${missing}`);
  });
});

describe("[AU3] the recorded end", () => {
  const last = { seq: 5, hash: "e5" };
  const told = (head: Link | undefined, of: Link = last): string => {
    const found = endBreak(of, head);
    return found === undefined ? "whole" : `${found.seq}: ${found.problem}`;
  };
  test("fits, or says what was cut, added or exchanged", () => {
    assert.equal(told(last), "whole");
    assert.equal(told({ seq: 7, hash: "e7" }), "6: The end of the log was cut: the entries from 6 to 7 are missing.");
    assert.equal(told({ seq: 3, hash: "e3" }), "4: The log has entries after its recorded end, which is entry 3.");
    assert.equal(told({ seq: 5, hash: "e6" }), "5: The last entry, 5, is not the one that was recorded.");
  });
  test("is missing only in a log without entries", () => {
    assert.equal(told(undefined, FIRST), "whole");
    assert.equal(told(undefined), "5: The record of the log's end is missing; the last entry is 5.");
  });
});

test("[AU3] the beginning of a pruned log is where its newest cut ended", () => {
  const anchor = { seq: 8, hash: "e8" };
  const cut = { seq: 12, at: 1012, detail: pruneDetail(anchor) };
  assert.equal(anchorBreak(anchor, cut), undefined);
  assert.equal(anchorBreak(anchor, undefined), undefined);
  const found = anchorBreak({ seq: 9, hash: "e9" }, cut);
  assert.deepEqual([found?.seq, found?.at], [12, 1012]);
  assert.match(found?.problem ?? "", /entries at its beginning were removed/);
});
