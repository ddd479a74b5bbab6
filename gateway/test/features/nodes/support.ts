/** What the tests of nodes share: the open calls of clients, the clock, and a killed gateway. */
import { runInDurableObject } from "cloudflare:test";
import { vi } from "vitest";
import { gateway } from "../../support/gateway.ts";
import { evict } from "../../support/evict.ts";

/** The open calls of clients. */
export const openCalls = (): Promise<Record<string, unknown>[]> =>
  runInDurableObject(gateway(), (_gateway, state) =>
    state.storage.sql
      .exec<{ record: string }>("SELECT record FROM client_calls ORDER BY id")
      .toArray()
      .map(({ record }) => (JSON.parse(record) as { call: Record<string, unknown> }).call),
  );
/** Runs the gateway's alarm as if so much time had passed. */
export async function later(ms: number): Promise<void> {
  const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + ms);
  try {
    await runInDurableObject(gateway(), (object) => object.alarm());
  } finally {
    now.mockRestore();
  }
}
/** Everything in memory and every socket is lost, as when the process is killed. */
export const crash = (): Promise<void> => evict(gateway(), { webSockets: "close" });
