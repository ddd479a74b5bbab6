/**
 * Before each test file: what the file before it has stored and replaced is gone. The files of one worker share its runtime, because each
 * start of one costs seconds.
 */
import { reset } from "cloudflare:test";
import { beforeAll, vi } from "vitest";
import { instance, newInstance } from "../../src/app/instance.ts";

beforeAll(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
  Object.assign(instance, newInstance());
});
