/** /health after a restart. A file of its own, because only the first /health of a runtime has this effect. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChannelService } from "../../../protocol/gen/services.ts";
import { parts } from "../../src/app/compose.ts";
import { channelEntrypoint, client, eventually, fakeSessions, fetchWorker, seed } from "../support/gateway.ts";

beforeEach(async () => {
  await reset();
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

test("[D6][P12] only the first /health of a runtime resumes interrupted conversations", async () => {
  const { of } = fakeSessions();
  const asked: string[] = [];
  vi.spyOn(parts, "channel").mockImplementation((_env, name) =>
    name === "gone"
      ? undefined
      : ({
          status: async ({ accountId }: { accountId?: string }) => {
            asked.push(`${name}/${accountId}`);
            if (name === "broken") throw new Error("no answer");
            return [];
          },
        } as unknown as ChannelService),
  );
  for (const channel of ["broken", "gone", "test"])
    await channelEntrypoint(channel).status({
      account: { channel, accountId: "default" },
      state: { accountId: "default", connected: true, authenticated: true },
    });
  const peer = await client();
  for (const key of ["main", "agent:main:cli:dm:b"]) await peer.ok("chat.send", { sessionKey: key, message: "hi" });
  // On the edge, alarms do this.
  await fetchWorker("http://localhost/health");
  expect(of("resume")).toEqual([]);
  expect(asked).toEqual([]);
  const embedded = { ENVIRONMENT: "embedded" };
  await fetchWorker("http://localhost/health", undefined, embedded);
  expect(new Set(of("resume").map(({ key }) => key))).toEqual(new Set(["agent:main:cli:dm:b", "agent:main:main"]));
  await fetchWorker("http://localhost/health", undefined, embedded);
  expect(of("resume")).toHaveLength(2);
  // Channels connect in parallel, and a silent channel blocks nothing.
  await eventually(() => expect(asked).toEqual(["broken/default", "test/default"]));
});
