/** In a file of its own: what the first /health of a runtime's life does can be seen once. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { client, fakeSessions, fetchWorker, seed } from "./support.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

test("[D6][P12] the first /health of a runtime's life, and only that, makes interrupted conversations go on", async () => {
  const { of } = fakeSessions();
  const peer = await client();
  for (const key of ["main", "agent:main:cli:dm:b"]) await peer.ok("chat.send", { sessionKey: key, message: "hi" });
  // On the edge the alarms do it.
  await fetchWorker("http://localhost/health");
  expect(of("resume")).toEqual([]);
  const embedded = { ENVIRONMENT: "embedded" };
  await fetchWorker("http://localhost/health", undefined, embedded);
  expect(new Set(of("resume").map(({ key }) => key))).toEqual(new Set(["agent:main:cli:dm:b", "agent:main:main"]));
  await fetchWorker("http://localhost/health", undefined, embedded);
  expect(of("resume")).toHaveLength(2);
});
