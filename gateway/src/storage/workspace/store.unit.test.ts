/** The workspace on a bucket of plain files, which refuses a file where a folder is. Other behaviour: gateway/test/storage. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bucket } from "../bucket.ts";
import { createWorkspaceStore } from "./store.ts";

/** Has these keys, and writes none. */
function refusing(keys: readonly string[]): Bucket {
  const object = (key: string): object => ({ key, customMetadata: {}, etag: "e", size: 1, uploaded: new Date(0) });
  const bucket: Record<keyof Bucket, unknown> = {
    get: async () => null,
    head: async (key: string) => (keys.includes(key) ? object(key) : null),
    put: () => Promise.reject(new Error("500")),
    delete: async () => undefined,
    list: async ({ prefix = "" }: R2ListOptions) => ({
      objects: keys.filter((key) => key.startsWith(prefix)).map(object),
      delimitedPrefixes: [],
      truncated: false,
    }),
  };
  return bucket as Bucket;
}
const error = async (keys: readonly string[], path: string): Promise<object> => {
  const written = await createWorkspaceStore(refusing(keys)).write("main", path, "text");
  assert.ok(!written.ok);
  return written.error;
};

test("[P10] a file is refused where a folder is, with what to type, and not told to try again", async () => {
  assert.deepEqual(await error(["agents/main/notes/a.md"], "notes"), {
    reason: "path.not_a_file",
    message: "`notes` is a folder.",
    hint: "Name the file in it: `gsv workspace put notes/NAME`.",
  });
  assert.deepEqual(await error(["agents/main/notes"], "notes/deep/a.md"), {
    reason: "path.invalid",
    message: "`notes` is a file, not a folder.",
  });
});
test("[P10] a storage that fails for another reason is still told apart", async () => {
  assert.deepEqual(await error([], "notes"), {
    reason: "storage.failed",
    message: "The storage could not write `notes`.",
    hint: "Try again in a moment.",
  });
});
