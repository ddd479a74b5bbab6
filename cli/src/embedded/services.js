// The Worker behind the gateway's bucket, key-value store, database and queues. One for all: each Worker has an isolate of its own, which
// takes 2 MB and a share of each start.
import bucket from "./r2.js";
import kv from "./kv.js";

export { default as D1, D1Database } from "./d1.js";
export { KVNamespace } from "./kv.js";
export { default as Queues, QueueShard } from "./queues.js";
export { R2 } from "./r2.js";
export const Bucket = bucket;
// Both `kv.js` and `queues.js` call the binding to their objects SHARD. `queues.js` reads the Worker's own bindings, `kv.js` those that it gets.
export const KV = { fetch: (request, env, ctx) => kv.fetch(request, { SHARD: env.KV_SHARD, BLOBS: env.BLOBS }, ctx) };
