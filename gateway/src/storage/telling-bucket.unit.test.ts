/** [SE8] Who writes what a recall searches tells the gateway. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Bucket } from "./bucket.ts";
import { tellingBucket, WrittenFiles } from "./telling-bucket.ts";
import { cacheOf } from "./workspace/cache.ts";

describe("[SE8] a bucket that tells of its writes", () => {
  test("tells of memory files and transcripts when they are written or deleted, also when the answer is lost, and of nothing else", async () => {
    const stored = new Set<string>();
    const order: string[] = [];
    const bucket = {
      put: async (key: string) => {
        stored.add(key);
        if (key.endsWith("lost.md")) throw new Error("no answer");
      },
      delete: async (keys: string | string[]) => {
        for (const key of [keys].flat()) stored.delete(key);
      },
      get: async () => null,
      head: async () => null,
      list: async () => ({ objects: [...stored], truncated: false }),
    } as unknown as Bucket;
    const files = new WrittenFiles("x");
    const telling = tellingBucket(bucket, () => {
      files.written();
      order.push([...stored].join(" "));
      throw new Error("the gateway is away");
    });
    for (const key of [
      "agents/main/notes.md",
      "agents/main/results/1.txt",
      "media/a",
      "agents/main/MEMORY.md.bak",
      "versions/main/MEMORY.md/@1",
    ])
      await telling.put(key, "text");
    await telling.delete("media/a");
    assert.equal(files.state(), "x 0");
    await telling.put("agents/main/MEMORY.md", "text");
    assert.match(order[0] ?? "", /MEMORY\.md$/, "after the write");
    await telling.put("agents/work/sessions/1.jsonl.gz", "text");
    await assert.rejects(telling.put("agents/main/memory/lost.md", "text"), /no answer/);
    await telling.delete(["media/b", "agents/main/memory/lost.md"]);
    assert.deepEqual([files.state(), order.length], ["x 4", 4]);
    assert.equal((await telling.list()).objects.length, 6);
  });
  test("shares with all others of its bucket what is known of the files, so that each sees what another wrote", () => {
    const bucket = {} as Bucket;
    const first = tellingBucket(bucket, () => undefined);
    assert.equal(cacheOf(first), cacheOf(bucket));
    assert.equal(cacheOf(tellingBucket(first, () => undefined)), cacheOf(bucket));
    assert.notEqual(cacheOf(tellingBucket({} as Bucket, () => undefined)), cacheOf(bucket));
  });
});
