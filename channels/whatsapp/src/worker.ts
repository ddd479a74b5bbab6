/**
 * The WhatsApp channel's Worker: the kit's entrypoint and one Durable Object for each account. The order of imports matters: modules
 * that patch and guard the runtime come before the libraries.
 */
import "./platform/polyfill.ts";
import "./platform/guard-now.ts";
import { type ChannelEnv, ChannelEntrypoint } from "../../kit/src/entrypoint.ts";

export { WhatsAppAccount } from "./account-do.ts";

export class WhatsAppChannel extends ChannelEntrypoint<ChannelEnv> {}
export default WhatsAppChannel;
