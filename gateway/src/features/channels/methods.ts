/** `channels.*`, `channel.*` and `pair.*`: the owner manages channels and pairings. The hub has the durable data. */
import { actorOf } from "../../kernel/authorise.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelAccount, ChannelLogin } from "../../../../protocol/gen/types.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { normaliseId } from "../../kernel/routing/session-keys.ts";
import { type Result, sentence, succeed } from "../../ports/result.ts";
import type { ChannelHub } from "./hub.ts";

interface Target {
  readonly channel: string;
  readonly accountId: string;
  readonly service: ChannelService;
}
export interface ChannelMethodPorts extends Pick<KernelPorts, "log"> {
  readonly hub: ChannelHub;
}

export function channelMethods({ hub, log }: ChannelMethodPorts): Handlers {
  const target = (params: { readonly channel: string; readonly accountId?: string | undefined }): Result<Target> => {
    const channel = params.channel.toLowerCase();
    const service = hub.service(channel);
    if (service) return succeed({ channel, accountId: normaliseId(params.accountId ?? "", "default"), service });
    const names = hub.names();
    return fail(
      "channel.unknown",
      "There is no such channel.",
      names.length === 0 ? "This gateway has no channels." : `Channels of this gateway: ${names.join(", ")}.`,
    );
  };
  /** Calls a channel's Worker. An exception becomes the error `channel.failed`. */
  const callWorker = async <T>({ channel }: Target, call: () => Promise<T>): Promise<Result<T>> => {
    try {
      return succeed(await call());
    } catch (error) {
      log.warn("channel_call_failed", { channel, error });
      return fail("channel.failed", `The channel ${channel} did not answer correctly.`, "Try again; the log has the details.");
    }
  };
  /** Calls the channel for one account and stores the state in its answer. */
  const change = async (
    params: { readonly channel: string; readonly accountId?: string | undefined },
    call: (target: Target) => Promise<ChannelAccount>,
  ): Promise<Result<{ ok: true; channel: string; accountId: string }>> => {
    const found = target(params);
    if (!found.ok) return found;
    const { channel, accountId } = found.value;
    const done = await callWorker(found.value, () => call(found.value));
    if (!done.ok) return done;
    hub.status({ channel, accountId: done.value.accountId }, done.value);
    return succeed({ ok: true, channel, accountId });
  };

  return {
    "channels.list": () => {
      const undelivered = hub.deliverer.counts();
      const channels = hub.accounts().map(({ channel, accountId, connectedAt, lastMessageAt }) => ({
        channel,
        accountId,
        connectedAt,
        ...(lastMessageAt === undefined ? {} : { lastMessageAt }),
        undelivered: undelivered.get(`${channel}/${accountId}`) ?? 0,
      }));
      return succeed({ channels, count: channels.length, bound: [...hub.names()] });
    },
    // A channel uses its service binding: over a socket the gateway could not send answers back to the platform.
    "channel.inbound": () => fail("channel.unknown", "Channels deliver messages over a service binding, not over a socket."),
    "channel.start": (_caller, params) => {
      const selfChat = params.config?.["selfChat"];
      const found = target(params);
      // The owner's word, not the channel's: the gateway must know it too.
      const declared = !found.ok || selfChat === undefined ? undefined : hub.declareSelfChat(found.value.channel, selfChat === true);
      if (declared?.ok === false) return declared;
      return change(params, ({ accountId, service }) => service.start({ accountId, config: params.config ?? {} }));
    },
    "channel.stop": (_caller, params) => change(params, ({ accountId, service }) => service.stop({ accountId })),
    "channel.logout": async (_caller, params) => {
      let isUnconfirmed = false;
      const done = await change(params, async ({ accountId, service }) => {
        const { logoutUnconfirmed, ...state } = await service.logout({ accountId });
        isUnconfirmed = logoutUnconfirmed === true;
        return state;
      });
      return done.ok && isUnconfirmed ? unconfirmed(done.value) : done;
    },
    "channel.status": async (_caller, params) => {
      const found = target(params);
      if (!found.ok) return found;
      const { channel, service } = found.value;
      const known = hub.accounts().filter((account) => account.channel === channel);
      const ids = params.accountId === undefined ? known.map(({ accountId }) => accountId) : [found.value.accountId];
      const states = await Promise.all(
        (ids.length === 0 ? ["default"] : ids).map(async (accountId): Promise<Result<readonly ChannelAccount[]>> => {
          const state = await callWorker(found.value, () => service.status({ accountId }));
          // One account that does not answer does not hide the others.
          return state.ok || params.accountId !== undefined ? state : succeed([unreachable(accountId, sentence(state.error))]);
        }),
      );
      const failed = states.find((state) => !state.ok);
      if (failed) return failed;
      const accounts = states.flatMap((state) => (state.ok ? state.value : []));
      const problems = hub.deliverer.problems(channel, params.accountId === undefined ? undefined : found.value.accountId);
      return succeed({ channel, accounts, problems: [...problems] });
    },
    "channel.login": async (_caller, params) => {
      const found = target(params);
      if (!found.ok) return found;
      const { channel, accountId, service } = found.value;
      const { force, phone } = params;
      const done = await callWorker<ChannelLogin>(found.value, () =>
        service.login({ accountId, ...(force === undefined ? {} : { force }), ...(phone === undefined ? {} : { phone }) }),
      );
      if (!done.ok) return done;
      const { qr, message } = done.value;
      return succeed({ ok: true, channel, accountId, message, login: done.value, ...(qr === undefined ? {} : { qrDataUrl: qr }) });
    },
    "pair.list": () =>
      succeed({
        pairs: Object.fromEntries(hub.waiting().map((pair) => [`${pair.channel}:${pair.senderId}`, pair])),
        approved: [...hub.approved()],
      }),
    "pair.approve": async ({ connection }, { channel, senderId, role = "guest" }) => {
      const done = await hub.pairing.approve(channel.toLowerCase(), senderId, role, actorOf(connection.principal));
      return typeof done === "object" ? succeed({ approved: true, role, ...done }) : noRequest(senderId, done);
    },
    "pair.reject": async ({ connection }, { channel, senderId }) => {
      const done = await hub.pairing.reject(channel.toLowerCase(), senderId, actorOf(connection.principal));
      return typeof done === "object" ? succeed({ rejected: true, senderId: done.senderId }) : noRequest(senderId, done);
    },
  };
}

const unreachable = (accountId: string, error: string): ChannelAccount => ({
  accountId,
  connected: false,
  authenticated: true,
  error,
  extra: { started: true },
});
const unconfirmed = ({ channel, accountId }: { readonly channel: string; readonly accountId: string }) => {
  const account = accountId === "default" ? "" : ` --account ${accountId}`;
  return fail(
    "channel.failed",
    `The account ${accountId} of ${channel} is stopped, but the platform did not confirm the logout.`,
    `Log out again: \`gsv channel logout ${channel}${account}\`. If the platform still lists this device, remove it there, as in the app on the phone.`,
  );
};
const noRequest = (senderId: string, why: "ambiguous" | undefined) =>
  why === "ambiguous"
    ? fail(
        "pair.not_found",
        `${senderId} is the id of one sender and the code of another.`,
        "Send code: and the code to name the second; reject one of them if you are not sure.",
      )
    : fail("pair.not_found", `There is no pairing request from ${senderId}.`);
