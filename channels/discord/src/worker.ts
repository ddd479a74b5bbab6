/** The Discord channel's Worker: it serves the gateway by its service binding, and nobody else (promises X17). */
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";

export { DiscordAccount } from "./account-do.ts";
export default class DiscordChannel extends ChannelEntrypoint<ChannelEnv> {}
