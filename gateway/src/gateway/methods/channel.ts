/**
 * Channels, pairing and heartbeats, as long as none is connected: truthful answers of an empty house. Asking is allowed, acting is
 * answered with what is missing.
 */
import { fail, succeed } from "../outcome.ts";
import type { Handlers } from "../services.ts";

const unknownChannel = () => fail("channel.unknown", "There is no such channel here. This gateway has no channels connected.");
const nobody = () => fail("pair.not_found");

export const channelMethods = {
  "channels.list": () => succeed({ channels: [], count: 0 }),
  "channel.inbound": unknownChannel,
  "channel.start": unknownChannel,
  "channel.stop": unknownChannel,
  "channel.status": unknownChannel,
  "channel.login": unknownChannel,
  "channel.logout": unknownChannel,
  "pair.list": () => succeed({ pairs: {} }),
  "pair.approve": nobody,
  "pair.reject": nobody,
  "heartbeat.status": () => succeed({ agents: {} }),
} as const satisfies Handlers;
