/**
 * The contract of the store of long-term memory, as cases that run anywhere: on SQLite in Node, on the runtime's simulation of D1, and on
 * the D1 of the embedded runtime.
 */
import type { LongTermMemory, MemoryScope, MemoryVectors, NewMemory } from "../../../src/ports/long-term-memory.ts";
import type { Result } from "../../../src/ports/result.ts";
import { ulid } from "../../../src/features/memory/ulid.ts";

export interface RowsCase {
  readonly name: string;
  /** `scope` is the case's own. */
  readonly run: (rows: LongTermMemory & MemoryVectors, scope: MemoryScope) => Promise<void>;
}
export const rowsCases: RowsCase[] = [];
const rowsCase = (name: string, run: RowsCase["run"]): void => void rowsCases.push({ name, run });

function same(actual: unknown, expected: unknown, what: string): void {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what}: expected ${e}, got ${a}`);
}
async function good<T>(result: Promise<Result<T>>): Promise<T> {
  const settled = await result;
  if (!settled.ok) throw new Error(`${settled.error.reason}: ${settled.error.message}`);
  return settled.value;
}
async function refused(result: Promise<Result<unknown>>): Promise<string> {
  const settled = await result;
  return settled.ok ? "ok" : settled.error.reason;
}
let made = 0;
/** Ids rise. */
const idOf = (number: number): string => ulid(1_000_000 + number, new Uint8Array(16));
export function memory(text: string, more: Partial<NewMemory> = {}): NewMemory {
  const number = ++made;
  return {
    id: idOf(number),
    content: text,
    metadata: {},
    author: "agent",
    taint: { label: "self", source: "the agent's own words" },
    sessionKey: "agent:a:main",
    callId: `call-${number}`,
    createdAt: 1_000_000 + number,
    ...more,
  };
}
const WORLD = { label: "world", source: "a mail" } as const;

rowsCase("[LM1] a row is read as it was written", async (rows, scope) => {
  const given = memory("Anna's towel was blue — 49 kr ✓\n\u0007", { metadata: { order: "#1042" }, taint: WORLD });
  const { memory: kept, isNew } = await good(rows.store(scope, given));
  same([kept, isNew], [given, true], "what was stored");
  same((await good(rows.get(scope, [given.id, "none"]))).get(given.id), given, "what is read");
  same((await good(rows.list(scope, { superseded: false, limit: 10 }))).memories, [given], "what is listed");
});
rowsCase("[LM2] a repeated call makes one row, whatever it says", async (rows, scope) => {
  const first = memory("one");
  await good(rows.store(scope, first));
  const { callId, sessionKey } = first;
  const again = await good(rows.store(scope, memory("another text", { callId, sessionKey })));
  same([again.memory.id, again.memory.content, again.isNew], [first.id, "one", false], "the repeated call");
  const other = await good(rows.store(scope, memory("two", { callId, sessionKey: "agent:a:other" })));
  same(other.isNew, true, "the same call id in another conversation");
  same((await good(rows.list(scope, { superseded: true, limit: 10 }))).memories.length, 2, "rows");
});
rowsCase("[LM2] ten calls at once with one id make one row", async (rows, scope) => {
  const stored = await Promise.all(Array.from({ length: 10 }, () => good(rows.store(scope, memory("x", { callId: "same" })))));
  same(new Set(stored.map((one) => one.memory.id)).size, 1, "ids");
  same(stored.filter((one) => one.isNew).length, 1, "new rows");
});
rowsCase("[LM6] a newer memory takes the older one out of the list, once, and both stay", async (rows, scope) => {
  const older = memory("lives in Lund");
  await good(rows.store(scope, older));
  const newer = memory("lives in Malmö", { supersedes: older.id });
  same((await good(rows.store(scope, newer))).superseded, true, "superseded");
  same((await good(rows.store(scope, newer))).superseded, true, "the repeated call");
  const late = memory("lives in Ystad", { supersedes: older.id });
  await good(rows.store(scope, late));
  same(
    (await good(rows.list(scope, { superseded: false, limit: 10 }))).memories.map(({ id }) => id),
    [late.id, newer.id],
    "listed",
  );
  const all = (await good(rows.list(scope, { superseded: true, limit: 10 }))).memories;
  same(
    all.map(({ supersededBy }) => supersededBy),
    [undefined, undefined, newer.id],
    "the first newer one stays its successor",
  );
});
rowsCase("[LM6] a memory of another agent, or none, cannot be superseded", async (rows, scope) => {
  const older = memory("of the one");
  await good(rows.store(scope, older));
  const stranger = { ...scope, agentId: `${scope.agentId}-other` };
  same(await refused(rows.store(stranger, memory("x", { supersedes: older.id }))), "memory.unknown", "another agent's");
  same(
    await refused(rows.store({ ...scope, tenantId: "other" }, memory("x", { supersedes: older.id }))),
    "memory.unknown",
    "another tenant's",
  );
  same((await good(rows.list(stranger, { superseded: true, limit: 10 }))).memories, [], "nothing was written");
  same((await good(rows.get(scope, [older.id]))).get(older.id)?.supersededBy, undefined, "it stays");
});
rowsCase("[LM7] what others may have written supersedes only what others may have written", async (rows, scope) => {
  const [own, theirs] = [memory("owner's"), memory("a mail's", { taint: WORLD })];
  for (const one of [own, theirs]) await good(rows.store(scope, one));
  same((await good(rows.store(scope, memory("evil", { taint: WORLD, supersedes: own.id })))).superseded, false, "the owner's fact stays");
  same((await good(rows.store(scope, memory("mail again", { taint: WORLD, supersedes: theirs.id })))).superseded, true, "theirs goes");
  same((await good(rows.get(scope, [own.id]))).get(own.id)?.supersededBy, undefined, "the row");
});
rowsCase("[LM1] too large a memory and too much metadata are refused; 8 KiB fit", async (rows, scope) => {
  same(await refused(rows.store(scope, memory("é".repeat(4097)))), "memory.too_large", "text");
  same(await refused(rows.store(scope, memory("x", { metadata: { a: "y".repeat(4096) } }))), "memory.too_large", "metadata");
  same(await refused(rows.store(scope, memory("é".repeat(4096)))), "ok", "8 KiB");
});
rowsCase("[LM1] pages give each row once, the newest first, and hold at most half a megabyte", async (rows, scope) => {
  const ids: string[] = [];
  for (let number = 0; number < 90; number++) {
    const one = memory("z".repeat(8_000));
    ids.unshift(one.id);
    await good(rows.store(scope, one));
  }
  const listed: string[] = [];
  for (let before: string | undefined; ; ) {
    const page = await good(rows.list(scope, { superseded: false, limit: 100, ...(before === undefined ? {} : { before }) }));
    if (JSON.stringify(page).length > 600_000) throw new Error("the page is too large");
    listed.push(...page.memories.map(({ id }) => id));
    before = page.memories.at(-1)?.id;
    if (!page.more) break;
  }
  same(listed, ids, "ids");
});
rowsCase("[LM8] changes tell what was written, superseded and removed, each memory once, in order", async (rows, scope) => {
  const [a, b] = [memory("a"), memory("b")];
  await good(rows.store(scope, a));
  await good(rows.store(scope, b));
  const first = await good(rows.changes(scope, 0, 10));
  same(
    first.map(({ id, memory: row }) => [id, row?.content]),
    [
      [a.id, "a"],
      [b.id, "b"],
    ],
    "written",
  );
  const seen = first.at(-1)?.seq ?? 0;
  const c = memory("c", { supersedes: a.id });
  await good(rows.store(scope, c));
  same(await good(rows.remove(scope, [b.id, "none"])), 1, "removed");
  const next = await good(rows.changes(scope, seen, 10));
  same(
    next.map(({ id, memory: row }) => [id, row === undefined ? "gone" : (row.supersededBy ?? "kept")]),
    [
      [c.id, "kept"],
      [a.id, c.id],
      [b.id, "gone"],
    ],
    "changed",
  );
  same((await good(rows.changes(scope, 0, 10))).length, 3, "each memory once");
  same((await good(rows.changes(scope, 0, 2))).length, 2, "limited");
  same(await good(rows.changes({ ...scope, agentId: "stranger" }, 0, 10)), [], "another agent's");
});
rowsCase("[LM8] a removed memory is gone and is removed once", async (rows, scope) => {
  const one = memory("secret");
  await good(rows.store(scope, one));
  same(await good(rows.remove({ ...scope, agentId: "other" }, [one.id])), 0, "by another agent");
  same(await good(rows.remove(scope, [one.id])), 1, "first");
  same(await good(rows.remove(scope, [one.id])), 0, "again");
  same((await good(rows.get(scope, [one.id]))).size, 0, "read");
});

rowsCase("[LM15] [LM16] [LM17] vectors of a service are in the rows, and only rows without one of its model wait", async (rows, given) => {
  const scope = { ...given, tenantId: `vectors-${given.agentId}` };
  const small = { provider: "openai", model: "small", dimensions: 3 };
  const large = { ...small, model: "large" };
  const vector = { bytes: Int8Array.of(127, -128, 0), scale: 0.005578 };
  const waits = async (): Promise<readonly string[]> =>
    (await good(rows.waiting(scope.tenantId, { withoutAgents: [], limit: 10 })))?.texts.map(({ id }) => id) ?? [];
  const [old, fresh, other] = [memory("old"), memory("fresh"), memory("other's")];
  await good(rows.store(scope, old));
  await good(rows.store(scope, fresh, true));
  await good(rows.store({ ...scope, agentId: "other" }, other, true));
  same(await waits(), [fresh.id], "written for a service, of one agent");
  await good(rows.awaitVectors(scope.tenantId, small));
  same(await waits(), [old.id, fresh.id], "all rows");
  same(await good(rows.countVectors(scope.tenantId)), { waiting: 3, refused: 0 }, "counted");
  same(await good(rows.hasVectors(scope, small)), false, "before");
  const seen = (await good(rows.changes(scope, 0, 10))).at(-1)?.seq ?? 0;
  await good(
    rows.keepVectors(scope, small, [
      { id: old.id, vector },
      { id: other.id, vector },
      { id: "gone", vector },
    ]),
  );
  await good(rows.noVector(scope, small, fresh.id));
  const without = await good(rows.waiting(scope.tenantId, { withoutAgents: [scope.agentId], limit: 10 }));
  same([without?.agentId, without?.texts], ["other", [{ id: other.id, content: "other's" }]], "another agent's row is not changed");
  same([await good(rows.hasVectors(scope, small)), await good(rows.hasVectors(scope, large))], [true, false], "by model");
  const changed = await good(rows.changes(scope, seen, 10));
  const kept = changed.find(({ id }) => id === old.id)?.vector;
  same([kept?.of, [...(kept?.vector.bytes ?? [])], kept?.vector.scale], [small, [127, -128, 0], 0.005578], "as it was kept");
  same(changed.find(({ id }) => id === fresh.id)?.memory?.embedding, { state: "refused", of: small }, "refused");
  await good(rows.awaitVectors(scope.tenantId, small));
  same(await waits(), [other.id], "nothing of this agent waits again");
  await good(rows.awaitVectors(scope.tenantId, large));
  same(await waits(), [old.id, fresh.id], "another model");
  await good(rows.remove(scope, [old.id]));
  await good(rows.keepVectors(scope, large, [{ id: old.id, vector }]));
  same((await good(rows.get(scope, [old.id]))).size, 0, "a removed row does not come back");
});
