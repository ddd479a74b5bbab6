/**
 * Before each test file: what the file before it has stored and replaced is gone. The files of one worker share its runtime, because each
 * start of one costs seconds.
 */
import { env } from "cloudflare:workers";
import { listDurableObjectIds, reset, runInDurableObject } from "cloudflare:test";
import { beforeAll, vi } from "vitest";
import { instance, newInstance } from "../../src/app/instance.ts";
import { cacheOf } from "../../src/storage/workspace/cache.ts";
// Loaded before the tests: here an import never ends when the object that began it is aborted, and each later import of it waits for that one.
import "../../src/agents/read-definition.lazy.ts";
import "../../src/app/session.lazy.ts";
import "../../src/features/events/events.lazy.ts";
import "../../src/features/hooks/hooks.lazy.ts";
import "../../src/features/jobs/jobs.lazy.ts";
import "../../src/features/memory/memory.lazy.ts";
import "../../src/features/runs/runs.lazy.ts";
import "../../src/features/schedule/answers.lazy.ts";
import "../../src/features/schedule/schedule.lazy.ts";
import "../../src/features/search/search.lazy.ts";
import "../../src/models/model-call.lazy.ts";
import "../../src/policy/deletion/deletion-reader.lazy.ts";
import "../../src/policy/regex.lazy.ts";
import "../../src/storage/skills/front-matter.lazy.ts";

beforeAll(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
  await removeSleeping();
  Object.assign(instance, newInstance());
  // They compare with the bucket at their own times, and the bucket is a new one.
  cacheOf(env.STORAGE).invalidate(MAIN);
  cacheOf(env.STORAGE).skills.invalidate({ scope: "agent", agentId: MAIN });
});
const MAIN = "main";
/** `reset` leaves the rows of an object that a test has aborted and that was not used since. */
async function removeSleeping(): Promise<void> {
  await Promise.all([empty(env.GATEWAY), empty(env.SESSION), empty(env.SEARCH), empty(env.JOB)]);
  await reset();
}
async function empty<T extends Rpc.DurableObjectBranded | undefined>(namespace: DurableObjectNamespace<T>): Promise<void> {
  for (const id of await listDurableObjectIds(namespace))
    await runInDurableObject(namespace.get(id), (_object, { storage }) => storage.deleteAll());
}
