/** The Discord channel's Worker: it serves only the gateway, over its service binding (promises X17). */
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";

export { DiscordAccount } from "./account-do.ts";
export default class DiscordChannel extends ChannelEntrypoint<ChannelEnv> {}
