/**
 * The WhatsApp channel's Worker: the kit's entrypoint over one Durable Object for each account. The order of the imports is part of
 * the program: what mends and guards the runtime comes before the libraries.
 */
import "./platform/polyfill.ts";
import "./platform/guard-now.ts";
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";

export { WhatsAppAccount } from "./account-do.ts";

export class WhatsAppChannel extends ChannelEntrypoint<ChannelEnv> {}
export default WhatsAppChannel;
