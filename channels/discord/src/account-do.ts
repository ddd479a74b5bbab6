/** The Durable Object of a Discord account. A shell: the kit holds the queues, platform.ts speaks with Discord. */
import { AccountObject, type KitEnv } from "../../kit/src/account-object.ts";
import type { Platform, PlatformHost } from "../../kit/src/platform.ts";
import { discordPlatform } from "./platform.ts";
import { readSettings } from "./settings.ts";

export interface DiscordEnv extends KitEnv {
  /** Secret; a token in the account's configuration goes before it. */
  readonly DISCORD_BOT_TOKEN?: string;
  /** Only for tests and proxies: what stands for https://discord.com/api. */
  readonly DISCORD_API?: string;
}
export class DiscordAccount extends AccountObject<DiscordEnv> {
  protected readonly channel = "discord";
  protected makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform {
    const { DISCORD_BOT_TOKEN: token, DISCORD_API: api } = this.env;
    return discordPlatform(
      host,
      readSettings(config, { ...(token === undefined ? {} : { token }), ...(api === undefined ? {} : { api }) }),
    );
  }
}
