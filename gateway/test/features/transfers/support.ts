/** Transfers as their owner sees them, and their parts in the bucket. */
import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { vi } from "vitest";
import { gateway, type Peer } from "../../support/gateway.ts";

type Shown = {
  transfer: { state: string; reason?: string; problem?: string; endedAt?: number; doneBytes: number; sha256?: string; sizeBytes?: number };
};
export const look = async (peer: Peer, id: string): Promise<Shown["transfer"]> => (await peer.ok<Shown>("transfer.get", { id })).transfer;
export async function ended(peer: Peer, id: string): Promise<Shown["transfer"]> {
  for (;;) {
    const seen = await look(peer, id);
    if (seen.state === "done" || seen.state === "failed") return seen;
    await scheduler.wait(5);
  }
}
export const create = (peer: Peer, id: string, source: string, destination: string, more = {}) =>
  peer.ok<Shown>("transfer.create", { id, source, destination, ...more });
/** The key of the workspace's file `in/b.bin`. */
export const KEY = "agents/main/in/b.bin";
/** How many parts of a transfer are stored. */
export const parts = async (id: string): Promise<number> => (await env.STORAGE.list({ prefix: `transfers/${id}/` })).objects.length;
/** Fires the gateway's alarm at this time. */
export const alarmAt = async (at: number): Promise<void> => {
  const now = vi.spyOn(Date, "now").mockReturnValue(at);
  await runInDurableObject(gateway(), (object) => object.alarm());
  now.mockRestore();
};
