/** `channels.*`, `channel.*` and `pair.*`: the owner looks after channels and who may talk over them. What is durable is the hub's. */
import type { ChannelAccount, ChannelLogin } from "../../../../protocol/gen/types.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { sentence } from "../../ports/result.ts";
import { normaliseId } from "../../kernel/routing/session-keys.ts";
import type { Handler, Handlers, Services } from "../../app/services.ts";

interface Target {
  readonly channel: string;
  readonly accountId: string;
  readonly service: ChannelService;
}
function target(services: Services, params: { readonly channel: string; readonly accountId?: string | undefined }): Result<Target> {
  const channel = params.channel.toLowerCase();
  const service = services.channels.service(channel);
  if (service) return succeed({ channel, accountId: normaliseId(params.accountId ?? "", "default"), service });
  const names = services.channels.names();
  return fail(
    "channel.unknown",
    "There is no such channel.",
    names.length === 0 ? "This gateway has no channels." : `Channels of this gateway: ${names.join(", ")}.`,
  );
}
/** A channel's Worker that fails is a fault of the platform, in words. */
async function asked<T>(services: Services, { channel }: Target, call: () => Promise<T>): Promise<Result<T>> {
  try {
    return succeed(await call());
  } catch (error) {
    services.log.warn("channel_call_failed", { channel, error });
    return fail("channel.failed", `The channel ${channel} did not answer correctly.`, "Try again; the log has the details.");
  }
}
/** The channel reports by itself, too. */
const noted = (services: Services, { channel }: Target, state: ChannelAccount): Promise<void> =>
  services.channels
    .status({ channel, accountId: state.accountId }, state)
    .catch((error: unknown) => services.log.warn("channel_state_not_noted", { channel, error }));

const list: Handler<"channels.list"> = (services) => {
  const undelivered = services.channels.deliverer.counts();
  const channels = services.channels.accounts().map(({ channel, accountId, connectedAt, lastMessageAt }) => ({
    channel,
    accountId,
    connectedAt,
    ...(lastMessageAt === undefined ? {} : { lastMessageAt }),
    undelivered: undelivered.get(`${channel}/${accountId}`) ?? 0,
  }));
  return succeed({ channels, count: channels.length, bound: [...services.channels.names()] });
};

const start: Handler<"channel.start"> = async (services, _caller, params) => {
  const found = target(services, params);
  if (!found.ok) return found;
  const { channel, accountId, service } = found.value;
  const done = await asked(services, found.value, () => service.start({ accountId, config: params.config ?? {} }));
  if (!done.ok) return done;
  await noted(services, found.value, done.value);
  return succeed({ ok: true, channel, accountId });
};
const stop: Handler<"channel.stop"> = async (services, _caller, params) => {
  const found = target(services, params);
  if (!found.ok) return found;
  const { channel, accountId, service } = found.value;
  const done = await asked(services, found.value, () => service.stop({ accountId }));
  if (!done.ok) return done;
  await noted(services, found.value, done.value);
  return succeed({ ok: true, channel, accountId });
};
const silent = (accountId: string, error: string): ChannelAccount => ({
  accountId,
  connected: false,
  authenticated: true,
  error,
  extra: { started: true },
});
const status: Handler<"channel.status"> = async (services, _caller, params) => {
  const found = target(services, params);
  if (!found.ok) return found;
  const { channel, service } = found.value;
  const known = services.channels.accounts().filter((account) => account.channel === channel);
  const ids = params.accountId === undefined ? known.map(({ accountId }) => accountId) : [found.value.accountId];
  const states = await Promise.all(
    (ids.length === 0 ? ["default"] : ids).map(async (accountId): Promise<Result<readonly ChannelAccount[]>> => {
      const state = await asked(services, found.value, () => service.status({ accountId }));
      // One account that does not answer hides no other.
      return state.ok || params.accountId !== undefined ? state : succeed([silent(accountId, sentence(state.error))]);
    }),
  );
  const failed = states.find((state) => !state.ok);
  if (failed) return failed;
  const accounts = states.flatMap((state) => (state.ok ? state.value : []));
  const problems = services.channels.deliverer.problems(channel, params.accountId === undefined ? undefined : found.value.accountId);
  return succeed({ channel, accounts, problems: [...problems] });
};
const login: Handler<"channel.login"> = async (services, _caller, params) => {
  const found = target(services, params);
  if (!found.ok) return found;
  const { channel, accountId, service } = found.value;
  const { force, phone } = params;
  const done = await asked<ChannelLogin>(services, found.value, () =>
    service.login({ accountId, ...(force === undefined ? {} : { force }), ...(phone === undefined ? {} : { phone }) }),
  );
  return done.ok ? succeed({ ok: true, channel, accountId, message: done.value.message, login: done.value }) : done;
};
const logout: Handler<"channel.logout"> = async (services, _caller, params) => {
  const found = target(services, params);
  if (!found.ok) return found;
  const { channel, accountId, service } = found.value;
  const done = await asked(services, found.value, () => service.logout({ accountId }));
  if (!done.ok) return done;
  await noted(services, found.value, done.value);
  return succeed({ ok: true, channel, accountId });
};

const pending: Handler<"pair.list"> = (services) =>
  succeed({ pairs: Object.fromEntries(services.channels.waiting().map((pair) => [`${pair.channel}:${pair.senderId}`, pair])) });
const nobody = (senderId: string) => fail("pair.not_found", `There is no pairing request from ${senderId}.`);
const approve: Handler<"pair.approve"> = async (services, { connection }, { channel, senderId, role = "guest" }) => {
  const done = await services.channels.approve(channel.toLowerCase(), senderId, role, `client:${connection.principal.id}`);
  return done ? succeed({ approved: true, role, ...done }) : nobody(senderId);
};
const reject: Handler<"pair.reject"> = async (services, { connection }, { channel, senderId }) => {
  const done = await services.channels.reject(channel.toLowerCase(), senderId, `client:${connection.principal.id}`);
  return done ? succeed({ rejected: true, senderId: done.senderId }) : nobody(senderId);
};

export const channelMethods = {
  "channels.list": list,
  // Channels hand over by their service binding; a socket has no way back to the platform.
  "channel.inbound": () => fail("channel.unknown", "Channels deliver messages over a service binding, not over a socket."),
  "channel.start": start,
  "channel.stop": stop,
  "channel.status": status,
  "channel.login": login,
  "channel.logout": logout,
  "pair.list": pending,
  "pair.approve": approve,
  "pair.reject": reject,
  "heartbeat.status": () => succeed({ agents: {} }),
} as const satisfies Handlers;
