/**
 * Calls each channel account. After a start of the embedded gateway: asks for its status, so that its object starts now and not at
 * its next alarm; a stopped account stays stopped. After a stop or a resume of everything: tells it to look again (rule ST9). Decides nothing.
 */
import type { ChannelService } from "../../../../protocol/gen/services.ts";

interface Hub {
  accounts(): readonly { readonly channel: string; readonly accountId: string }[];
  service(channel: string): ChannelService | undefined;
}
const MAX_ACCOUNTS = 64;

type Failed = (channel: string, error: unknown) => void;

export const wakeChannels = (hub: Hub, failed: Failed): Promise<void> =>
  callAll(hub, failed, (service, accountId) => service.status({ accountId }));
/** A channel that is not told asks before it sends, or is of an earlier version. */
export const recheckChannels = (hub: Hub, failed: Failed): Promise<void> =>
  callAll(hub, failed, (service, accountId) => service.recheck({ accountId }));

async function callAll(hub: Hub, failed: Failed, call: (service: ChannelService, accountId: string) => Promise<unknown>): Promise<void> {
  const calls = hub
    .accounts()
    .slice(0, MAX_ACCOUNTS)
    .map(async ({ channel, accountId }) => {
      try {
        const service = hub.service(channel);
        if (service) await call(service, accountId);
      } catch (error) {
        failed(channel, error);
      }
    });
  await Promise.all(calls);
}
