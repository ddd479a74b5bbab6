/**
 * After a restart of the embedded runtime: asks every channel account for its status, so that its object starts now and not at its next
 * alarm. Decides nothing; a stopped account stays stopped.
 */
import type { ChannelService } from "../../../../protocol/gen/services.ts";

interface Hub {
  accounts(): readonly { readonly channel: string; readonly accountId: string }[];
  service(channel: string): ChannelService | undefined;
}
const MAX_ACCOUNTS = 64;

export async function wakeChannels(hub: Hub, failed: (channel: string, error: unknown) => void): Promise<void> {
  const waking = hub
    .accounts()
    .slice(0, MAX_ACCOUNTS)
    .map(async ({ channel, accountId }) => {
      try {
        await hub.service(channel)?.status({ accountId });
      } catch (error) {
        failed(channel, error);
      }
    });
  await Promise.all(waking);
}
