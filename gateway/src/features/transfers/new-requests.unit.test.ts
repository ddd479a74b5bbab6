import assert from "node:assert/strict";
import { test } from "node:test";
import { NewRequests } from "./new-requests.ts";

test("[TF10] a cancellation ends a request that is still being checked when another one with its id was refused", async () => {
  const requests = new NewRequests();
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const refused = requests.check("a", () => first.promise);
  const open = requests.check("a", () => second.promise);
  first.reject(new Error("refused"));
  await assert.rejects(refused);
  requests.cancel("b");
  requests.cancel("a");
  second.resolve("may begin");
  assert.deepEqual(await open, { checked: "may begin", isCancelled: true });
  assert.deepEqual(await requests.check("a", async () => "later"), { checked: "later", isCancelled: false });
});
