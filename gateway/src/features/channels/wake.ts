/**
 * After a restart of the runtime on one's own machine: asks every channel account how it is, so that its new life begins now and not at
 * its next alarm. Waits for none and decides nothing; an account that is stopped stays so.
 */
import type { ChannelService } from "../../../../protocol/gen/services.ts";

interface Hub {
  accounts(): readonly { readonly channel: string; readonly accountId: string }[];
  service(channel: string): ChannelService | undefined;
}
const MOST = 64;

export async function wakeChannels(hub: Hub, failed: (channel: string, error: unknown) => void): Promise<void> {
  const waking = hub
    .accounts()
    .slice(0, MOST)
    .map(async ({ channel, accountId }) => {
      try {
        await hub.service(channel)?.status({ accountId });
      } catch (error) {
        failed(channel, error);
      }
    });
  await Promise.all(waking);
}
