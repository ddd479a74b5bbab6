import assert from "node:assert/strict";
import { test } from "node:test";
import { isSameMemory, wellFormed } from "./same-memory.ts";

const memory = { content: "tea", metadata: { room: "cellar", floor: "1" }, supersedes: "01ARZ3NDEKTSV4RRFFQ69G5FAV" };

test("[LM2] the same memory has the same text, metadata in any order, and older memory", () => {
  assert(isSameMemory(memory, { ...memory, metadata: { floor: "1", room: "cellar" } }));
  for (const other of [
    { ...memory, content: "coffee" },
    { ...memory, metadata: { room: "cellar" } },
    { ...memory, metadata: { room: "cellar", floor: "2" } },
    { ...memory, metadata: { room: "cellar", toString: "1" } },
    { ...memory, supersedes: "01ARZ3NDEKTSV4RRFFQ69G5FAW" },
    { content: memory.content, metadata: memory.metadata },
  ])
    assert(!isSameMemory(memory, other) && !isSameMemory(other, memory), JSON.stringify(other));
});
test("[LM2] half of a surrogate pair is compared as it is stored", () => {
  const odd = { content: "a\ud800b", metadata: { "x\udc00": "\ud800" } };
  assert(isSameMemory(odd, wellFormed(odd)));
  assert.deepEqual(wellFormed(odd), { content: "a\ufffdb", metadata: { "x\ufffd": "\ufffd" } });
});
